#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/human.h"
#include "base/proc/container_keeper.h"
#include "base/proc/process.h"
#include "checkpoint/inside/sources.h"
#include "checkpoint/inside/task_group.h"

namespace kymo::inside {
namespace {

struct Figure {
  const char* name;
  const char* help;
  Kind kind;
  Unit unit;
  std::uint64_t TaskTotals::*value;
};

constexpr std::array kCriuFigures = {
    Figure{"criu_cpu_ns", "CPU time of CRIU and of the runtime that started it", Kind::counter,
           Unit::nanoseconds, &TaskTotals::cpu_ns},
    Figure{"criu_cpu_wait_ns", "Time that CRIU was ready to run and had no CPU", Kind::counter,
           Unit::nanoseconds, &TaskTotals::wait_ns},
    Figure{"criu_disk_wait_ns", "Time that CRIU was seen waiting for a disk (state D)",
           Kind::counter, Unit::nanoseconds, &TaskTotals::disk_wait_ns},
    Figure{"criu_throttled_ns",
           "Part of criu_disk_wait_ns: too much memory waited to be written to disks",
           Kind::counter, Unit::nanoseconds, &TaskTotals::throttled_ns},
    Figure{"criu_stopped_ns", "Time that CRIU was seen stopped by a signal (state T)",
           Kind::counter, Unit::nanoseconds, &TaskTotals::stopped_ns},
    Figure{"criu_timeslices", "How often CRIU was given a CPU", Kind::counter, Unit::count,
           &TaskTotals::timeslices},
    Figure{"criu_read_calls", "System calls of CRIU that read, such as read(2)", Kind::counter,
           Unit::count, &TaskTotals::read_calls},
    Figure{"criu_write_calls", "System calls of CRIU that write, such as write(2)", Kind::counter,
           Unit::count, &TaskTotals::write_calls},
    Figure{"criu_read_bytes", "Bytes that CRIU fetched from disks", Kind::counter, Unit::bytes,
           &TaskTotals::read_bytes},
    Figure{"criu_written_bytes", "Bytes that CRIU wrote to files on disks", Kind::counter,
           Unit::bytes, &TaskTotals::written_bytes},
    Figure{"criu_minor_faults", "Page faults of CRIU without a disk", Kind::counter, Unit::count,
           &TaskTotals::minor_faults},
    Figure{"criu_major_faults", "Page faults of CRIU that waited for a disk", Kind::counter,
           Unit::count, &TaskTotals::major_faults},
    Figure{"criu_resident_bytes", "Memory of CRIU", Kind::gauge, Unit::bytes,
           &TaskTotals::resident_bytes},
    Figure{"criu_tasks", "Processes of CRIU", Kind::gauge, Unit::count, &TaskTotals::running}};

constexpr std::array kTargetFigures = {
    Figure{"target_running", "Threads of the target that are not stopped", Kind::gauge, Unit::count,
           &TaskTotals::running},
    Figure{"target_stopped", "Threads of the target that a signal has stopped", Kind::gauge,
           Unit::count, &TaskTotals::stopped},
    Figure{"target_traced", "Threads of the target that CRIU has stopped", Kind::gauge, Unit::count,
           &TaskTotals::traced},
    Figure{"target_gone", "Threads of the target that have ended", Kind::gauge, Unit::count,
           &TaskTotals::gone},
    Figure{"target_cpu_ns", "CPU time of the target", Kind::counter, Unit::nanoseconds,
           &TaskTotals::cpu_ns},
    Figure{"target_cpu_wait_ns", "Time that the target was ready to run and had no CPU",
           Kind::counter, Unit::nanoseconds, &TaskTotals::wait_ns},
    Figure{"target_disk_wait_ns", "Time that the target was seen waiting for a disk (state D)",
           Kind::counter, Unit::nanoseconds, &TaskTotals::disk_wait_ns},
    Figure{"target_timeslices", "How often the target was given a CPU", Kind::counter, Unit::count,
           &TaskTotals::timeslices},
    Figure{"target_minor_faults", "Page faults of the target without a disk", Kind::counter,
           Unit::count, &TaskTotals::minor_faults},
    Figure{"target_major_faults", "Page faults of the target that waited for a disk", Kind::counter,
           Unit::count, &TaskTotals::major_faults},
    Figure{"target_resident_bytes", "Memory of the target", Kind::gauge, Unit::bytes,
           &TaskTotals::resident_bytes}};

template <std::size_t N>
std::vector<Metric> metrics_of(const std::array<Figure, N>& figures) {
  std::vector<Metric> metrics;
  for (const Figure& figure : figures) {
    metrics.push_back({figure.name, figure.help, figure.kind, figure.unit, {}, {}});
  }
  return metrics;
}

template <std::size_t N>
void put(const TaskTotals& totals, const std::array<Figure, N>& figures,
         std::span<std::uint64_t> values) {
  for (std::size_t i = 0; i < N; ++i) values[i] = totals.*figures[i].value;
}

// Of many tasks, some are not looked at, and new ones are found late.
std::string too_many(const TaskGroup& group) {
  constexpr std::uint64_t kWorthTellingNs = 100'000'000;
  const std::uint64_t round_ns = group.longest_round_ns();
  std::string line = "the tasks of the target: ";
  if (group.left_out() != 0) {
    line += "only " + std::to_string(TaskGroup::kMaxTasks) + " are looked at, " +
            std::to_string(group.left_out()) + " more are not";
    if (round_ns >= kWorthTellingNs) line += "; ";
  } else if (round_ns < kWorthTellingNs) {
    return {};
  }
  if (round_ns >= kWorthTellingNs) line += "new ones are found within " + human::duration(round_ns);
  return line;
}

class CriuSource : public Source {
 public:
  CriuSource(const Observed& target, std::shared_ptr<Subjects> subjects, const std::string& proc)
      : subjects_(std::move(subjects)), proc_(proc), group_(TaskGroup::Depth::processes, proc) {
    if (target.container) tracee_ = target.pid;
    if (target.restores && target.pid != 0) {
      group_.is_other = [restored = target.pid](pid_t child) { return child == restored; };
    }
    if (target.restored_container.empty()) return;
    keeper_.emplace(target.restored_container, proc);
    group_.is_other = [this](pid_t child) { return is_of_container(child); };
  }

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }
  void read(std::uint64_t now_monotonic_ns, std::span<std::uint64_t> values) override {
    for (const pid_t pid : subjects_->take_started()) group_.add(pid);
    if (now_monotonic_ns >= next_look_ns_) {
      look();
      next_look_ns_ = now_monotonic_ns + kLookEveryNs;
    }
    TaskTotals totals = group_.read(now_monotonic_ns);
    totals.running += totals.stopped + totals.traced;  // all that live
    put(totals, kCriuFigures, values);
  }

 private:
  static constexpr std::uint64_t kLookEveryNs = 5'000'000;

  // Looks for a CRIU that is no descendant of this process.
  void look() {
    if (tracee_ != 0) {
      const Result<probe::Process> seen = probe::read_process(tracee_, proc_);
      if (!seen || seen->tracer == 0) return;
      group_.add(seen->tracer);
      subjects_->found_criu(seen->tracer);
      tracee_ = 0;
    }
    if (keeper_ && subjects_->target() == 0) {
      for (const pid_t pid : keeper_->look()) {
        group_.add(pid);
        subjects_->found_runtime(pid);
      }
    }
  }
  // A restored container has a pid namespace of its own.
  [[nodiscard]] bool is_of_container(pid_t child) const {
    std::error_code error;
    const auto own = std::filesystem::read_symlink(proc_ + "/self/ns/pid", error);
    if (error) return false;
    const auto its =
        std::filesystem::read_symlink(proc_ + "/" + std::to_string(child) + "/ns/pid", error);
    if (error || its == own) return false;
    subjects_->found_target(child);
    return true;
  }

  const std::vector<Metric> columns_ = metrics_of(kCriuFigures);
  const std::shared_ptr<Subjects> subjects_;
  const std::string proc_;
  TaskGroup group_;
  pid_t tracee_ = 0;                              // whose tracer is CRIU; 0: none, or found
  std::optional<probe::ContainerKeeper> keeper_;  // of a container that is restored
  std::uint64_t next_look_ns_ = 0;
};

class TargetSource : public Source {
 public:
  TargetSource(pid_t pid, std::shared_ptr<Subjects> subjects, const std::string& proc)
      : subjects_(std::move(subjects)), group_(TaskGroup::Depth::threads, proc), known_(pid != 0) {
    if (known_) group_.add(pid);
  }

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }
  void read(std::uint64_t now_monotonic_ns, std::span<std::uint64_t> values) override {
    if (const pid_t found = known_ ? 0 : subjects_->target(); found != 0) {
      group_.add(found);
      known_ = true;
    }
    put(group_.read(now_monotonic_ns), kTargetFigures, values);
  }
  [[nodiscard]] std::string missing() const override {
    return known_ ? too_many(group_) : "the processes of the container: they were not found";
  }
  [[nodiscard]] Sleeper sleeper() const override { return group_.longest_sleeper(); }
  [[nodiscard]] std::uint64_t longest_disk_wait_ns() const override {
    return group_.longest_sleeper().slept_ns;
  }

 private:
  const std::vector<Metric> columns_ = metrics_of(kTargetFigures);
  const std::shared_ptr<Subjects> subjects_;
  TaskGroup group_;
  bool known_;
};

}  // namespace

std::unique_ptr<Source> make_criu_source(const Observed& target, std::shared_ptr<Subjects> subjects,
                                         const std::string& proc) {
  return std::make_unique<CriuSource>(target, std::move(subjects), proc);
}

std::unique_ptr<Source> make_target_source(pid_t pid, std::shared_ptr<Subjects> subjects,
                                           const std::string& proc) {
  return std::make_unique<TargetSource>(pid, std::move(subjects), proc);
}

}  // namespace kymo::inside
