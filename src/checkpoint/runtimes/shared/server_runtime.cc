#include "checkpoint/runtimes/shared/server_runtime.h"

#include <signal.h>

#include <utility>

#include "base/clock.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/container_end.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/shared/proved_dump.h"
#include "checkpoint/runtimes/shared/rehearsal.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "checkpoint/runtimes/shared/server.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::milliseconds kAnswersSoon{200};  // for what is asked every second

std::optional<ProcessId> running(const Result<ServedContainer>& seen) {
  if (!seen || seen->pid == 0) return std::nullopt;
  const ProcessId process = identify(seen->pid);
  return process.start_ticks == 0 ? std::nullopt : std::optional(process);
}

}  // namespace

// A server may also not answer about a container while it starts or restores it.
Result<std::optional<ProcessId>> ServerRuntime::process_of(const std::string& id) {
  const Result<ServedContainer> seen = look_up(id, kAnswersWithin);
  if (!seen && seen.error().code == Code::deadline_exceeded) return seen.error();
  return running(seen);
}

// As long as the server does not answer, it is not known whether the container runs.
Result<bool> ServerRuntime::settle_restore(const RestoreSpec& spec, std::int64_t) {
  if (is_being_restored(spec.container)) return false;
  const Result<ServedContainer> seen = look_up(spec.container, kAnswersSoon);
  if (!seen && seen.error().code == Code::invalid_argument) return seen.error();
  if (!seen && seen.error().code != Code::not_found) return false;
  return true;
}

Result<std::optional<CriuProgram>> ServerRuntime::fixed_criu() {
  const Result<std::string> path = server_path();
  if (!path) return path.error();
  Result<CriuProgram> program = criu_of_server(shown_, *path);
  if (!program) return program.error();
  return std::optional(std::move(program).value());
}

Container ServerRuntime::container_that_runs_as(pid_t pid) {
  Container found = container_of(pid);
  found.bundle = bundle_of_shim(pid);
  return found;
}

// CRIU, or settle_container_dump(), may have thawed what the server takes for paused, and runc resumes only what is frozen.
void ServerRuntime::let_run(const DumpSpec& spec) const {
  const Result<ServedContainer> seen = look_up(spec.container, kAnswersWithin);
  if (!seen || !seen->paused) return;
  const Scope scope("let it run on", {.category = "runtime"});
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (freezer && !freezer->frozen()) static_cast<void>(freezer->set(true).ok());
  if (!spec.frozen) static_cast<void>(resume(spec.container).ok());
}

// The server starts CRIU with nothing of kymod's. So kymod makes the container stand still from before its dump until its
// images are whole and proved, and ends it then.
Result<CommandOutcome> ServerRuntime::dump_held(const DumpSpec& spec, const Observer& observer,
                                                const Command& limits) const {
  if (!spec.frozen) {
    const Scope scope("pause it", {.category = "runtime"});
    const std::uint64_t from_ns = monotonic_ns();
    const auto paused = freeze_container({spec.process, spec.container, spec.container_name}, true,
                                         "", [&] { return pause(spec.container); });
    if (!paused) return paused.error();
    if (observer.paused) observer.paused(from_ns, monotonic_ns());
  }
  Result<CommandOutcome> done = make_images(spec, true, limits);
  const auto is_good = [&] { return done && done->exit_status == 0; };
  if (is_good()) {
    if (Result<void> proved = prove(spec); !proved) done = proved.error();
  }
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (is_good() && (!freezer || !freezer->frozen())) {
    done = Error{Code::failed_precondition,
                 "another program let it run during its dump, after its images were made"};
  }
  if (!is_good() || spec.leave_running) {
    let_run(spec);
    return done;
  }
  // No process of it runs again: each gets its SIGKILL before it is unfrozen.
  for (const pid_t pid : probe::process_tree(spec.process.pid)) ::kill(pid, SIGKILL);
  note_end(spec);
  if (freezer->frozen()) static_cast<void>(freezer->set(false).ok());
  return done;
}

Result<DumpOutcome> ServerRuntime::dump(const DumpSpec& spec, const Observer& observer) {
  if (Result<void> good = may_dump(spec); !good) return good.error();
  ContainerCall checkpoint = call_of("dump", spec);
  checkpoint.growing_log = dump_log(spec);
  if (!checkpoint.growing_log.empty()) checkpoint.stats_path.clear();  // both are gone afterwards
  checkpoint.run = [&](const Command& limits) {
    if (spec.prove || ends_by_kymod(spec)) return dump_held(spec, observer, limits);
    Result<CommandOutcome> done = make_images(spec, spec.leave_running, limits);
    if (!done || done->exit_status != 0) let_run(spec);
    return done;
  };
  return dump_container(spec, std::move(checkpoint), observer);
}

Result<void> ServerRuntime::settle_dump(const DumpSpec& spec) {
  const std::string growing = dump_log(spec);
  Result<void> settled = settle_container_dump(
      spec, growing.empty() ? in_work_dirs(spec, "/dump.log") : std::vector{growing});
  let_run(spec);
  return settled;
}

Result<void> ServerRuntime::rehearse(const RehearsalSpec& spec) {
  const std::string tried = "could not restore container " + name_of_container(spec);
  const Result<ServedContainer> seen = look_up(spec.container, kAnswersWithin);
  if (!seen && seen.error().code != Code::not_found) {
    return Error{seen.error().code, tried + ": " + seen.error().message};
  }
  if (!seen || seen->pid == 0) return not_rehearsable(tried, shown_);
  RehearsalSpec here = spec;
  here.bundle = bundle_of_shim(seen->pid);
  return rehearse_by_runc(here, "", timeout_);
}

Result<RestoreOutcome> ServerRuntime::with_process(RestoreOutcome outcome,
                                                   const RestoreSpec& spec) const {
  const std::optional<ProcessId> process = running(look_up(spec.container, kAnswersWithin));
  if (!process) {
    return Error{Code::failed_precondition,
                 "could not restore container " + name_of_container(spec) + ": it ended at once"};
  }
  outcome.process = *process;
  return outcome;
}

Result<std::string> ServerRuntime::freeze(const FreezeSpec& spec) {
  return freeze_container(spec, true, shown_ + "'s pause", [&] { return pause(spec.container); });
}

Result<std::string> ServerRuntime::unfreeze(const FreezeSpec& spec) {
  // The server may take it for paused although it is not frozen (let_run()).
  const Result<ServedContainer> seen = look_up(spec.container, kAnswersWithin);
  const Result<Freezer> freezer = Freezer::of(spec.process.pid);
  if (seen && seen->paused && freezer && !freezer->frozen()) {
    static_cast<void>(freezer->set(true).ok());
  }
  return freeze_container(spec, false, shown_ + "'s resume",
                          [&] { return resume(spec.container); });
}

}  // namespace kymo::runtime
