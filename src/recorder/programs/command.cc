#include "recorder/programs/command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/child.h"
#include "base/file_limit.h"
#include "base/pipe.h"
#include "base/reap.h"

namespace kymo::record {
namespace {

constexpr int kNotBegun = 127;

// Runs in the child: waits for the gate, and then executes the program. Returns if there is none to execute.
int execute(char* const* words, int gate, int failure) {
  give_back_file_limit();
  ::signal(SIGPIPE, SIG_DFL);  // kymo ignores it, but the program may rely on it
  char go = 0;
  if (::read(gate, &go, 1) == 1) {
    ::execvp(words[0], words);
    const int error = errno;
    static_cast<void>(!::write(failure, &error, sizeof error));
  }
  return kNotBegun;
}

}  // namespace

Command::Command(pid_t pid, std::string name, FileDescriptor gate, FileDescriptor failure)
    : pid_(pid), name_(std::move(name)), gate_(std::move(gate)), failure_(std::move(failure)) {}

Result<Command> Command::prepare(const std::vector<std::string>& words) {
  Result<Pipe> gate = make_pipe();
  Result<Pipe> failure = make_pipe();
  if (!gate || !failure) {
    return gate ? failure.error() : gate.error();
  }
  std::vector<char*> pointers;  // made before the fork, because the child must not allocate
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  const std::string what = "cannot start a process for " + words.front();
  const Result<pid_t> pid =
      fork_child({.what = what.c_str(), .ends = ChildLife::Ends::by_itself}, [&] {
        gate->to.reset();  // otherwise the child would hold its own gate open
        return execute(pointers.data(), gate->from.get(), failure->to.get());
      });
  if (!pid) return pid.error();
  return Command(*pid, words.front(), std::move(gate->to), std::move(failure->from));
}

Command::~Command() {
  if (gate_.valid()) {
    gate_.reset();
    reap(pid_);
  }
}

Result<void> Command::go() {
  static_cast<void>(!::write(gate_.get(), "g", 1));
  gate_.reset();
  int error = 0;
  if (::read(failure_.get(), &error, sizeof error) != sizeof error) {
    return {};
  }
  reap(pid_);
  return system_error("cannot run " + name_, error);
}

}  // namespace kymo::record
