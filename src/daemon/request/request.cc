#include "daemon/request/request.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/proc/process.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/preflight/criu_config.h"
#include "daemon/request/cpu_priority.h"
#include "daemon/state/checkpoint_dir.h"
#include "lens/report/timing.h"

namespace kymo::daemon {
namespace {

// The most processes that are named to a collector, because the text must fit into a pipe. It
// follows their children by itself.
constexpr std::size_t kMaxPids = 4096;

// Whether the request has ended because it took too long, for its deadline or for somebody.
bool ran_out(Code code) {
  return code == Code::deadline_exceeded || code == Code::cancelled;
}

std::string ending_of(Code code) {
  if (code == Code::deadline_exceeded) return "ran out of time";
  return code == Code::cancelled ? "was cancelled" : "failed";
}

// Adds to the facts what kymod's thread did for a stream.
void add_stream(const std::optional<criu::Streamed>& streamed, diagnosis::Facts& facts) {
  if (!streamed) return facts.streaming.reset();
  diagnosis::Streaming stream = facts.streaming.value_or(diagnosis::Streaming());
  stream.work_ns = std::min(streamed->work_ns, streamed->busy_ns);
  stream.wait_ns = streamed->busy_ns - stream.work_ns;
  stream.starved_ns = streamed->starved_ns;
  facts.streaming = std::move(stream);
}

// The error with the phase that took longest, the first cause, and what helps.
Error with_time(Error error, const diagnosis::Verdict& verdict) {
  constexpr std::size_t kPhase = 1;
  if (verdict.lines.size() <= kPhase) return error;
  const bool known = verdict.causes_from < verdict.lines.size();
  std::string where = verdict.lines[kPhase] + " ";
  where += known ? verdict.findings.front().evidence : verdict.lines.back();
  if (where.ends_with('.')) where.pop_back();
  failures::add_time(error, where, known ? verdict.findings.front().advice : "");
  return error;
}

// How long kymod worked on its answers to CRIU while what is explained went on.
std::uint64_t answering_ns(const diagnosis::RequestTimes& times, std::uint64_t began_ns,
                           const diagnosis::Window& window) {
  std::uint64_t sum = 0;
  for (const diagnosis::Notification& one : times.notifications) {
    const std::uint64_t from = std::max(one.at_ns, began_ns + window.begin_ns);
    const std::uint64_t to = std::min(diagnosis::answered_ns(times, one), began_ns + window.end_ns);
    if (to > from) sum += to - from;
  }
  return sum;
}

std::string without_recording(store::RunKind kind, const Error& error) {
  return std::string(kind == store::RunKind::dump ? "the dump" : "the restore") +
         " has no recording: " + error.message;
}

}  // namespace

// Only starts the collector, because loading its BPF program takes a while. wait_for_stacks(), just before CRIU is
// called, waits until it is ready.
void Request::start_stacks(const std::string& recording_path, const inside::Observed& target,
                           std::vector<pid_t> restored) {
  const int rate = parts.config.profiling_stacks;
  const bool waits = parts.config.inside && parts.config.inside_off_cpu;
  if (rate == 0 && !waits) return;
  stacks::CollectorOrder order;
  order.starter = LastingStarter().thread();  // that of this request
  if (kind == store::RunKind::dump) {
    order.target = probe::process_tree(target.pid);
  } else {
    order.restored = std::move(restored);
    order.restored_container = target.restored_container;
  }
  for (std::vector<pid_t>* pids : {&order.target, &order.restored}) {
    pids->resize(std::min(pids->size(), kMaxPids));
  }
  order.container = target.container;
  const auto start = [this, &order] {
    Result<StackCollectors::Running> started = parts.stacks.start(order);
    if (started) {
      stacks.push_back(*std::move(started));
    } else {
      no_stacks = started.error().message;
    }
  };
  if (rate != 0) {
    order.rate = static_cast<unsigned>(rate);
    order.output = stack_profile_of(recording_path);
    start();
  }
  if (waits) {
    order.waits = true;
    order.output = wait_profile_of(recording_path);
    start();
  }
}

void Request::wait_for_stacks() {
  if (!stacks.empty()) {
    const Scope scope("wait for stacks", {.category = "recording"});
    const std::uint64_t from_ns = monotonic_ns();
    std::vector<StackCollectors::Running> ready;
    for (StackCollectors::Running& one : stacks) {
      if (const Result<void> is = one.wait_until_ready(); is) {
        ready.push_back(std::move(one));
      } else {
        no_stacks = is.error().message;
      }
    }
    stacks = std::move(ready);
    stacks_wait_ns = monotonic_ns() - from_ns;
  }
  if (no_stacks.empty()) return;
  warnings.push_back(std::string(kind == store::RunKind::dump ? "the dump" : "the restore") +
                     " has no stack profile: " + no_stacks);
}

void Request::end_stacks(const std::vector<diagnosis::Phase>& all) {
  if (stacks.empty()) return;
  std::vector<stacks::PhaseTimes> times_of_phases;
  for (const diagnosis::Phase& phase : all) {
    times_of_phases.push_back({phase.name, began_ns + phase.begin_ns, began_ns + phase.end_ns});
  }
  for (StackCollectors::Running& one : stacks) one.end(times_of_phases);
}

void Request::warn_unless(const Result<void>& done) {
  if (!done) warnings.push_back(done.error().message);
}

void Request::begin_recording(std::string path, nlohmann::json about,
                              const inside::Observed& target, std::vector<pid_t> restored) {
  const Config settings = parts.recorder.settings();
  if (kind == store::RunKind::dump) {
    target_group = autogroup_of(target.pid);
    target_quota = quota_of(target.pid);
  }
  if (settings.inside && parts.recorder.recording()) {
    inside::Observed looked_at = target;
    looked_at.restores = kind == store::RunKind::restore;
    inside.add_columns(looked_at, parts.kernel.get(), restored, seen.own_columns());
  }
  if (job) about["job"] = {{"id", job->id}, {"name", job->name}};
  start_stacks(path, target, std::move(restored));
  Result<RequestRecording> begun_now =
      parts.recorder.begin(std::move(path), began_ns, std::move(about), seen.own_columns());
  if (begun_now) {
    recording = std::move(begun_now).value();
    if (!recording.path().empty()) inside.start(settings.profiling_interval);
  } else {
    warnings.push_back(without_recording(kind, begun_now.error()));
  }
}

void Request::end_recording(const Result<void>& result, nlohmann::json about) {
  const Scope scope("end recording", {.category = "recording"});
  about["outcome"] = result ? "ok" : "error";
  if (!result) {
    about["error"] = result.error().message;
    about["failure"] = failures::to_json(failures::of_error(result.error()));
  }
  add_timing(about);
  if (std::optional<nlohmann::json> seen_inside = inside.end()) {
    about["inside"] = *std::move(seen_inside);
  }
  const std::vector<diagnosis::Phase> all = phases();
  about["phases"] = diagnosis::to_json(all);
  if (parts.config.profiling_stacks != 0) {
    about["stacks"] = {{"rate", parts.config.profiling_stacks}};
    if (!no_stacks.empty()) about["stacks"]["missing"] = no_stacks;
  }
  end_stacks(all);
  about["request_began_monotonic_ns"] = began_ns;
  if (!verdict.lines.empty()) about["verdict"] = diagnosis::to_json(verdict);
  recording.mark("request ended");
  if (const Result<void> kept = recording.end(std::move(about)); !kept) {
    warnings.push_back(without_recording(kind, kept.error()));
  }
}

Error left_error(const Handover& handover, Handover::Stage stage, store::RunKind kind, Code why) {
  const bool dump = kind == store::RunKind::dump;
  std::string message = handover.tried() + ": ";
  if (stage == Handover::Stage::before) {
    message += std::string(
                   "a disk does not answer, that of the checkpoint or that of the state "
                   "directory, so it was given up; ") +
               (dump ? "the process runs on" : "nothing was restored");
  } else {
    message +=
        "it was ended, but a disk does not answer, so it is not known yet what became of it: kymo "
        "progress shows whether it has ended, and kymo ps whether the process runs";
  }
  return {why, std::move(message)};
}

Result<runtime::Observer> Request::runtime_called() {
  wait_for_stacks();
  if (Result<void> entered = handover.enter_runtime(); !entered) return entered.error();
  begun = true;
  inside.runtime_called();
  first_run = parts.first_runs.take(kind);
  if (!times.container) {
    scripts = preflight::configured_scripts(preflight::criu_config_files());
    times.others_scripts = !scripts.empty();
  }
  runtime::Observer observer;
  times.runtime_called_ns = monotonic_ns();
  observer.notified = [this](std::string_view name) {
    const std::uint64_t at_ns = monotonic_ns();
    seen.notified(name);
    recording.mark(name);
    progress.notified(name);
    if (times.container) progress.answered();
    const std::lock_guard lock(times_mutex);
    // Of a container, it was read in CRIU's log, and nobody knows how long CRIU waited.
    times.notifications.push_back({std::string(name), at_ns, times.container ? monotonic_ns() : 0});
  };
  observer.answered = [this] {
    const std::lock_guard lock(times_mutex);
    if (!times.notifications.empty()) times.notifications.back().answered_ns = monotonic_ns();
    progress.answered();
  };
  observer.working = [this](std::string_view what) { working(what); };
  observer.pre_dumped = [this](const runtime::PreDumpRound&) {
    recording.mark("pre-dump round ended");
    times.pre_dumps_ended_ns = monotonic_ns();
  };
  observer.paused = [this](std::uint64_t from_ns, std::uint64_t to_ns) {
    const std::lock_guard lock(times_mutex);
    times.paused = {"its runtime paused it", from_ns, to_ns};
  };
  observer.streamed = [this](const criu::Streamed& so_far) {
    if (so_far.work_ns != 0) streamed = so_far;
  };
  observer.logged = [this](runtime::LogSeen read) {
    log = std::move(read.phases);
    times.log_began_ns = read.began_ns;
    times.criu_ended_ns = read.criu_ended_ns;
  };
  return observer;
}

void Request::working(std::string_view what) {
  if (!what.empty()) recording.mark(what);
  progress.working(what);
  const std::lock_guard lock(times_mutex);
  if (!what.empty()) {
    times.own_work.push_back({std::string(what), monotonic_ns(), 0});
  } else if (!times.own_work.empty()) {
    times.own_work.back().answered_ns = monotonic_ns();
  }
}

std::vector<diagnosis::Phase> Request::phases() const {
  if (!concluded.empty()) return diagnosis::with_saving(concluded, duration_ns());
  std::unique_lock lock(times_mutex);
  diagnosis::RequestTimes until_now = times;
  lock.unlock();
  until_now.restore = kind == store::RunKind::restore;
  until_now.began_ns = began_ns;
  until_now.ended_ns = monotonic_ns();
  return diagnosis::phases_of(until_now, log);
}

void Request::explain(Result<void>& result, diagnosis::Facts facts, const std::string& images) {
  const bool in_vain = !result && ran_out(result.error().code);
  if (!result && !begun && !in_vain) return;
  const Scope scope("explain", {.category = "request"});
  inside.stop();
  facts.restore = kind == store::RunKind::restore;
  facts.container = times.container;
  if (!result) facts.ending = ending_of(result.error().code);
  if (!begun) facts.unbegun = step;
  times.failed = !result;
  facts.cpus = std::max(1U, std::thread::hardware_concurrency());
  facts.phases = concluded = phases();
  facts.longest_pause = log.longest_pause;
  facts.scripts = scripts;
  facts.answering_ns =
      answering_ns(times, began_ns, diagnosis::window_of(facts.phases, facts.restore));
  if (!facts.phases.empty()) facts.duration_ns = facts.phases.back().end_ns;
  add_stream(streamed, facts);
  if (result && diagnosis::needs_shape(facts)) facts.shape = parts.foreign.memory_shape(images);
  inside.add_signals(began_ns, facts);
  struct statfs run {};
  facts.kernel_known = ::statfs("/run", &run) == 0 && run.f_type == TMPFS_MAGIC;
  if (!facts.restore) facts.earlier = write_rates_of(parts.store.checkpoints());
  if (!facts.restore || !facts.container) facts.priority = priority_of(::getpid());
  const diagnosis::Quota own = quota_of(::getpid());
  const bool tighter = facts.kymod_quota.folder.empty() || own.cpus < facts.kymod_quota.cpus;
  if (tighter && !own.folder.empty()) facts.kymod_quota = own;
  facts.kymod_group = autogroup_of(::getpid());
  facts.target_group = target_group;
  if (!facts.restore) facts.target_quota = target_quota;
  facts.program = criu.path;
  facts.stacks_wait_ns = stacks_wait_ns;
  verdict = diagnosis::explain(facts);
  if (in_vain) result = with_time(result.error(), verdict);
}

std::string unsaved_warning() {
  return "the disk is slow: how this ended is not saved yet, so history and explain do not know "
         "it; "
         "kymod goes on with that";
}

void Request::ended(const Result<void>& result) {
  if (!counts) return seen.ended(result);
  const RequestResult counted = result_of(result, begun);
  if (kind == store::RunKind::dump) {
    seen.dump_ended(counted);
  } else {
    seen.restore_ended(counted);
  }
  if (counted == RequestResult::error) {
    parts.metrics.outcomes()->failed(kind == store::RunKind::dump ? "dump" : "restore",
                                     failures::of_error(result.error()).id);
  }
  seen.ended(result);
}

void Request::add_timing(nlohmann::json& object) const {
  if (timing == nullptr) return;
  object["timing"] = report::timing_json(timing->records());
}

}  // namespace kymo::daemon
