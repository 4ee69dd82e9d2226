#include "profiler/stacks/collector.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/helper_process.h"
#include "base/line_reader.h"
#include "base/proc/container_keeper.h"
#include "base/proc/process.h"
#include "profiler/stacks/collection.h"
#include "profiler/stacks/confined_pprof.h"

namespace kymo::stacks {
namespace {

// Finds the CRIU of a container that no child of the program has started: that of containerd and of
// Docker, which the container's shim starts.
class CriuOfShim {
 public:
  explicit CriuOfShim(const CollectorOrder& order) {
    if (order.container && !order.target.empty()) tracee_ = order.target.front();
    if (!order.restored_container.empty()) keeper_.emplace(order.restored_container);
  }

  // The shim of a container that is dumped.
  [[nodiscard]] std::vector<Starter> starters() const {
    const Result<probe::Process> target = probe::read_process(tracee_);
    const Result<probe::Process> parent =
        tracee_ == 0 || !target ? target : probe::read_process(target->parent);
    if (tracee_ == 0 || !parent || !parent->name.starts_with("containerd-shim")) return {};
    return {{parent->pid, true}};
  }
  [[nodiscard]] bool looks() const { return tracee_ != 0 || keeper_; }
  void look(Collection& collection) {
    if (tracee_ != 0) {
      const Result<probe::Process> seen = probe::read_process(tracee_);
      if (seen && seen->tracer != 0) {
        found(seen->tracer, collection);
        tracee_ = 0;
      }
    }
    if (!keeper_) return;
    for (const pid_t pid : keeper_->look()) {
      if (known_.insert(pid).second) found(pid, collection);
    }
  }

 private:
  static void found(pid_t pid, Collection& collection) {
    collection.know(pid);
    // Without it, the profile has fewer samples of CRIU.
    static_cast<void>(collection.add({pid, true}, probe::process_tree(pid)));
  }

  pid_t tracee_ = 0;  // whose tracer is CRIU; 0: none, or found
  std::optional<probe::ContainerKeeper> keeper_;
  std::set<pid_t> known_;
};

// Whether the sample is of CRIU, or of the runtime that starts it, or else of the target.
class Roles {
 public:
  explicit Roles(const CollectorOrder& order)
      : restored_(order.restored.begin(), order.restored.end()),
        restores_(order.target.empty()),
        container_(order.container) {}

  [[nodiscard]] const char* of(const Sample& sample) const {
    if (!sample.started) return kTargetRole;
    if (!restores_) return kCriuRole;
    // CRIU makes the processes that it restores. Those of a container have a pid namespace.
    const bool restored = container_ ? sample.pid_level > 0 : restored_.contains(sample.pid);
    return restored ? kTargetRole : kCriuRole;
  }

 private:
  std::set<pid_t> restored_;
  bool restores_;
  bool container_;
};

// Takes samples until the program says something, or has ended.
void take_samples(Collection& collection, CriuOfShim& outside, int orders) {
  constexpr int kLookMs = 5;
  std::array<pollfd, 2> ready{pollfd{orders, POLLIN, 0}, pollfd{collection.fd(), POLLIN, 0}};
  for (;;) {
    const int wait_ms = outside.looks() ? kLookMs : Collection::kRoundMs;
    const int got = ::poll(ready.data(), ready.size(), wait_ms);
    outside.look(collection);
    collection.round();
    if (got > 0 && ready[0].revents != 0) return;
  }
}

// The end of the life of a collector: labels, names and writes.
int finish(Profile profile, RequestSamples& samples, const std::vector<PhaseTimes>& phases,
           const std::string& path, int answers) {
  // The target runs again by now, and needs the CPU more.
  constexpr int kNice = 10;
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
  samples.move_to(profile, phases);
  if (path.empty()) return 0;
  const Result<std::string> file = confined_pprof(profile);
  const Result<void> written = file ? replace_file(path, *file) : file.error();
  if (!written) {
    write_line(answers, kFailed + written.error().message);
    return 1;
  }
  write_line(answers, kWritten + std::to_string(profile.sum().samples) + " " +
                          std::to_string(profile.counts.lost));
  return 0;
}

Sampling sampling_of(const CollectorOrder& order, const CriuOfShim& outside) {
  Sampling sampling;
  sampling.rate = order.rate;
  sampling.waits = order.waits;
  sampling.target.kind = Profiled::Kind::processes;
  sampling.target.pids = order.target;
  sampling.target.starters = outside.starters();
  if (order.starter != 0) sampling.target.starters.push_back({order.starter, false});
  return sampling;
}

int collect_for(const CollectorOrder& order, LineReader& orders, int answers) {
  CriuOfShim outside(order);
  const Sampling sampling = sampling_of(order, outside);
  Result<std::unique_ptr<Source>> source = open_bpf_source(sampling);
  if (!source) {
    write_line(answers, kFailed + why_no_bpf(source.error()));
    return 1;
  }
  RequestSamples samples;
  const Roles roles(order);
  Collection collection(*std::move(source), sampling,
                        [&](Trace trace, const Sample& sample,
                            const Processes::Process& /*process*/, std::uint64_t time_ns) {
                          trace.role = roles.of(sample);
                          samples.add(std::move(trace), time_ns);
                        });
  collection.know(::getppid());  // CRIU has its mappings until it executes its program
  for (const Starter& starter : sampling.target.starters) {
    if (starter.process) collection.know(starter.id);
  }
  write_line(answers, kReady);
  take_samples(collection, outside, orders.fd());
  const std::optional<std::string> line = orders.next();
  const auto phases = line ? phases_in(*line) : std::nullopt;
  if (!phases) return 0;
  return finish(collection.finish(), samples, *phases, order.output, answers);
}

}  // namespace

int collect(int orders, int answers) {
  answers = begin_helper("kymod-stacks", answers);
  allow_many_files();  // each module needs one
  LineReader lines(orders);
  const std::optional<std::string> line = lines.next();
  const auto order = line ? order_in(*line) : std::nullopt;
  if (!order) return 1;
  return collect_for(*order, lines, answers);
}

}  // namespace kymo::stacks
