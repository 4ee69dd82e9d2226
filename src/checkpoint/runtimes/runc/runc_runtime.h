#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

struct RuncRuntimeOptions {
  std::string program = "runc";
  std::string root = "/run/runc";     // where runc keeps the state of containers: its --root
  std::string criu_folder;            // first on PATH, where runc looks for criu
  std::chrono::milliseconds timeout;  // of each command; 0: none
  // The file with the containers that could not be removed. The next runtime with this file removes
  // them. Empty: none.
  std::string memory{};
};

// Makes the runtime for containers of runc. It uses the command runc.
//
// find() reads runc's state folder and starts no program. After a dump runc forgets the container,
// unless the dump leaves it running. A restore then makes the container again from its bundle.
//
// Threads: every member from any thread.
// Errors:  those of Runtime. After a failed restore() no container is left.
std::unique_ptr<Runtime> make_runc_runtime(RuncRuntimeOptions options);

}  // namespace kymo::runtime
