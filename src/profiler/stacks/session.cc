#include "profiler/stacks/session.h"

#include <poll.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc/process.h"
#include "base/reap.h"
#include "profiler/stacks/collection.h"
#include "recorder/programs/command.h"
#include "recorder/programs/signals.h"

namespace kymo::stacks {
namespace {

// Why neither way to take stacks works, and what would make one of them work.
Error no_source_error(const Error& bpf, const Error& perf) {
  if (perf.code != Code::permission_denied) return perf;
  const Result<std::string> level = read_file("/proc/sys/kernel/perf_event_paranoid");
  return {
      Code::permission_denied,
      "cannot take stacks: run it as root, or give it the capabilities CAP_BPF and CAP_PERFMON, "
      "or, to profile only processes of your own, set kernel.perf_event_paranoid to 2 (it is " +
          (level ? level->substr(0, level->find('\n')) : "unknown") + "): " + bpf.message,
      bpf.errno_value};
}

Result<Collection> open(const Sampling& sampling) {
  allow_many_files();  // each module needs one
  Result<std::unique_ptr<Source>> source =
      sampling.bpf ? open_bpf_source(sampling) : open_perf_source(sampling);
  if (!source && sampling.bpf && !sampling.waits) {
    const Error why = source.error();
    source = open_perf_source(sampling);
    if (!source) return no_source_error(why, source.error());
  }
  if (!source) return source.error();
  return Collection(*std::move(source), sampling);
}

// Takes events until one of the descriptors is readable, or the time is over. Returns false when
// the time is over.
bool run(Collection& session, int first, int second, std::optional<std::uint64_t> end_ns) {
  std::array<pollfd, 3> ready{pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0},
                              pollfd{session.fd(), POLLIN, 0}};
  for (;;) {
    const int got = ::poll(ready.data(), ready.size(), Collection::kRoundMs);
    session.round();
    if (got > 0 && (ready[0].revents != 0 || ready[1].revents != 0)) return true;
    if (end_ns && monotonic_ns() >= *end_ns) return false;
  }
}

std::optional<std::uint64_t> end_of(const Options& options) {
  if (!options.duration) return std::nullopt;
  return monotonic_ns() + to_nanos(*options.duration);
}

// Waits for the command. Signals that end programs are passed on to it.
int wait_for(pid_t pid, const record::Signals& signals) {
  while (!has_ended(pid)) {
    const int signal = signals.take();
    if (signal == SIGTERM || signal == SIGHUP) ::kill(pid, signal);
  }
  return shell_exit_code(reap(pid));
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
  Result<Collection> session = open(options.sampling);
  if (!session) return session.error();
  run(*session, process.get(), signals.fd(), end_of(options));
  return session->finish();
}

Result<CommandProfile> profile_command(const std::vector<std::string>& words, Options options) {
  Result<record::Command> command = record::Command::prepare(words);
  if (!command) return command.error();
  const record::Signals signals({SIGCHLD, SIGTERM, SIGHUP});
  const record::TerminalSignalsIgnored ignored;
  options.sampling.target = {Profiled::Kind::processes, {command->pid()}, {}};
  Result<Collection> session = open(options.sampling);
  if (!session) return session.error();
  session->skip_until_exec(command->pid());
  if (Result<void> begun = command->go(); !begun) return begun.error();
  session->has_executed();
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
