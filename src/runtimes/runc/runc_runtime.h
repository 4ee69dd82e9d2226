#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/runtime.h"

namespace kymo::runtime {

struct RuncRuntimeOptions {
  std::string program = "runc";
  std::string root = "/run/runc";     // where runc keeps its containers' state: its --root
  std::string criu_folder;            // put first on PATH: runc looks for criu by name
  std::chrono::milliseconds timeout;  // of each command; 0: none
};

// Containers of runc, by runc's own command.
//
// A container is found in runc's state folder, without starting anything. Where a dump leaves the
// container running it stays runc's; else runc forgets it, and a restore makes it anew out of its
// bundle.
//
// Threads: every member from any thread. Errors: as of Runtime; of restore(): no container is left.
std::unique_ptr<Runtime> make_runc_runtime(RuncRuntimeOptions options);

}  // namespace kymo::runtime
