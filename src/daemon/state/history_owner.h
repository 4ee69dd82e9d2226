#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/table.h"

namespace kymo::daemon {

// The owner of a history (store::Run::owner): a job, a container such as "runc:web", or a program that is not a job. A
// program is identified by its whole command line (docs/diff.md).
inline constexpr std::string_view kJobOwner = "job:";
inline constexpr std::string_view kProgramOwner = "program:";

std::string owner_of_job(const std::string& name);
std::string owner_of_container(runtime::Kind kind, const std::string& name);
// `name`: of the program, if its command line is empty.
std::string owner_of_program(const std::vector<std::string>& command, const std::string& name);

}  // namespace kymo::daemon
