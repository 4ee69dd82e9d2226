#include "criu/command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/line_reader.h"
#include "base/pipe.h"
#include "criu/call_phases.h"
#include "criu/child.h"

namespace kymo::criu {
namespace {

// The two pipes between criu's action scripts and us: a script writes the name of the point that
// criu passes, and waits for the line that lets it go on.
class ScriptPipes {
 public:
  static Result<std::unique_ptr<ScriptPipes>> make() {
    auto pipes = std::make_unique<ScriptPipes>();
    for (Pipe* const pipe : {&pipes->names_, &pipes->answers_}) {
      Result<Pipe> made = make_pipe();
      if (!made) return made.error();
      *pipe = *std::move(made);
    }
    pipes->lines_ = LineReader(pipes->names());
    fcntl(pipes->names(), F_SETFL, O_NONBLOCK);
    if (Result<void> ok = pipes->write_script(); !ok) return ok.error();
    return pipes;
  }

  [[nodiscard]] int names() const { return names_.from.get(); }

  // The path of the script. The script and the pipes are reached through our /proc/PID/fd. So no
  // file is left behind, and the script fails if this process is gone.
  [[nodiscard]] std::string script() const { return ours(script_); }

  // The next whole line, if one is there.
  std::optional<std::string> next() {
    lines_.read();
    return lines_.take();
  }

  void answer(bool go_on) {
    std::size_t written = 0;
    write_all(answers_.to.get(), go_on ? "go\n" : "stop\n", &written);
  }

 private:
  static std::string ours(const FileDescriptor& fd) {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd.get());
  }

  Result<void> write_script() {
    const std::string text = "#!/bin/sh\necho \"$CRTOOLS_SCRIPT_ACTION\" >" + ours(names_.to) +
                             " && read -r answer <" + ours(answers_.from) +
                             " && test \"$answer\" = go\n";
    const FileDescriptor writable(memfd_create("criu-action-script", MFD_CLOEXEC));
    std::size_t written = 0;
    if (!writable.valid() || write_all(writable.get(), text, &written) != 0) {
      return system_error("cannot write criu's action script", errno);
    }
    // A file that is open for writing cannot be executed, so it is opened again.
    script_ = FileDescriptor(open(ours(writable).c_str(), O_RDONLY | O_CLOEXEC));
    if (!script_.valid()) return system_error("cannot open criu's action script", errno);
    return {};
  }

  Pipe names_;    // written by the script
  Pipe answers_;  // read by it
  FileDescriptor script_;
  LineReader lines_{-1};  // of the names
};

Result<CommandEnd> run_with_notifications(const ClientOptions& options, const Command& command) {
  CallPhases phases;
  Result<std::unique_ptr<ScriptPipes>> pipes = ScriptPipes::make();
  if (!pipes) return pipes.error();
  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.end(), {"--action-script", (*pipes)->script()});
  Result<std::unique_ptr<Child>> started = Child::start_command(
      options.path, std::move(arguments), options.timeout, options.cancel, options.inherited);
  if (!started) return started.error();
  Child& child = **started;
  if (command.kind == CallKind::restore) child.may_lose_processes();
  if (command.reads_connections) child.keep_connections();
  std::optional<Error> refused;
  for (;;) {
    const Result<bool> readable = child.wait_for((*pipes)->names());
    if (!readable) return refused ? *refused : readable.error();
    if (!*readable) break;
    while (const std::optional<std::string> name = (*pipes)->next()) {
      phases.after(*name);
      const Result<void> passed =
          command.passed ? command.passed(*name, child.deadline()) : Result<void>();
      if (!passed && !refused) refused = passed.error();
      (*pipes)->answer(passed.ok());
    }
  }
  phases.ends();
  const Result<void> ended = child.check_end();
  if (!ended) return refused ? *refused : ended.error();
  const std::uint64_t life_ns = child.finish();
  return CommandEnd{life_ns, child.major_faults()};
}

}  // namespace

Result<CommandEnd> run_command(const ClientOptions& options, const Command& command) {
  const auto started = Child::Clock::now();
  Result<CommandEnd> end = run_with_notifications(options, command);
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Child::Clock::now() - started);
  if (options.called) {
    options.called(
        {command.kind, end.ok(), end ? end->life_ns : static_cast<std::uint64_t>(elapsed.count())});
  }
  return end;
}

}  // namespace kymo::criu
