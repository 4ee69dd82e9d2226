#include "checkpoint/criu/drive/action_script.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/fd_path.h"

namespace kymo::criu {
namespace {

// A file in memory that can be read and executed.
Result<FileDescriptor> file_with(const std::string& text) {
  const FileDescriptor writable(memfd_create("criu-action-script", MFD_CLOEXEC));
  std::size_t written = 0;
  if (!writable.valid() || write_all(writable.get(), text, &written) != 0) {
    return system_error("cannot write criu's action script", errno);
  }
  // A file that is open for writing cannot be executed, so it is opened again.
  FileDescriptor file(open(path_through(writable).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return system_error("cannot open criu's action script", errno);
  return file;
}

}  // namespace

bool ActionScript::is_path(std::string_view path) {
  return path.starts_with("/proc/") && path.find("/fd/") != std::string_view::npos;
}

Result<std::unique_ptr<ActionScript>> ActionScript::make() {
  auto made = std::make_unique<ActionScript>();
  for (Pipe* const pipe : {&made->names_, &made->answers_}) {
    Result<Pipe> one = make_pipe();
    if (!one) return one.error();
    *pipe = *std::move(one);
  }
  made->lines_ = LineReader(made->names());
  fcntl(made->names(), F_SETFL, O_NONBLOCK);
  Result<FileDescriptor> script =
      file_with("#!/bin/sh\necho \"$CRTOOLS_SCRIPT_ACTION $CRTOOLS_INIT_PID\" >" +
                path_through(made->names_.to) + " && read -r answer <" +
                path_through(made->answers_.from) + " && test \"$answer\" = go\n");
  if (!script) return script.error();
  made->script_ = *std::move(script);
  Result<FileDescriptor> config = file_with("action-script " + made->path() + "\n");
  if (!config) return config.error();
  made->config_ = *std::move(config);
  return made;
}

std::string ActionScript::path() const {
  return path_through(script_);
}

std::string ActionScript::config_path() const {
  return path_through(config_);
}

std::optional<ActionScript::Point> ActionScript::next() {
  lines_.read();
  std::optional<std::string> line = lines_.take();
  if (!line) return std::nullopt;
  const std::string_view words = *line;
  const std::string_view name = words.substr(0, words.find(' '));
  Point point{std::string(name)};
  const std::string_view pid = words.substr(std::min(name.size() + 1, words.size()));
  std::from_chars(pid.data(), pid.data() + pid.size(), point.root);
  return point;
}

void ActionScript::answer(bool go_on) {
  std::size_t written = 0;
  write_all(answers_.to.get(), go_on ? "go\n" : "stop\n", &written);
}

}  // namespace kymo::criu
