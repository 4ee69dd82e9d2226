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

// The result of a command that has ended.
struct Outcome {
  int exit_code = -1;  // -1 if a signal or the watchdog ended it
  std::string out;
  std::string err;
};

// Runs a command to its end, with /dev/null as its standard input. Kills it after half a minute.
Outcome run(const std::vector<std::string>& command);

// A kymod for one test, with a temporary socket, a temporary state directory and a free port. At the end it is
// stopped, the test checks that nothing of it is left, and jobs that it still lists are killed.
class Kymod {
 public:
  // `flags` are added to those that this class sets. `before` is a command that runs kymod.
  explicit Kymod(std::vector<std::string> flags = {}, std::vector<std::string> before = {});
  ~Kymod();
  Kymod(const Kymod&) = delete;
  Kymod& operator=(const Kymod&) = delete;

  // Starts kymod and waits until it is ready. Fails the test if it does not get ready.
  void start();
  // Stops kymod and starts it again with more flags.
  void restart(const std::vector<std::string>& more = {});
  // Starts kymod, and kills it after this time.
  void start_and_kill(std::chrono::microseconds after);
  // Sends the signal and returns the exit code, or -1 if the signal ended kymod.
  int stop(int signal);
  // Makes a dump with this command of kymo. kymod uses this criu, and is killed when CRIU is about to write the
  // pages. CRIU then goes on without kymod.
  void kill_when_pages_are_dumped(const BreakableCriu& criu, const std::vector<std::string>& dump);
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Runs `kymo ARGS` with the socket of this kymod.
  [[nodiscard]] Outcome kymo(std::vector<std::string> args) const;
  // The same with --json. Returns the parsed output. Fails the test if kymo fails.
  [[nodiscard]] nlohmann::json kymo_json(std::vector<std::string> args) const;
  // Starts kymo-churn as a job, waits until all its memory is written, and returns the job's JSON.
  [[nodiscard]] nlohmann::json churn(int mib, const std::string& name) const;
  // The job of this name from `kymo ps --json`. Fails the test if there is none.
  [[nodiscard]] nlohmann::json job(const std::string& name) const;
  // Whether the output of the job shows that it counts further than now.
  [[nodiscard]] bool goes_on(const nlohmann::json& job) const;

  [[nodiscard]] std::string socket() const { return folder_.path() + "/kymod.sock"; }
  [[nodiscard]] std::string state() const { return folder_.path() + "/state"; }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  // HOST:PORT of the HTTP server.
  [[nodiscard]] const std::string& http() const { return http_; }
  [[nodiscard]] std::string log() const;
  // Waits until kymod's log has this text: a line is written slightly after the event.
  [[nodiscard]] bool logs(const std::string& text) const;

 private:
  void end();

  TemporaryDirectory folder_;
  std::vector<std::string> command_;
  pid_t pid_ = 0;
  int starts_ = 0;
  std::string http_;
};

// The token of kymod's page.
std::string token_of(const Kymod& kymod);

// An answer of kymod's HTTP port.
struct Answer {
  int status = 0;
  std::string text;
  nlohmann::json body;  // discarded if the body is no JSON
  [[nodiscard]] std::string message() const { return body["error"]["message"]; }
};

// Sends a request in the way of the page, with the token.
Answer ask(const Kymod& kymod, const std::string& path, const std::string& method = "GET");

// /proc/PID/status of a process that has this file open. Empty if there is none.
std::string status_of_reader(const std::string& file);
// Whether that process can only read (src/base/confine).
bool has_no_rights(const std::string& status);

// The columns of a recording by name. One of them is `Time (ns)`.
std::map<std::string, std::vector<std::uint64_t>> read_recording(const std::string& path);
// Waits until a recording's metadata says that it has ended, and returns the metadata.
nlohmann::json ended_metadata(const std::string& recording);
// Waits until these recordings of a checkpoint ("dump", "restore") have ended. kymod writes them for a second longer
// than the request runs. Only then may its folder be removed or copied.
void wait_until_recorded(const std::string& checkpoint, const std::vector<std::string>& names);
std::string read_file(const std::string& path);
// Lists the files in the images and work folders of a checkpoint for which other users have any right, one per
// line.
std::string files_for_others(const std::string& directory);
// The log of CRIU for the newest dump of a process to this directory. While the dump runs, it is where CRIU writes
// it (runtime/scratch.h), and afterwards in the directory. Empty if there is none.
std::string dump_log(const std::string& directory, pid_t pid);

}  // namespace kymo::test
