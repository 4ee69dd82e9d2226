#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "criu/client.h"
#include "kymo/result.h"

namespace kymo::criu {

// A criu that is driven by its command line, with an action script in place of RPC's notifications.
struct Command {
  CallKind kind = CallKind::dump;
  std::vector<std::string> arguments;
  // Called at each point that criu passes, in its words; criu waits for it, and fails where it
  // gives an error. `until` is when criu's time is over.
  std::function<Result<void>(std::string_view name, std::chrono::steady_clock::time_point until)>
      passed;
};

struct CommandEnd {
  std::uint64_t life_ns = 0;
  std::uint64_t major_faults = 0;
};

// Runs it to its end, and counts it as a call.
//
// Should this process die meanwhile, criu's next point fails, and with it the dump: what was to be
// dumped runs on.
Result<CommandEnd> run_command(const ClientOptions& options, const Command& command);

}  // namespace kymo::criu
