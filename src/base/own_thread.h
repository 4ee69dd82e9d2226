#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "kymo/result.h"

namespace kymo {

// Runs `task` on a thread that nobody joins: for work that may wait for a disk for ever, which no signal and no timeout
// ends, or that must not delay its caller. The task must own all that it uses, or whoever owns it must wait for its end.
//
// Threads: any.
// Errors:  unavailable: no thread can be started. The task is destroyed then.
template <class Task>
Result<void> on_own_thread(Task task) {
  try {
    std::thread(std::move(task)).detach();
    return {};
  } catch (const std::system_error& error) {
    return Error{Code::unavailable, std::string("start a thread: ") + error.what()};
  }
}

}  // namespace kymo
