#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/criu/drive/client.h"
#include "kymo/result.h"

namespace kymo::criu {

class Child;

// criu, which waits for the answer to a point.
class WaitingCriu {
 public:
  explicit WaitingCriu(Child& criu) : criu_(criu) {}

  // Runs `work` on a thread of its own, and returns what it returned. It waits only as long as criu does: until its
  // timeout, a cancellation, or its end. Then `work`, which must own all that it uses, goes on alone.
  // Errors: deadline_exceeded, with the text `late`, and cancelled: criu was ended; how criu ended; no thread.
  [[nodiscard]] Result<void> wait_for(const char* late, std::function<Result<void>()> work) const;
  // The time until its timeout, at least a millisecond. 0: it has none.
  [[nodiscard]] std::chrono::milliseconds time_left() const;

 private:
  Child& criu_;
};

// A call of criu.
struct Command {
  CallKind kind = CallKind::dump;
  std::vector<std::string> arguments;
  bool reads_connections = false;  // a dump with TCP connections
  // Called at each point at which criu runs the action script, with criu's name of the point. criu
  // waits until this returns, and fails if it returns an error.
  std::function<Result<void>(std::string_view name, const WaitingCriu& criu)> passed{};
  std::function<void()> answered{};  // called when criu has got the answer
};

// Of a call that succeeded.
struct CommandEnd {
  std::string output;  // Child::output()
  pid_t root = 0;      // of the processes; 0: criu has not said it
  std::uint64_t life_ns = 0;
  std::uint64_t major_faults = 0;
};

// A folder for criu, held open. By path_through(), criu reaches it wherever it is, and by a short path, as a socket in it
// needs. Errors: the system's, after `tried`.
Result<FileDescriptor> open_folder(const std::string& tried, const std::string& path);

// Runs criu to its end, with an action script, and reports it to `options.called`.
//
// If this process dies meanwhile, the action script fails at criu's next point. Then the dump
// fails, and the processes run on.
Result<CommandEnd> run_command(const ClientOptions& options, const Command& command);

}  // namespace kymo::criu
