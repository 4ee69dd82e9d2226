#include "programs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/sanitizers.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// Starts a command with its output in these files, and returns its pid. It inherits no other file
// of the test runner, because CRIU might be unable to dump such a file.
pid_t spawn(const std::vector<std::string>& command, const std::string& out,
            const std::string& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "start " << command.front();
  return error == 0 ? pid : 0;
}

// Returns the exit code, or -1 if a signal ended the child. Kills a child that takes too long.
int wait_for(pid_t pid, std::chrono::seconds within) {
  int status = 0;
  const bool ended = eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; }, within);
  if (!ended) {
    ADD_FAILURE() << "process " << pid << " did not end within " << within.count() << " s";
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string files_for_others(const std::string& directory) {
  std::string found;
  for (const char* part : {"/images", "/work"}) {
    for (const auto& file : fs::recursive_directory_iterator(directory + part)) {
      const fs::perms mode = file.symlink_status().permissions();
      if (!file.is_regular_file() || file.is_symlink()) continue;
      if ((mode & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none) continue;
      found += file.path().string() + "\n";
    }
  }
  return found;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Outcome run(const std::vector<std::string>& command) {
  const TemporaryDirectory folder;
  const std::string out = folder.path() + "/out";
  const std::string err = folder.path() + "/err";
  Outcome outcome;
  const pid_t pid = spawn(command, out, err);
  if (pid > 0) outcome.exit_code = wait_for(pid, std::chrono::seconds(60));
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

Kymod::Kymod(std::vector<std::string> flags, std::vector<std::string> before) {
  command_ = {KYMOD_PROGRAM, "--socket",    socket(),      "--state-dir", state(),
              "--http",      "127.0.0.1:0", "--log-level", "debug"};
  if (std::find(flags.begin(), flags.end(), "--criu") == flags.end()) {
    command_.insert(command_.end(), {"--criu", criu_path()});
  }
  command_.insert(command_.end(), flags.begin(), flags.end());
  command_.insert(command_.begin(), before.begin(), before.end());
}

Kymod::~Kymod() {
  try {
    end();
  } catch (...) {
    std::fputs("a kymod could not be ended\n", stderr);
  }
}

void Kymod::restart(const std::vector<std::string>& more) {
  EXPECT_EQ(stop(SIGTERM), 0);
  const std::vector<std::string> command = command_;
  command_.insert(command_.end(), more.begin(), more.end());
  start();
  command_ = command;
}

void Kymod::end() {
  if (!running()) return;
  const Outcome jobs = kymo({"ps", "--json"});
  if (jobs.exit_code == 0) {
    for (const auto& job : nlohmann::json::parse(jobs.out)) {
      if (job["state"] == "running") kill(job["pid"].get<pid_t>(), SIGKILL);
    }
  }
  EXPECT_EQ(stop(SIGTERM), 0) << log();
}

std::string Kymod::log() const {
  return read_file(path("log-" + std::to_string(starts_)));
}

bool Kymod::logs(const std::string& text) const {
  return eventually([&] { return log().find(text) != std::string::npos; });
}

void Kymod::start() {
  ++starts_;
  const std::string to = path("log-" + std::to_string(starts_));
  pid_ = spawn(command_, path("out"), to);
  const bool ready = eventually([&] { return log().find("ready: ") != std::string::npos; });
  ASSERT_TRUE(ready) << log();
  const std::string text = log();
  const std::size_t at = text.find(", http ") + 7;
  http_ = text.substr(at, text.find('\n', at) - at);
}

void Kymod::start_and_kill(std::chrono::microseconds after) {
  ++starts_;
  pid_ = spawn(command_, path("out"), path("log-" + std::to_string(starts_)));
  std::this_thread::sleep_for(after);
  stop(SIGKILL);
}

int Kymod::stop(int signal) {
  kill(pid_, signal);
  const int code = wait_for(pid_, std::chrono::seconds(30));
  pid_ = 0;
  return code;
}

void Kymod::kill_when_pages_are_dumped(const BreakableCriu& criu,
                                       const std::vector<std::string>& dump) {
  criu.break_at("Dumping pages (type", SIGSTOP);
  std::thread client([&] { static_cast<void>(kymo(dump)); });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << log();
  criu.mend();
  EXPECT_EQ(stop(SIGKILL), -1);
  if (stopped != 0) kill(stopped, SIGCONT);
  client.join();
}

Outcome Kymod::kymo(std::vector<std::string> args) const {
  args.insert(args.begin(), {KYMO_PROGRAM, "--socket", socket()});
  return run(args);
}

nlohmann::json Kymod::kymo_json(std::vector<std::string> args) const {
  // The option must be before `--`, after which a command follows.
  args.insert(args.begin() + (args.size() == 1 || args.front() == "metrics" ? 1 : 2), "--json");
  const Outcome outcome = kymo(args);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  nlohmann::json json = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

nlohmann::json Kymod::churn(int mib, const std::string& name) const {
  nlohmann::json job = kymo_json(
      {"run", "process", "--name", name, "--", CHURN_PROGRAM, "--mib", std::to_string(mib)});
  // The program counts when all its memory is written.
  const std::string out = job.value("stdout_path", "");
  EXPECT_TRUE(eventually([&] { return !read_file(out).empty(); }, std::chrono::seconds(45)))
      << read_file(job.value("stderr_path", ""));
  EXPECT_TRUE(goes_on(job));
  return job;
}

nlohmann::json Kymod::job(const std::string& name) const {
  for (const auto& job : kymo_json({"ps"})) {
    if (job["name"] == name) return job;
  }
  ADD_FAILURE() << "no job " << name;
  return {};
}

bool Kymod::goes_on(const nlohmann::json& job) const {
  const std::string out = job.value("stdout_path", "");
  const std::size_t before = read_file(out).size();
  return eventually([&] { return read_file(out).size() > before; });
}

std::string status_of_reader(const std::string& file) {
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    for (fs::directory_iterator fd(entry->path() / "fd", gone); !gone && fd != end;
         fd.increment(gone)) {
      std::error_code closed;
      if (fs::read_symlink(fd->path(), closed) == file) return read_file(entry->path() / "status");
    }
  }
  return {};
}

bool has_no_rights(const std::string& status) {
  const auto says = [&](const char* line) { return status.find(line) != std::string::npos; };
  // The process may have only the capability CAP_DAC_READ_SEARCH, to read files that only their
  // owner may read.
  const bool confined = says("NoNewPrivs:\t1\n") && says("CapBnd:\t0000000000000000\n") &&
                        says("CapEff:\t0000000000000004\n");
#if KYMO_ADDRESS_SANITIZER
  return confined;
#else
  return confined && says("Seccomp:\t2\n");
#endif
}

std::string token_of(const Kymod& kymod) {
  const std::string url = kymod.kymo_json({"web"})["url"];
  return url.substr(url.find("token=") + 6);
}

Answer ask(const Kymod& kymod, const std::string& path, const std::string& method) {
  std::vector<std::string> command{"curl", "-sS", "--max-time", "60", "-w", "\n%{http_code}"};
  if (method == "POST") command.insert(command.end(), {"--data", ""});
  command.insert(command.end(),
                 {"-H", "Authorization: Bearer " + token_of(kymod), "-H",
                  "Origin: http://" + kymod.http(), "http://" + kymod.http() + path});
  const Outcome curl = run(command);
  EXPECT_EQ(curl.exit_code, 0) << curl.err;
  const std::size_t line = curl.out.rfind('\n');
  const std::string text = curl.out.substr(0, line);
  return {std::stoi(curl.out.substr(line + 1)), text, nlohmann::json::parse(text, nullptr, false)};
}

std::map<std::string, std::vector<std::uint64_t>> read_recording(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<std::string> names;
  std::istringstream header(line);
  for (std::string name; std::getline(header, name, '\t');) names.push_back(name);
  std::map<std::string, std::vector<std::uint64_t>> columns;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    for (const std::string& name : names) {
      std::uint64_t value = 0;
      row >> value;
      EXPECT_TRUE(row) << path << ": " << line;
      columns[name].push_back(value);
    }
  }
  EXPECT_FALSE(columns.empty()) << path;
  return columns;
}

nlohmann::json ended_metadata(const std::string& recording) {
  const std::string path = recording.substr(0, recording.size() - 4) + ".meta.json";
  nlohmann::json metadata;
  const bool ended = eventually([&] {
    metadata = nlohmann::json::parse(read_file(path), nullptr, false);
    return metadata.is_object() && metadata.value("state", "") == "ended";
  });
  EXPECT_TRUE(ended) << path << ": " << metadata.dump(2);
  return metadata;
}

void wait_until_recorded(const std::string& checkpoint, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    static_cast<void>(ended_metadata(checkpoint + "/recordings/" + name + ".tsv"));
  }
}

std::string dump_log(const std::string& directory, pid_t pid) {
  namespace fs = std::filesystem;
  const std::string of_pid = "-" + std::to_string(pid);
  std::string newest;
  std::error_code error;
  const fs::path scratch = fs::path(runtime::scratch_path("any")).parent_path();
  for (fs::directory_iterator entry(scratch, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    // A file of the log, not of the images.
    const bool of_log = entry->path().filename().string().starts_with('c');
    if (of_log && path.ends_with(of_pid)) newest = std::max(newest, path);
  }
  std::string text = newest.empty() ? "" : read_file(newest + "/dump.log");
  return text.empty() ? read_file(directory + "/work/dump.log") : text;
}

}  // namespace kymo::test
