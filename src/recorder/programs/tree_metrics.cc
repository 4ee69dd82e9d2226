#include "recorder/programs/tree_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/proc/cgroup.h"
#include "base/proc/poller.h"
#include "base/proc/process_tree.h"
#include "base/reading_age.h"

namespace kymo::record {
namespace {

using probe::TreeTotals;

struct Figure {
  const char* name;
  const char* help;
  Kind kind;
  Unit unit;
  std::uint64_t TreeTotals::*value;
};

constexpr std::array kFigures = {
    Figure{"tree_cpu_ns", "CPU time of the process tree", Kind::counter, Unit::nanoseconds,
           &TreeTotals::cpu_ns},
    Figure{"tree_user_us", "CPU time in user mode, in clock ticks of the kernel", Kind::counter,
           Unit::microseconds, &TreeTotals::user_us},
    Figure{"tree_system_us", "CPU time in the kernel, in clock ticks of the kernel", Kind::counter,
           Unit::microseconds, &TreeTotals::system_us},
    Figure{"tree_read_bytes", "Bytes read by system calls, from anything", Kind::counter,
           Unit::bytes, &TreeTotals::read_bytes},
    Figure{"tree_written_bytes", "Bytes written by system calls, to anything", Kind::counter,
           Unit::bytes, &TreeTotals::written_bytes},
    Figure{"tree_disk_read_bytes", "Bytes fetched from disks", Kind::counter, Unit::bytes,
           &TreeTotals::disk_read_bytes},
    Figure{"tree_disk_written_bytes", "Bytes caused to be sent to disks", Kind::counter,
           Unit::bytes, &TreeTotals::disk_written_bytes},
    Figure{"tree_minor_faults", "Page faults without a disk", Kind::counter, Unit::count,
           &TreeTotals::minor_faults},
    Figure{"tree_major_faults", "Page faults that waited for a disk", Kind::counter, Unit::count,
           &TreeTotals::major_faults},
    Figure{"tree_voluntary_switches", "Context switches of threads that had to wait", Kind::counter,
           Unit::count, &TreeTotals::voluntary_switches},
    Figure{"tree_involuntary_switches", "Context switches of threads that were put off the CPU",
           Kind::counter, Unit::count, &TreeTotals::involuntary_switches},
    Figure{"tree_resident_bytes", "Memory resident, shared pages counted for each process",
           Kind::gauge, Unit::bytes, &TreeTotals::resident_bytes},
    Figure{"tree_processes", "Processes of the tree", Kind::gauge, Unit::count,
           &TreeTotals::processes},
    Figure{"tree_threads", "Threads of the tree", Kind::gauge, Unit::count, &TreeTotals::threads},
    Figure{"tree_stopped", "Processes stopped by a signal or a tracer, as while they are dumped",
           Kind::gauge, Unit::count, &TreeTotals::stopped}};

// The words of a reading: kFigures in their order, then the values of the cgroup.
constexpr std::size_t kCgroupMemory = kFigures.size();
constexpr std::size_t kCgroupCpu = kCgroupMemory + 1;
constexpr std::size_t kWords = kCgroupCpu + 1;

}  // namespace

struct TreeMetrics::State {
  State(probe::ProcessTree own_tree, probe::Cgroup own_cgroup, std::chrono::nanoseconds interval)
      : tree(std::move(own_tree)),
        cgroup(std::move(own_cgroup)),
        poller(kWords, interval, [this](std::uint64_t* words) { read(words); }) {}

  probe::ProcessTree tree;
  probe::Cgroup cgroup;
  // read() keeps the last values, because the cgroup may be removed before the recording ends.
  TreeTotals totals;
  std::uint64_t cgroup_memory_bytes = 0;
  std::uint64_t cgroup_cpu_ns = 0;
  probe::Poller poller;            // destroyed before the members that its thread uses
  probe::Poller::Reading reading;  // of the row that is being sampled

  void read(std::uint64_t* words);
  Result<void> add(Registry& registry, const char* name, const char* help, Kind kind, Unit unit,
                   std::size_t word);
  Result<void> add_age(Registry& registry, std::string_view column);
  Result<void> add_figures(Registry& registry);
  Result<void> add_cgroup(Registry& registry);
};

void TreeMetrics::State::read(std::uint64_t* words) {
  static_cast<void>(tree.read(monotonic_ns(), &totals));
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    words[i] = totals.*kFigures.at(i).value;
  }
  words[kCgroupMemory] = cgroup_memory_bytes = cgroup.memory_bytes().value_or(cgroup_memory_bytes);
  // The CPU time of the root cgroup comes from the same counts as /proc/stat, which can go back.
  words[kCgroupCpu] = cgroup_cpu_ns = std::max(cgroup_cpu_ns, cgroup.cpu_ns().value_or(0));
}

Result<void> TreeMetrics::State::add(Registry& registry, const char* name, const char* help,
                                     Kind kind, Unit unit, std::size_t word) {
  return registry.callback({name, help, kind, unit, {}},
                           [this, word] { return reading.words[word]; });
}

Result<void> TreeMetrics::State::add_age(Registry& registry, std::string_view column) {
  return registry.callback({age_column_of(column),
                            "Time since the figures of the tree and its cgroup were read",
                            Kind::gauge,
                            Unit::nanoseconds,
                            {}},
                           [this] {
                             const std::uint64_t now_ns = monotonic_ns();
                             return now_ns - std::min(now_ns, reading.at_ns);
                           });
}

// All figures of a row come from one reading. The callbacks run in the order of registration, and
// the first one takes the reading.
Result<void> TreeMetrics::State::add_figures(Registry& registry) {
  Result<void> added = registry.callback(
      {kFigures[0].name, kFigures[0].help, kFigures[0].kind, kFigures[0].unit, {}}, [this] {
        reading = poller.take();
        return reading.words[0];
      });
  for (std::size_t i = 1; added && i < kFigures.size(); ++i) {
    const Figure& figure = kFigures.at(i);
    added = add(registry, figure.name, figure.help, figure.kind, figure.unit, i);
  }
  return added ? add_age(registry, kFigures[0].name) : added;
}

Result<void> TreeMetrics::State::add_cgroup(Registry& registry) {
  Result<void> added;
  if (cgroup.memory_bytes()) {
    added =
        add(registry, "cgroup_memory_bytes", "Memory of the cgroup that the tree's root began in",
            Kind::gauge, Unit::bytes, kCgroupMemory);
  }
  if (added && cgroup.cpu_ns()) {
    added = add(registry, "cgroup_cpu_ns", "CPU time of the cgroup that the tree's root began in",
                Kind::counter, Unit::nanoseconds, kCgroupCpu);
  }
  if (added && (cgroup.memory_bytes() || cgroup.cpu_ns())) added = add_age(registry, "cgroup_");
  return added;
}

TreeMetrics::TreeMetrics(std::unique_ptr<State> state) : state_(std::move(state)) {}
TreeMetrics::~TreeMetrics() = default;

void TreeMetrics::start() {
  state_->poller.start();
}

void TreeMetrics::finish() {
  state_->poller.stop();
}

Result<std::unique_ptr<TreeMetrics>> TreeMetrics::add(Registry& registry, pid_t root, pid_t adopter,
                                                      std::chrono::nanoseconds interval) {
  Result<probe::ProcessTree> tree = probe::ProcessTree::open(root, adopter);
  if (!tree) {
    return tree.error();
  }
  std::unique_ptr<TreeMetrics> metrics(
      new TreeMetrics(std::make_unique<State>(*std::move(tree), probe::Cgroup(root), interval)));
  if (Result<void> added = metrics->state_->add_figures(registry); !added) {
    return added.error();
  }
  if (Result<void> added = metrics->state_->add_cgroup(registry); !added) {
    return added.error();
  }
  return metrics;
}

}  // namespace kymo::record
