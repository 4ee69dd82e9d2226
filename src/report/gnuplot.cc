#include "report/gnuplot.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "report/human.h"

namespace kymo::report {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxComplaint = 4096;

// A file beside `path` that replaces it when it is complete, and is removed otherwise.
class Draft {
 public:
  explicit Draft(std::string path) : path_(std::move(path)), name_(path_ + ".XXXXXX") {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (fd_.valid()) {
      ::unlink(name_.c_str());
    }
  }

  Result<void> open() {
    fd_ = FileDescriptor(::mkostemp(name_.data(), O_CLOEXEC));
    return !fd_.valid() ? system_error("write picture " + path_, errno) : Result<void>();
  }

  Result<void> publish() {
    // mkostemp() makes a file that only its owner can read. Others may see a picture.
    if (::fchmod(fd_.get(), 0644) != 0 || ::fsync(fd_.get()) != 0 ||
        ::rename(name_.c_str(), path_.c_str()) != 0) {
      return system_error("write picture " + path_, errno);
    }
    fd_.reset();
    return {};
  }

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  std::string path_;
  std::string name_;
  FileDescriptor fd_;
};

Result<FileDescriptor> script_file(const std::string& script) {
  FileDescriptor fd(::memfd_create("kymo-gnuplot", MFD_CLOEXEC));
  std::size_t written = 0;
  if (!fd.valid() || write_all(fd.get(), script, &written) != 0 ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    return system_error("hand gnuplot its script", errno);
  }
  return fd;
}

Result<pid_t> spawn(int script, int picture, int complaints) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, script, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
  std::array<char, 8> name{"gnuplot"};
  std::array<char, 3> settings{"-d"};
  const std::array<char*, 3> arguments = {name.data(), settings.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, "gnuplot", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return Error{Code::not_found,
                 "draw the picture: there is no gnuplot on PATH; install the package gnuplot-nox",
                 ENOENT};
  }
  if (error != 0) {
    return system_error("start gnuplot", error);
  }
  return pid;
}

// Reads what the child writes until it closes its end. Returns false if this takes longer than
// until `deadline`.
bool collect(int fd, Clock::time_point deadline, std::string& complaint) {
  std::array<char, 1024> piece{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready == 0) {
      return false;
    }
    const ssize_t n = ready < 0 ? -1 : ::read(fd, piece.data(), piece.size());
    if (n == 0 || (n < 0 && errno != EINTR)) {
      return true;
    }
    if (n > 0 && complaint.size() < kMaxComplaint) {
      complaint.append(piece.data(), static_cast<std::size_t>(n));
    }
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// gnuplot repeats the bad line with a caret below it. The message is in its last line.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  const std::size_t begin = text.rfind('\n');
  return begin == text.npos ? text : text.substr(begin + 1);
}

}  // namespace

Result<void> run_gnuplot(const std::string& script, const std::string& path,
                         std::chrono::milliseconds limit) {
  Draft draft(path);
  if (auto opened = draft.open(); !opened) {
    return opened;
  }
  auto script_fd = script_file(script);
  if (!script_fd) {
    return script_fd.error();
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("listen to gnuplot", errno);
  }
  const FileDescriptor complaints(ends[0]);
  FileDescriptor child_end(ends[1]);
  auto pid = spawn(script_fd->get(), draft.fd(), child_end.get());
  child_end.reset();
  if (!pid) {
    return pid.error();
  }
  std::string complaint;
  const bool in_time = collect(complaints.get(), Clock::now() + limit, complaint);
  if (!in_time) {
    ::kill(*pid, SIGKILL);
  }
  const int status = wait_for(*pid);
  if (!in_time) {
    return Error{Code::deadline_exceeded, "draw " + path + ": gnuplot was not done after " +
                                              std::to_string(limit.count()) + " ms and was ended"};
  }
  struct stat picture {};
  const bool drawn = ::fstat(draft.fd(), &picture) == 0 && picture.st_size != 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !drawn) {
    return Error{Code::internal,
                 "draw " + path + ": gnuplot failed: " +
                     (complaint.empty() ? "it left no picture" : last_line(complaint))};
  }
  return draft.publish();
}

std::string gnuplot_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : printable(text)) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace kymo::report
