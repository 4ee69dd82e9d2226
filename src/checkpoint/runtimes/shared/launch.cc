#include "checkpoint/runtimes/shared/launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/spawn.h"

namespace kymo::runtime {
namespace {

bool is_program(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
         faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

// Returns the PATH of the command's own environment. If it has none: that of this program.
std::string search_path(const RunSpec& spec) {
  constexpr std::string_view kPath = "PATH=";
  for (const std::string& variable : spec.environment) {
    if (variable.starts_with(kPath)) {
      return variable.substr(kPath.size());
    }
  }
  const char* ours = std::getenv("PATH");
  return ours != nullptr ? ours : "/usr/local/bin:/usr/bin:/bin";
}

std::string below(const std::string& folder, const std::string& path) {
  return folder.empty() || path.starts_with('/') ? path : folder + "/" + path;
}

Result<std::string> find_program(const RunSpec& spec) {
  const std::string& name = spec.command[0];
  const std::string tried = "cannot run '" + name + "': ";
  if (name.find('/') != std::string::npos) {
    std::string path = below(spec.directory, name);
    if (access(path.c_str(), F_OK) != 0) {
      return system_error(tried + path, errno);
    }
    if (!is_program(path)) {
      return Error{Code::permission_denied, tried + path + " is not an executable file", EACCES};
    }
    return path;
  }
  const std::string path = search_path(spec);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    std::string candidate = below(spec.directory, (folder.empty() ? "." : folder) + "/" + name);
    if (is_program(candidate)) {
      return candidate;
    }
    begin = end + 1;
  }
  return Error{Code::not_found, tried + "no such program on PATH (" + path + ")", ENOENT};
}

// Opens the file of a program's output. Does not follow a symbolic link, which could lead anywhere,
// and does not wait for the other end of a FIFO. The exceptions are /dev/null, and
// one of our own descriptors, given as /proc/self/fd/N.
Result<FileDescriptor> open_output(const std::string& path) {
  // CRIU restores a file that is open write-only and append-only even if its size has changed.
  constexpr int kAppends = O_WRONLY | O_APPEND | O_CREAT;
  if (path != "/dev/null" && !path.starts_with("/proc/self/fd/")) {
    Result<FileDescriptor> fd = open_regular(path, kAppends | O_NOFOLLOW, 0600);
    // The program must not get the flag O_NONBLOCK.
    if (fd && ::fcntl(fd->get(), F_SETFL, O_APPEND) != 0)
      return system_error("open " + path, errno);
    return fd;
  }
  FileDescriptor fd(open(path.c_str(), kAppends | O_CLOEXEC | O_NOCTTY, 0600));
  if (fd.valid()) return fd;
  return system_error("open " + path, errno);
}

Error not_opened(const std::string& path, const char* what, const std::string& program,
                 const Error& why) {
  const int error = why.errno_value;
  const std::string tried = "cannot open " + path + " for the " + what + " of '" + program + "'";
  if (error == 0) return {why.code, tried + ": " + why.message};
  if (error != ELOOP) {
    Error failed = system_error(tried, error);
    failed.message += advice_on_full_disk(path, error);
    return failed;
  }
  return Error{Code::permission_denied, tried + ": it is a link, which is not followed: remove it",
               ELOOP};
}

}  // namespace

Result<pid_t> launch(const RunSpec& spec, std::string autogroup_nice) {
  if (spec.command.empty() || spec.command[0].empty()) {
    return Error{Code::invalid_argument, "cannot run an empty command: name a program"};
  }
  struct stat st {};
  if (!spec.directory.empty() && stat(spec.directory.c_str(), &st) != 0) {
    return system_error("cannot run '" + spec.command[0] + "' in " + spec.directory, errno);
  }
  if (!spec.directory.empty() && !S_ISDIR(st.st_mode)) {
    return system_error("cannot run '" + spec.command[0] + "' in " + spec.directory, ENOTDIR);
  }
  const Result<std::string> program = find_program(spec);
  if (!program) {
    return program.error();
  }
  const Result<FileDescriptor> out = open_output(spec.stdout_path);
  if (!out) return not_opened(spec.stdout_path, "output", spec.command[0], out.error());
  const Result<FileDescriptor> err = open_output(spec.stderr_path);
  if (!err) return not_opened(spec.stderr_path, "errors", spec.command[0], err.error());
  return spawn({.file = *program,
                .words = spec.command,
                .environment = spec.environment,
                .descriptors = {kDevNull, out->get(), err->get()},
                .directory = spec.directory,
                .leads = Program::Leads::session,
                .autogroup_nice = std::move(autogroup_nice),
                .parent_lasts = true});
}

}  // namespace kymo::runtime
