#include "stacks/session.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/file.h"
#include "probe/process.h"
#include "record/command.h"
#include "record/signals.h"
#include "stacks/unwind.h"

namespace kymo::stacks {
namespace {

constexpr int kSignalled = 128;
// How often the source is drained. A file is opened at most this long after it was mapped.
constexpr int kRoundMs = 20;

std::uint64_t own_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return to_nanos(used);
}

// The part of profiling that takes events from the source and counts stacks.
class Session {
 public:
  Session(std::unique_ptr<Source> source, const Sampling& sampling);

  // Takes what has come.
  void round() { take_until(monotonic_ns()); }
  // Takes all that is left.
  Profile finish();
  [[nodiscard]] int fd() const { return source_->fd(); }

 private:
  void take_until(std::uint64_t horizon_ns);
  void take(const Event& event);
  void count(const Sample& sample);

  std::unique_ptr<Source> source_;
  std::uint64_t begin_ns_ = monotonic_ns();
  std::uint64_t begin_cpu_ns_ = own_cpu_ns();
  std::vector<Event> pending_;
  Profile profile_;
};

Session::Session(std::unique_ptr<Source> source, const Sampling& sampling)
    : source_(std::move(source)) {
  profile_.waits = sampling.waits;
  profile_.period_ns = sampling.waits ? 0 : kNanosPerSecond / sampling.rate;
  profile_.begin_unix_ns = unix_ns();
  profile_.processes = std::make_unique<Processes>();
  // Processes that are there now could end before their first sample is looked at.
  const bool all = sampling.target.kind != Target::Kind::processes;
  for (const pid_t pid : all ? probe::all_processes() : sampling.target.pids) {
    profile_.processes->add_running(pid);
  }
}

// Events come from several buffers. All that are older than the horizon have come; they are taken
// in the order of their times, so that a sample finds its process as it was then.
void Session::take_until(std::uint64_t horizon_ns) {
  source_->drain(pending_);
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  const auto after = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Event& event) { return event.time_ns > horizon_ns; });
  std::for_each(pending_.begin(), after, [this](const Event& event) { take(event); });
  pending_.erase(pending_.begin(), after);
}

void Session::take(const Event& event) {
  Processes& processes = *profile_.processes;
  if (const auto* sample = std::get_if<Sample>(&event.what)) return count(*sample);
  if (const auto* mapped = std::get_if<Mapped>(&event.what)) return processes.mapped(*mapped);
  if (const auto* forked = std::get_if<Forked>(&event.what)) return processes.forked(*forked);
  if (const auto* executed = std::get_if<Executed>(&event.what)) {
    return processes.executed(*executed);
  }
  if (const auto* exited = std::get_if<Exited>(&event.what)) return processes.exited(*exited);
  processes.named(std::get<Named>(event.what));
}

void Session::count(const Sample& sample) {
  Processes& processes = *profile_.processes;
  const Processes::Process& process = processes.at(sample.pid);
  Unwound unwound = unwind(process, sample);
  for (const Frame& frame : unwound.frames) {
    if (frame.module != nullptr && frame.module->kind == Module::Kind::jit) {
      processes.find_perf_map(sample.pid);
      break;
    }
  }
  Trace trace{sample.pid, sample.process, sample.thread, process.container, {}, unwound.truncated};
  if (trace.process.empty()) trace.process = processes.name_of(sample.pid);
  if (trace.thread.empty()) trace.thread = processes.name_of(sample.tid);
  for (std::size_t i = 0; i < sample.kernel.size(); ++i) {
    // All but the innermost are where a call returns to.
    trace.frames.push_back({processes.kernel(), sample.kernel[i] - (i == 0 ? 0 : 1)});
  }
  trace.frames.insert(trace.frames.end(), unwound.frames.begin(), unwound.frames.end());
  Weight& weight = profile_.traces[std::move(trace)];
  weight.samples += 1;
  weight.ns += sample.value_ns;
}

Profile Session::finish() {
  source_->stop();
  profile_.duration_ns = monotonic_ns() - begin_ns_;
  take_until(UINT64_MAX);
  profile_.cpu_ns = own_cpu_ns() - begin_cpu_ns_;
  profile_.counts = source_->counts();
  return std::move(profile_);
}

// Why neither way to take stacks works, and what would make one of them work.
Error neither(const Error& bpf, const Error& perf) {
  if (perf.code != Code::permission_denied) return perf;
  const Result<std::string> level = read_file("/proc/sys/kernel/perf_event_paranoid");
  return {
      Code::permission_denied,
      "cannot take stacks: run it as root, or give it the capabilities CAP_BPF and CAP_PERFMON, "
      "or, to profile only processes of your own, set kernel.perf_event_paranoid to 2 (it is " +
          (level ? level->substr(0, level->find('\n')) : "unknown") + "): " + bpf.message,
      bpf.errno_value};
}

Result<Session> open(const Sampling& sampling) {
  allow_many_files();  // each module needs one
  Result<std::unique_ptr<Source>> source =
      sampling.bpf ? open_bpf_source(sampling) : open_perf_source(sampling);
  if (!source && sampling.bpf && !sampling.waits) {
    const Error why = source.error();
    source = open_perf_source(sampling);
    if (!source) return neither(why, source.error());
  }
  if (!source) return source.error();
  return Session(*std::move(source), sampling);
}

// Takes events until one of the descriptors is readable, or the time is over. Returns false when
// the time is over.
bool run(Session& session, int first, int second, std::optional<std::uint64_t> end_ns) {
  std::array<pollfd, 3> ready{pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0},
                              pollfd{session.fd(), POLLIN, 0}};
  for (;;) {
    const int got = ::poll(ready.data(), ready.size(), kRoundMs);
    session.round();
    if (got > 0 && (ready[0].revents != 0 || ready[1].revents != 0)) return true;
    if (end_ns && monotonic_ns() >= *end_ns) return false;
  }
}

std::optional<std::uint64_t> end_of(const Options& options) {
  if (!options.duration) return std::nullopt;
  return monotonic_ns() + to_nanos(*options.duration);
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

// Waits for the command. Signals that end programs are passed on to it.
int wait_for(pid_t pid, const record::Signals& signals) {
  while (!has_ended(pid)) {
    const int signal = signals.take();
    if (signal == SIGTERM || signal == SIGHUP) ::kill(pid, signal);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<Profile> profile_running(const Options& options) {
  FileDescriptor process;
  if (options.until_end_of != 0) {
    process = FileDescriptor(probe::open_process(options.until_end_of));
    if (!process.valid()) {
      return system_error("cannot profile process " + std::to_string(options.until_end_of), errno);
    }
  }
  const record::Signals signals({SIGINT, SIGTERM, SIGHUP});
  Result<Session> session = open(options.sampling);
  if (!session) return session.error();
  run(*session, process.get(), signals.fd(), end_of(options));
  return session->finish();
}

Result<CommandProfile> profile_command(const std::vector<std::string>& words, Options options) {
  Result<record::Command> command = record::Command::prepare(words);
  if (!command) return command.error();
  const record::Signals signals({SIGCHLD, SIGTERM, SIGHUP});
  const record::TerminalSignalsIgnored ignored;
  options.sampling.target = {Target::Kind::processes, {command->pid()}, {}};
  Result<Session> session = open(options.sampling);
  if (!session) return session.error();
  if (Result<void> begun = command->go(); !begun) return begun.error();
  const std::optional<std::uint64_t> end_ns = end_of(options);
  while (!has_ended(command->pid()) && run(*session, signals.fd(), -1, end_ns)) {
    const int signal = has_ended(command->pid()) ? 0 : signals.take();
    if (signal == SIGTERM || signal == SIGHUP) ::kill(command->pid(), signal);
  }
  CommandProfile done{session->finish(), 0};
  done.exit_code = wait_for(command->pid(), signals);
  return done;
}

}  // namespace kymo::stacks
