#include "checkpoint/criu/drive/command.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/own_thread.h"
#include "base/pipe.h"
#include "checkpoint/criu/drive/action_script.h"
#include "checkpoint/criu/drive/call_phases.h"
#include "checkpoint/criu/drive/child.h"
#include "checkpoint/criu/drive/program_names.h"

namespace kymo::criu {
namespace {

Result<CommandEnd> run_with_notifications(const ClientOptions& options, const Command& command) {
  CallPhases phases;
  Result<std::unique_ptr<ActionScript>> script = ActionScript::make();
  if (!script) return script.error();
  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.end(), {"--action-script", (*script)->path()});
  Result<std::unique_ptr<Child>> started = Child::start(
      options.path, std::move(arguments), options.timeout, options.cancel, options.inherited);
  if (!started) return started.error();
  Child& child = **started;
  if (command.kind == CallKind::restore) child.may_lose_processes();
  if (command.reads_connections) child.keep_connections();
  std::optional<Error> refused;
  pid_t root = 0;
  bool named = false;
  for (;;) {
    const Result<bool> readable = child.wait_for((*script)->names());
    if (!readable) return refused ? *refused : readable.error();
    if (!*readable) break;
    while (const std::optional<ActionScript::Point> point = (*script)->next()) {
      if (!std::exchange(named, true)) note_name_of_criu(child.name());
      phases.after(point->name);
      if (point->root != 0) root = point->root;
      const Result<void> passed =
          command.passed ? command.passed(point->name, WaitingCriu(child)) : Result<void>();
      if (!passed && !refused) refused = passed.error();
      if (const Result<void> in_time = child.check_time(); !refused && !in_time) {
        return in_time.error();
      }
      (*script)->answer(passed.ok());
      if (command.answered) command.answered();
    }
  }
  phases.ends();
  const Result<void> ended = child.check_end();
  if (!ended) return refused ? *refused : ended.error();
  const std::uint64_t life_ns = child.finish();
  note_name_of_criu(child.name());
  return CommandEnd{child.output(), root, life_ns, child.major_faults()};
}

}  // namespace

Result<void> WaitingCriu::wait_for(const char* late, std::function<Result<void>()> work) const {
  struct Shared {
    std::mutex mutex;
    std::optional<Result<void>> answer;  // guarded by mutex
  };
  Result<Pipe> done = make_pipe();
  if (!done) return done.error();
  const auto shared = std::make_shared<Shared>();
  const Result<void> begun =
      on_own_thread([shared, work = std::move(work), end = std::move(done->to)]() mutable {
        Result<void> answer = work();
        work = nullptr;
        const std::lock_guard lock(shared->mutex);
        shared->answer = std::move(answer);
        end.reset();  // now the other end can be read
      });
  if (!begun) return begun;
  const Result<bool> readable = criu_.wait_for(done->from.get());
  if (!readable) {
    const bool too_late = readable.error().code == Code::deadline_exceeded;
    return too_late ? Error{Code::deadline_exceeded, late} : readable.error();
  }
  const std::lock_guard lock(shared->mutex);
  if (shared->answer) return *shared->answer;
  const Result<void> ended = criu_.check_end();
  return ended ? Error{Code::internal, "criu ended before it had its answer"} : ended.error();
}

std::chrono::milliseconds WaitingCriu::time_left() const {
  const Child::Clock::time_point until = criu_.deadline();
  if (until == Child::Clock::time_point::max()) return std::chrono::milliseconds(0);
  return std::max(
      std::chrono::milliseconds(1),
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Child::Clock::now()));
}

Result<FileDescriptor> open_folder(const std::string& tried, const std::string& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return system_error(tried + ": cannot open " + path, errno);
  return folder;
}

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
