#include "record/tree_metrics.h"

#include <array>
#include <utility>

#include "base/clock.h"
#include "probe/cgroup.h"
#include "probe/process_tree.h"

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

}  // namespace

struct TreeMetrics::State {
  probe::ProcessTree tree;
  probe::Cgroup cgroup;
  TreeTotals totals;
  std::uint64_t cgroup_memory_bytes = 0;  // as last read: the group may go before the recording
  std::uint64_t cgroup_cpu_ns = 0;

  Result<void> add_figures(Registry& registry);
  Result<void> add_cgroup(Registry& registry);
};

// A row's figures are of one reading of the tree: callbacks run in the order of registration, and
// that of the first reads.
Result<void> TreeMetrics::State::add_figures(Registry& registry) {
  bool first = true;
  for (const Figure& figure : kFigures) {
    Result<void> added =
        registry.callback({figure.name, figure.help, figure.kind, figure.unit, {}},
                          [this, first, value = figure.value] {
                            if (first) {
                              static_cast<void>(tree.read(monotonic_ns(), &totals));
                            }
                            return totals.*value;
                          });
    if (!added) {
      return added;
    }
    first = false;
  }
  return {};
}

Result<void> TreeMetrics::State::add_cgroup(Registry& registry) {
  Result<void> added;
  if (cgroup.memory_bytes()) {
    added = registry.callback({"cgroup_memory_bytes",
                               "Memory of the cgroup that the tree's root began in",
                               Kind::gauge,
                               Unit::bytes,
                               {}},
                              [this] {
                                cgroup_memory_bytes =
                                    cgroup.memory_bytes().value_or(cgroup_memory_bytes);
                                return cgroup_memory_bytes;
                              });
  }
  if (added && cgroup.cpu_ns()) {
    added = registry.callback({"cgroup_cpu_ns",
                               "CPU time of the cgroup that the tree's root began in",
                               Kind::counter,
                               Unit::nanoseconds,
                               {}},
                              [this] {
                                cgroup_cpu_ns = cgroup.cpu_ns().value_or(cgroup_cpu_ns);
                                return cgroup_cpu_ns;
                              });
  }
  return added;
}

TreeMetrics::TreeMetrics(std::unique_ptr<State> state) : state_(std::move(state)) {}
TreeMetrics::~TreeMetrics() = default;

Result<std::unique_ptr<TreeMetrics>> TreeMetrics::add(Registry& registry, pid_t root,
                                                      pid_t adopter) {
  Result<probe::ProcessTree> tree = probe::ProcessTree::open(root, adopter);
  if (!tree) {
    return tree.error();
  }
  std::unique_ptr<TreeMetrics> metrics(new TreeMetrics(
      std::make_unique<State>(State{*std::move(tree), probe::Cgroup(root), {}, 0, 0})));
  if (Result<void> added = metrics->state_->add_figures(registry); !added) {
    return added.error();
  }
  if (Result<void> added = metrics->state_->add_cgroup(registry); !added) {
    return added.error();
  }
  return metrics;
}

}  // namespace kymo::record
