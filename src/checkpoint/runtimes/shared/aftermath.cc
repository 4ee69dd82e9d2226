#include "checkpoint/runtimes/shared/aftermath.h"

#include <signal.h>

#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/patience.h"
#include "base/proc/process.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/repair/parasite.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "checkpoint/runtimes/shared/freezer.h"
#include "checkpoint/runtimes/shared/network_lock.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

template <class Stats>
Result<Stats> read_within(const std::string& path, Result<Stats> (*read)(const std::string&)) {
  const auto stats = within(kDiskPatience, [path, read] { return read(path); });
  return stats ? *stats : Error{Code::unavailable, "the disk of " + path + " does not answer"};
}

template <class Outcome, class Stats>
void take(const Result<Stats>& stats, Outcome& outcome) {
  if (stats) {
    outcome.stats = *stats;
  } else {
    outcome.warnings.push_back("CRIU's statistics are missing: " + stats.error().message);
  }
}

}  // namespace

void forget(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

namespace {

// Returns a clause for an error message that names the processes which ended during the dump. Empty
// if there are none. Most are short commands of a script, which ended by themselves, so this is no alarm:
// the first process runs on. But if one process is killed at the wrong instant, CRIU may end another one
// that it was about to release, and nothing tells the two apart afterwards.
std::string ended_meanwhile(const DumpTarget& before) {
  std::string pids;
  std::size_t count = 0;
  for (const ProcessId& member : before.tree) {
    if (!probe::process_lives(member.pid, member.start_ticks)) {
      pids += (count++ == 0 ? "" : ", ") + std::to_string(member.pid);
    }
  }
  return count == 0
             ? ""
             : " (" + std::to_string(count) + " of its " + std::to_string(before.tree.size()) +
                   " processes ended meanwhile: " + pids +
                   ", as short commands of a script do by themselves)";
}

}  // namespace

Result<void> unmap_criu(const std::vector<pid_t>& tree) {
  const Scope scope("unmap CRIU's code", {.category = "runtime"});
  Result<void> all;
  for (const pid_t pid : tree) {
    const Result<std::size_t> removed = criu::remove_parasite(pid);
    if (!removed && removed.error().code != Code::not_found && all) all = removed.error();
  }
  return all;
}

namespace {

// `why_unsure` empty: the process has ended.
Result<void> leave_to_decide(Error error, std::string why_unsure, const DumpTarget& before,
                             DumpOutcome& outcome) {
  const bool ended = why_unsure.empty();
  outcome.failure = {std::move(error), ended, std::move(why_unsure), before.tree};
  return {};
}

// Whether CRIU may have changed something in the processes. CRIU notes in its log that it has seized a process
// before it does anything else with it. If there is no log to read, the answer is yes.
bool may_have_attached(const DumpSpec& spec) {
  if (spec.pre_dumps != 0) return true;  // each round has a log of its own
  const auto log = within(kDiskPatience, [path = spec.work_dir + "/dump.log"] {
    return read_no_link(path, std::size_t{1} << 30U);
  });
  return !log || !*log || (*log)->empty() || (*log)->find("Seized task") != std::string::npos;
}

std::vector<pid_t> living_of(const DumpTarget& before) {
  std::vector<pid_t> tree;
  for (const ProcessId& member : before.tree) {
    if (probe::process_lives(member.pid, member.start_ticks)) tree.push_back(member.pid);
  }
  return tree;
}

// Gives the processes their network back, and waits until they run without CRIU's code. `trouble` gets
// what could not be undone although they run. Undoes nothing in processes that another program traces, such as
// the CRIU of another kymod.
Result<void> undo_dump(const DumpSpec& spec, const DumpTarget& before,
                       std::vector<Error>& trouble) {
  const std::vector<pid_t> tree = living_of(before);
  if (living_tracer(tree) != 0) return ensure_running(before);
  if (Result<void> back = give_back_network(tree); !back) trouble.push_back(back.error());
  if (Result<void> running = ensure_running(before); !running || spec.frozen) return running;
  if (Result<void> unmapped = unmap_criu(tree); !unmapped) {
    if (unmapped.error().code == Code::deadline_exceeded)
      return unmapped;  // it still runs that code
    trouble.push_back(unmapped.error());
  }
  // A thread that was still in CRIU's code has left it by now. It may have ended on CRIU's trap
  // instruction, so check again.
  return ensure_running(before);
}

}  // namespace

Result<void> conclude_failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error,
                                  DumpOutcome& outcome) {
  const Scope scope("let it run on", {.category = "runtime"});
  const ProcessId process{before.process.pid, before.process.start_ticks};
  const std::string name = "process " + std::to_string(process.pid);
  const auto life = [&] { return probe::life_of(process.pid, process.start_ticks); };
  if (const pid_t tracer = living_tracer(living_of(before));
      tracer != 0 && !may_have_attached(spec)) {
    error.message += "; " + name + " is traced by process " + std::to_string(tracer) +
                     ", perhaps another dump of it or a debugger, so nothing was changed in it";
    return error;
  }
  if (life() == probe::Life::ended) return leave_to_decide(std::move(error), "", before, outcome);
  std::vector<Error> trouble;
  const Result<void> running = undo_dump(spec, before, trouble);
  const probe::Life now = life();
  if (now == probe::Life::ended) return leave_to_decide(std::move(error), "", before, outcome);
  if (now == probe::Life::unknown) {
    return leave_to_decide(std::move(error), "it cannot be seen whether " + name + " runs", before,
                           outcome);
  }
  if (!running) {
    return leave_to_decide(std::move(error), running.error().message, before, outcome);
  }
  error.message += std::string("; the ") + (spec.container.empty() ? "process" : "container") +
                   " runs on" + ended_meanwhile(before);
  for (const Error& one : trouble) error.message += "; but " + one.message;
  return error;
}

namespace {

Result<void> wait_until_gone(const probe::Process& process) {
  const Scope scope("wait until it is gone", {.category = "runtime"});
  const auto until = steady_clock::now() + kGoneWithin;
  for (;;) {
    const Result<probe::Process> seen = probe::read_process(process.pid);
    const bool unseen = !seen && seen.error().code != Code::not_found;
    if (!unseen && (!seen || seen->zombie() || seen->start_ticks != process.start_ticks)) {
      return {};
    }
    if (steady_clock::now() > until) {
      return Error{Code::internal, "process " + std::to_string(process.pid) +
                                       " was dumped and should have ended, but still runs"};
    }
    std::this_thread::sleep_for(milliseconds(1));  // not always our child, so waitpid() cannot wait
  }
}

}  // namespace

void conclude_ended_dump(const DumpSpec& spec, const DumpTarget& before, DumpOutcome& outcome) {
  if (Result<void> gone = wait_until_gone(before.process); !gone) {
    outcome.warnings.push_back(gone.error().message);
  }
  std::vector<pid_t> tree;
  for (const ProcessId& member : before.tree) tree.push_back(member.pid);
  const Result<pid_t> other = before.network.give_back_to_others(tree);
  if (!other) {
    outcome.warnings.push_back(other.error().message);
  } else if (*other != 0 && spec.options.tcp_established) {
    outcome.warnings.push_back("its network namespace is that of process " +
                               std::to_string(*other) +
                               ", too, and was not kept locked for it: its connections may end "
                               "before they are restored");
  }
}

void take_statistics(const std::string& path, DumpOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(read_within<criu::DumpStats>(path, criu::read_dump_stats), outcome);
}

void take_statistics(const std::string& path, RestoreOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(read_within<criu::RestoreStats>(path, criu::read_restore_stats), outcome);
}

ProcessId identify(pid_t pid) {
  const Result<probe::Process> process = probe::read_process(pid);
  return {pid, process ? process->start_ticks : 0};
}

Container container_of(pid_t pid) {
  Container found;
  found.process = identify(pid);
  if (const Result<probe::Process> seen = probe::read_process(pid)) found.command = seen->command;
  const Result<Freezer> freezer = Freezer::of(pid);
  found.frozen = freezer && freezer->frozen();
  found.read_only_root = has_read_only_root(pid);
  return found;
}

}  // namespace kymo::runtime
