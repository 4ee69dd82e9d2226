#pragma once

#include <string>

#include "checkpoint/preflight/preflight.h"

namespace kymo::cli {

// What kymo check prints of a process, container or checkpoint.

// A line with what was checked, such as "a dump of process 4711", one for each finding, and one for each part that was not
// seen.
void print_findings(const preflight::Report& report, const std::string& checked);
// The last line. `what` is "dump" or "restore".
std::string sum_of(const preflight::Report& report, const std::string& what);
// 0 nothing refuses, 1 something does, 3 nothing does but not all was seen.
int exit_code_of(const preflight::Report& report);

}  // namespace kymo::cli
