#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo {

// In Program::descriptors: /dev/null, for reading as descriptor 0, for writing as any other.
inline constexpr int kDevNull = -1;

// A program to start. It has no blocked signals but those that are named here, and each signal has
// its default action.
struct Program {
  // Whether the program leads a process group or a session of its own.
  enum class Leads : std::uint8_t { nothing, group, session };

  std::string file;                // without a slash: looked up on this program's PATH
  std::vector<std::string> words;  // the first is the program's name, the others its arguments
  // Without a value: the environment of this program.
  std::optional<std::vector<std::string>> environment{};
  // Descriptor i of the program is a copy of descriptors[i], and it has no others. Empty: it has
  // those of this program that are not closed on exec.
  std::vector<int> descriptors{};
  std::string directory{};  // empty: the working directory of this program
  Leads leads = Leads::nothing;
  // What is written into /proc/self/autogroup of a new session, such as "-20" (sched(7)). Empty: it begins with 0.
  std::string autogroup_nice{};
  std::vector<int> blocked{};  // signals
  // Whether it keeps this program's limit for open files. Otherwise it gets the one that this
  // program had before raise_file_limit().
  bool keeps_file_limit = false;
  // Whether a thread starts it that runs as long as this program. A process that has asked for a signal when its parent
  // ends (PR_SET_PDEATHSIG, prctl(2)) gets it as soon as the thread ends that started it, or that started the CRIU
  // which restored it.
  bool parent_lasts = false;
};

// Is told of each program that a thread starts. To be set and reset by that thread.
class SpawnListener {
 public:
  SpawnListener() = default;
  virtual ~SpawnListener() = default;
  SpawnListener(const SpawnListener&) = delete;
  SpawnListener& operator=(const SpawnListener&) = delete;
  virtual void spawned(pid_t pid) = 0;
};
inline thread_local SpawnListener* spawn_listener = nullptr;

// While it exists, one thread that lasts as long as this program starts the programs with Program::parent_lasts of the
// thread that has made it, and none of another thread. Without it, spawn() takes any such thread. Several of one thread
// use the same one.
//
// Threads: made and destroyed by the same thread, the inner ones first.
// Cost:    a thread, which the next one uses again.
class LastingStarter {
 public:
  LastingStarter();
  ~LastingStarter();
  LastingStarter(const LastingStarter&) = delete;
  LastingStarter& operator=(const LastingStarter&) = delete;

  // The id of that thread. If there can be no thread: of the calling one, which then starts the programs.
  [[nodiscard]] pid_t thread() const;

 private:
  friend Result<pid_t> spawn(const Program& program);
  class Worker;
  pid_t start(const void* image) const;

  LastingStarter* const outer_;
  Worker* const worker_;  // null: there is no thread
};

// Starts a program and returns its pid. The caller must reap the process.
// Threads: any.
// Errors:  "cannot run FILE: ...", with errno, also if exec fails. Then nothing runs, and no zombie
//          is left.
Result<pid_t> spawn(const Program& program);

}  // namespace kymo
