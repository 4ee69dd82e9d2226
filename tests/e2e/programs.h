#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/breakable_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// What a finished command left.
struct Outcome {
  int exit_code = -1;  // -1: ended by a signal, or not within its time
  std::string out;
  std::string err;
};

// Runs a command to its end, its stdin /dev/null; after half a minute it is killed.
Outcome run(const std::vector<std::string>& command);

// A kymod of its own: temporary socket and state, a free port. Stopped and looked after at the end;
// the jobs that it still lists are killed.
class Kymod {
 public:
  // `flags` come after those that the harness sets itself. `before`: a command that runs kymod.
  explicit Kymod(std::vector<std::string> flags = {}, std::vector<std::string> before = {});
  ~Kymod();
  Kymod(const Kymod&) = delete;
  Kymod& operator=(const Kymod&) = delete;

  // Starts it and waits until it says that it is ready; fails the test where it does not.
  void start();
  // Stops it and starts it again, this time with more flags.
  void restart(const std::vector<std::string>& more = {});
  // Starts it, and kills it so long after.
  void start_and_kill(std::chrono::microseconds after);
  // Sends the signal and returns the exit code, or -1 where the signal ended it.
  int stop(int signal);
  // Dumps with this command of kymo by a kymod that has this criu, and kills kymod when CRIU is about to write the
  // pages. CRIU goes on alone then.
  void kill_when_pages_are_dumped(const BreakableCriu& criu, const std::vector<std::string>& dump);
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // `kymo ARGS` with this daemon's socket.
  [[nodiscard]] Outcome kymo(std::vector<std::string> args) const;
  // The same with --json, its output parsed; fails the test where kymo fails.
  [[nodiscard]] nlohmann::json kymo_json(std::vector<std::string> args) const;
  // A running kymo-churn as a job, its memory all written; returns its JSON.
  [[nodiscard]] nlohmann::json churn(int mib, const std::string& name) const;
  // The job of this name, as `kymo ps --json` has it; fails the test where there is none.
  [[nodiscard]] nlohmann::json job(const std::string& name) const;
  // Whether the job's output shows that it counts on from where it is now.
  [[nodiscard]] bool goes_on(const nlohmann::json& job) const;

  [[nodiscard]] std::string socket() const { return folder_.path() + "/kymod.sock"; }
  [[nodiscard]] std::string state() const { return folder_.path() + "/state"; }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  // HOST:PORT of its HTTP server.
  [[nodiscard]] const std::string& http() const { return http_; }
  [[nodiscard]] std::string log() const;
  // Whether its log comes to have this: a line is written a moment after it is said.
  [[nodiscard]] bool logs(const std::string& text) const;

 private:
  void end();

  TemporaryDirectory folder_;
  std::vector<std::string> command_;
  pid_t pid_ = 0;
  int starts_ = 0;
  std::string http_;
};

// The token of its page.
std::string token_of(const Kymod& kymod);

// What its HTTP port answers.
struct Answer {
  int status = 0;
  std::string text;
  nlohmann::json body;  // discarded if it is none
  [[nodiscard]] std::string message() const { return body["error"]["message"]; }
};

// Asks as the page does, with the token.
Answer ask(const Kymod& kymod, const std::string& path, const std::string& method = "GET");

// What /proc says of a process that has this file open; empty: none has.
std::string status_of_reader(const std::string& file);
// Whether that is one that can only read (src/confine).
bool has_no_rights(const std::string& status);

// A recording's columns by name, `Time (ns)` among them.
std::map<std::string, std::vector<std::uint64_t>> read_recording(const std::string& path);
// Waits until a recording's metadata says that it has ended, and returns the metadata.
nlohmann::json ended_metadata(const std::string& recording);
std::string read_file(const std::string& path);
// The files of a checkpoint's images and work folder to which others have a right, one a line.
std::string files_for_others(const std::string& directory);
// CRIU's log of the newest dump of a process into this directory: while the dump runs, where CRIU
// writes it (runtime/scratch.h), and then in the directory. Empty: there is none.
std::string dump_log(const std::string& directory, pid_t pid);

}  // namespace kymo::test
