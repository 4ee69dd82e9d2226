#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/proc/cgroup.h"
#include "base/proc/proc_file.h"
#include "checkpoint/inside/sources.h"

namespace kymo::inside {
namespace {

using probe::ProcFile;

constexpr std::uint64_t kSectorBytes = 512;  // of the kernel's statistics, whatever the disk has
constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kNsPerUs = 1000;

Metric counter(const char* name, Unit unit, const char* help) {
  return {name, help, Kind::counter, unit, {}, {}};
}

Metric gauge(const char* name, Unit unit, const char* help) {
  return {name, help, Kind::gauge, unit, {}, {}};
}

// The first line of /proc/stat is "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ..." in clock
// ticks, /proc/meminfo has "NAME: NUMBER kB" (proc(5)). The first line of /proc/pressure/memory is
// "some avg10=... total=MICROSECONDS" (the kernel's Documentation/accounting/psi.rst).
class MachineSource : public Source {
 public:
  explicit MachineSource(const std::string& proc)
      : stat_(proc + "/stat"), meminfo_(proc + "/meminfo"), pressure_(proc + "/pressure/memory") {
    if (!read_pressure()) return;
    columns_.push_back(counter("machine_memory_wait_ns", Unit::nanoseconds,
                               "Time that some task of the machine waited for memory"));
  }

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }

  // Each file costs 3 to 10 µs, and its values change only every 4 ms or more.
  [[nodiscard]] unsigned every() const override { return 10; }

  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    constexpr std::size_t kPressure = 6;
    read_cpu();
    read_memory();
    if (values.size() > kPressure) {
      read_pressure();
      values[kPressure] = memory_wait_ns_;
    }
    values[0] = busy_ns_;
    values[1] = steal_ns_;
    values[2] = idle_ns_;
    values[3] = dirty_;
    values[4] = writeback_;
    values[5] = available_;
  }

 private:
  void read_cpu() {
    std::string_view text = stat_.read(buffer_);
    if (!text.starts_with("cpu ")) return;
    text.remove_prefix(4);
    std::array<std::uint64_t, 8> ticks{};
    for (std::uint64_t& one : ticks) one = probe::take_number(text);
    const auto [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    busy_ns_ = (user + nice + system + irq + softirq) * tick_ns_;
    steal_ns_ = steal * tick_ns_;
    idle_ns_ = (idle + iowait) * tick_ns_;
  }
  void read_memory() {
    const std::string_view text = meminfo_.read(buffer_);
    if (text.empty()) return;
    dirty_ = probe::value_of(text, "Dirty") * kKiB;
    writeback_ = probe::value_of(text, "Writeback") * kKiB;
    available_ = probe::value_of(text, "MemAvailable") * kKiB;
  }
  // Returns false if the kernel does not say it.
  bool read_pressure() {
    constexpr std::string_view kTotal = "total=";
    const std::string_view text = pressure_.read(buffer_);
    const std::size_t at = text.find(kTotal);
    if (!text.starts_with("some ") || at == std::string_view::npos) return false;
    memory_wait_ns_ = probe::number_at(text.substr(at + kTotal.size())) * kNsPerUs;
    return true;
  }

  std::vector<Metric> columns_ = {
      counter("machine_cpu_ns", Unit::nanoseconds, "CPU time of all processes of the machine"),
      counter("machine_steal_ns", Unit::nanoseconds, "CPU time that the hypervisor gave to others"),
      counter("machine_idle_ns", Unit::nanoseconds, "Time that CPUs had nothing to run"),
      gauge("machine_dirty_bytes", Unit::bytes, "Memory that waits to be written to disks"),
      gauge("machine_writeback_bytes", Unit::bytes, "Memory that is being written to disks"),
      gauge("machine_free_bytes", Unit::bytes,
            "Memory that programs can still get (MemAvailable)")};
  const std::uint64_t tick_ns_ = 1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const ProcFile stat_;
  const ProcFile meminfo_;
  const ProcFile pressure_;
  ProcFile::Buffer buffer_{};
  std::uint64_t busy_ns_ = 0;
  std::uint64_t steal_ns_ = 0;
  std::uint64_t idle_ns_ = 0;
  std::uint64_t dirty_ = 0;
  std::uint64_t writeback_ = 0;
  std::uint64_t available_ = 0;
  std::uint64_t memory_wait_ns_ = 0;
};

// The path of the statistics of the block device below a folder. Major number 0 is a file system
// without a block device, such as tmpfs.
std::string statistics_of(const std::string& folder, const std::string& sys) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || major(status.st_dev) == 0) return {};
  return sys + "/dev/block/" + std::to_string(major(status.st_dev)) + ":" +
         std::to_string(minor(status.st_dev)) + "/stat";
}

// The fields are in the kernel's Documentation/block/stat.rst.
class DiskSource : public Source {
 public:
  DiskSource(std::string folder, const std::string& path)
      : folder_(std::move(folder)), stat_(path) {
    if (!stat_.valid()) return;
    columns_ = {
        counter("disk_read_bytes", Unit::bytes, "Bytes read from the disk of the images"),
        counter("disk_written_bytes", Unit::bytes, "Bytes written to the disk of the images"),
        counter("disk_busy_ns", Unit::nanoseconds, "Time that the disk of the images was busy"),
        gauge("disk_in_flight", Unit::count, "Requests that the disk of the images works on")};
  }

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }

  [[nodiscard]] unsigned every() const override { return 5; }

  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    if (columns_.empty()) return;
    std::string_view text = stat_.read(buffer_);
    if (text.empty()) return;
    std::array<std::uint64_t, 10> fields{};
    for (std::uint64_t& one : fields) one = probe::take_number(text);
    constexpr std::size_t kSectorsRead = 2;
    constexpr std::size_t kSectorsWritten = 6;
    constexpr std::size_t kInFlight = 8;
    constexpr std::size_t kBusyMs = 9;
    values[0] = fields[kSectorsRead] * kSectorBytes;
    values[1] = fields[kSectorsWritten] * kSectorBytes;
    values[2] = fields[kBusyMs] * kNsPerMs;
    values[3] = fields[kInFlight];
  }

  [[nodiscard]] std::string missing() const override {
    return columns_.empty() ? "the disk of " + folder_ + ": its file system has no block device"
                            : std::string();
  }

 private:
  const std::string folder_;
  const ProcFile stat_;
  std::vector<Metric> columns_;
  ProcFile::Buffer buffer_{};
};

// Whether the process is in another cgroup than kymod in the first of these hierarchies that it has: a
// process that is restored begins in the cgroup of CRIU, and CRIU possibly in that of kymod.
bool has_left(pid_t pid, std::initializer_list<const char*> hierarchies) {
  for (const char* hierarchy : hierarchies) {
    if (const auto its = pid == 0 ? std::nullopt : probe::cgroup_path(pid, hierarchy)) {
      return its != probe::cgroup_path(::getpid(), hierarchy);
    }
  }
  return false;
}

class CgroupSource : public Source {
 public:
  CgroupSource(pid_t pid, std::shared_ptr<Subjects> subjects)
      : subjects_(std::move(subjects)), cgroup_(pid != 0 ? pid : ::getpid()), known_(pid != 0) {
    if (cgroup_.cpu_ns()) {
      columns_.push_back(counter("cgroup_cpu_ns", Unit::nanoseconds, "CPU time of the container"));
    }
    has_memory_ = cgroup_.memory_bytes().has_value();
    if (has_memory_) {
      columns_.push_back(gauge("cgroup_memory_bytes", Unit::bytes, "Memory of the container"));
    }
  }

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }

  [[nodiscard]] unsigned every() const override { return 4; }

  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    if (!known_) find();
    if (!known_) return;
    if (columns_.size() > (has_memory_ ? 1U : 0U)) {
      values.front() = cgroup_.cpu_ns().value_or(values.front());
    }
    if (has_memory_) values.back() = cgroup_.memory_bytes().value_or(values.back());
  }

  [[nodiscard]] std::string missing() const override {
    if (columns_.empty()) return "the container's cgroup: it cannot be read";
    return known_ ? "" : "the container's cgroup: it was not found";
  }

 private:
  void find() {
    const pid_t pid = subjects_->target();
    known_ = has_left(pid, {"memory", "cpuacct", ""});
    if (known_) cgroup_ = probe::Cgroup(pid);
  }

  const std::shared_ptr<Subjects> subjects_;
  probe::Cgroup cgroup_;
  bool known_;
  std::vector<Metric> columns_;
  bool has_memory_ = false;
};

// How long the limits of a cgroup have held up its programs.
class HeldUp {
 public:
  HeldUp() = default;  // by nothing
  // From now on. `is_new`: all that its own cgroup has waited counts, which was made for it.
  explicit HeldUp(pid_t pid, bool is_new = false)
      : limits_(pid), waited_ns_(is_new ? limits_.waited_above_ns() : limits_.waited_ns()) {}

  // Since the last call.
  [[nodiscard]] std::uint64_t more_ns() {
    const std::uint64_t before = std::exchange(waited_ns_, limits_.waited_ns());
    return waited_ns_ - std::min(before, waited_ns_);
  }

 private:
  probe::CpuQuotas limits_;
  std::uint64_t waited_ns_ = 0;
};

class QuotaSource : public Source {
 public:
  QuotaSource(const Observed& target, std::shared_ptr<Subjects> subjects)
      : subjects_(std::move(subjects)),
        kymod_(::getpid()),
        target_pid_(target.pid),
        target_known_(!target.restores),
        target_(target_known_ ? HeldUp(target.pid) : HeldUp()) {}

  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }

  [[nodiscard]] unsigned every() const override { return 10; }

  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    find();
    // Often both are in one cgroup.
    values[0] += std::max(kymod_.more_ns(), criu_.more_ns());
    values[1] += target_.more_ns();
  }

 private:
  // CRIU that another program starts is in a cgroup of that program, or in the new one of the container
  // that it restores.
  void find() {
    const pid_t restored = target_pid_ != 0 ? target_pid_ : subjects_->target();
    if (!target_known_ && has_left(restored, {"cpu", ""})) {
      target_ = HeldUp(restored, target_pid_ == 0);
      target_known_ = true;
    }
    const pid_t criu = found_ ? 0 : subjects_->criu();
    if (criu == 0) return;
    criu_ = HeldUp(criu);
    found_ = true;
  }

  const std::vector<Metric> columns_ = {
      counter("quota_criu_wait_ns", Unit::nanoseconds,
              "Time that a limit of CPU time held up programs of CRIU's cgroup or of kymod's"),
      counter("quota_target_wait_ns", Unit::nanoseconds,
              "Time that a limit of CPU time held up programs of the target's cgroup")};
  const std::shared_ptr<Subjects> subjects_;
  HeldUp kymod_;
  HeldUp criu_;
  const pid_t target_pid_;
  bool target_known_;
  HeldUp target_;
  bool found_ = false;
};

class KymodSource : public Source {
 public:
  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }

  [[nodiscard]] unsigned every() const override { return 10; }

  void read(std::uint64_t, std::span<std::uint64_t> values) override {
    timespec used{};
    if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) values[0] = to_nanos(used);
  }

 private:
  const std::vector<Metric> columns_ = {
      counter("kymod_cpu_ns", Unit::nanoseconds, "CPU time of kymod itself")};
};

}  // namespace

std::unique_ptr<Source> make_kymod_source() {
  return std::make_unique<KymodSource>();
}

std::unique_ptr<Source> make_machine_source(const std::string& proc) {
  return std::make_unique<MachineSource>(proc);
}

std::unique_ptr<Source> make_disk_source(const std::string& folder, const std::string& sys) {
  return std::make_unique<DiskSource>(folder, statistics_of(folder, sys));
}

std::unique_ptr<Source> make_cgroup_source(pid_t pid, std::shared_ptr<Subjects> subjects) {
  return std::make_unique<CgroupSource>(pid, std::move(subjects));
}

std::unique_ptr<Source> make_quota_source(const Observed& target,
                                          std::shared_ptr<Subjects> subjects) {
  return std::make_unique<QuotaSource>(target, std::move(subjects));
}

std::vector<std::unique_ptr<Source>> make_sources(const Observed& target,
                                                  std::shared_ptr<Subjects> subjects) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(make_criu_source(target, subjects));
  const bool known = target.pid != 0 || !target.restored_container.empty();
  if (known) sources.push_back(make_target_source(target.pid, subjects));
  if (known && target.container) sources.push_back(make_cgroup_source(target.pid, subjects));
  sources.push_back(make_quota_source(target, subjects));
  sources.push_back(make_machine_source());
  sources.push_back(make_kymod_source());
  sources.push_back(make_disk_source(target.images_dir));
  return sources;
}

}  // namespace kymo::inside
