#include "checkpoint/inside/bpf_counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/own_thread.h"
#include "base/process_identity.h"
#include "base/sanitizers.h"
#include "checkpoint/inside/call_classes.h"
// After the structures that it names.
#include "inside/inside.skel.h"

namespace kymo::inside {
namespace {

constexpr unsigned kRoleShift = 8;

struct DestroyInside {
  void operator()(inside_bpf* skeleton) const { inside_bpf__destroy(skeleton); }
};
struct DestroyInsideLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using InsideLinks = std::vector<std::unique_ptr<bpf_link, DestroyInsideLink>>;

// Each of them waits until all CPUs have left the program (a grace period of RCU): tens of
// milliseconds on a busy machine. No answer waits for that.
void detach_in_background(InsideLinks links) {
  if (links.empty()) return;
  const auto owned = std::make_shared<InsideLinks>(std::move(links));
  // If no thread can be started, they are detached here.
  static_cast<void>(on_own_thread([owned] { owned->clear(); }).ok());
}

Error refused(const char* what, int error) {
  Error result = system_error(std::string("BPF: ") + what, error);
  if (error == EPERM || error == EACCES) {
    result.code = Code::permission_denied;
    result.message +=
        "; give kymod the capabilities CAP_BPF and CAP_PERFMON, and let it call bpf(2)";
  } else {
    result.message += "; it needs Linux 5.18 or newer with BTF (CONFIG_DEBUG_INFO_BTF)";
  }
  return result;
}

// A copy of what one CPU at a time writes. If it was written in all of some tries, `to` stays as it
// was.
void copy_thread(const kymo_thread& from, kymo_thread& to) {
  constexpr int kTries = 8;
  kymo_thread copy{};
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = __atomic_load_n(&from.writes, __ATOMIC_ACQUIRE);
    std::memcpy(&copy, &from, sizeof copy);
#if !KYMO_THREAD_SANITIZER  // which knows neither fences nor the kernel's program, which writes
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
    if (before % 2 == 0 && __atomic_load_n(&from.writes, __ATOMIC_RELAXED) == before) {
      to = copy;
      return;
    }
  }
}

std::uint64_t since(std::uint64_t then_ns, std::uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

void add(const kymo_thread& thread, std::uint64_t now_ns, ThreadCounts& counts) {
  counts.run_ns += thread.run_ns;
  counts.runnable_ns += thread.runnable_ns;
  counts.switches += thread.switches;
  std::array<std::uint64_t, KYMO_OFFS> off_ns{};
  std::copy(std::begin(thread.off_ns), std::end(thread.off_ns), off_ns.begin());
  for (std::size_t i = 0; i < KYMO_CALLS; ++i) {
    counts.calls[i] += thread.calls[i];
    counts.call_ns[i] += thread.call_ns[i];
    counts.call_bytes[i] += thread.call_bytes[i];
  }
  counts.allocated_bytes += thread.allocated_bytes;
  counts.user_faults += thread.user_faults;
  const std::uint64_t time_ns = since(thread.since_ns, now_ns);
  if (thread.state == KYMO_RUNS) counts.run_ns += time_ns;
  if (thread.state == KYMO_RUNNABLE) counts.runnable_ns += time_ns;
  if (thread.state == KYMO_OFF && thread.reason < KYMO_OFFS) off_ns.at(thread.reason) += time_ns;
  for (std::size_t i = 0; i < KYMO_OFFS; ++i) counts.off_ns[i] += off_ns[i];
  counts.longest_disk_ns = std::max(counts.longest_disk_ns, off_ns[KYMO_OFF_DISK]);
  const std::size_t call = (thread.call - 1) & ~std::size_t{KYMO_HAS_BYTES};
  if (thread.call != 0 && call < KYMO_CALLS && thread.timing != KYMO_ESTIMATED) {
    counts.call_ns[call] += since(thread.entered_ns, now_ns);
  }
}

}  // namespace

struct BpfCounts::Loaded {
  std::unique_ptr<inside_bpf, DestroyInside> skeleton;
  std::mutex mutex;  // guards what follows, and the maps
  InsideLinks links;
  std::array<bool, KYMO_VIEWS> used{};
  std::uint32_t generation = 0;

  [[nodiscard]] int wanted() const { return bpf_map__fd(skeleton->maps.wanted); }
  [[nodiscard]] int starters() const { return bpf_map__fd(skeleton->maps.starters); }
  // Lets `adopt` look at all tasks of the machine.
  void adopt() const {
    const std::unique_ptr<bpf_link, DestroyInsideLink> link(
        bpf_program__attach_iter(skeleton->progs.adopt, nullptr));
    if (!link) return;
    const FileDescriptor tasks(bpf_iter_create(bpf_link__fd(link.get())));
    std::array<char, 64> nothing{};
    while (tasks.valid() && ::read(tasks.get(), nothing.data(), nothing.size()) > 0) {
    }
  }
};

BpfCounts::BpfCounts(std::unique_ptr<Loaded> loaded, bool pages)
    : loaded_(std::move(loaded)), pages_(pages) {}
BpfCounts::~BpfCounts() = default;

Result<std::shared_ptr<BpfCounts>> BpfCounts::load(bool pages) {
  if (const std::uint64_t own = own_pid_namespace(); own != 0 && own != kFirstPidNamespace) {
    return Error{Code::failed_precondition,
                 "BPF: kymod runs in a container, in which processes have other pids than for the "
                 "kernel; run it on the host"};
  }
  ::libbpf_set_print(nullptr);
  auto loaded = std::make_unique<Loaded>();
  loaded->skeleton.reset(inside_bpf__open());
  if (!loaded->skeleton) return refused("open the program", errno);
  const auto classes = call_classes();
  std::memcpy(const_cast<unsigned char*>(loaded->skeleton->rodata->class_of), classes.data(),
              classes.size());
  for (std::size_t i = 0; i < KYMO_CALLS; ++i) {
    const_cast<unsigned char*>(loaded->skeleton->rodata->off_of)[i] =
        static_cast<unsigned char>(kCallClasses[i].off);
  }
  const_cast<long&>(loaded->skeleton->rodata->number_of_write) = SYS_write;
  const_cast<long&>(loaded->skeleton->rodata->number_of_splice) = SYS_splice;
  bpf_program__set_autoload(loaded->skeleton->progs.on_allocation, pages);
  bpf_program__set_autoload(loaded->skeleton->progs.on_fault, pages);
  if (const int error = inside_bpf__load(loaded->skeleton.get()); error != 0) {
    return refused("load the program", -error);
  }
  return std::make_shared<BpfCounts>(std::move(loaded), pages);
}

Result<void> BpfCounts::attach() {
  inside_bpf& skeleton = *loaded_->skeleton;
  std::vector<bpf_program*> programs{skeleton.progs.on_fork,   skeleton.progs.on_exec,
                                     skeleton.progs.on_wakeup, skeleton.progs.on_switch,
                                     skeleton.progs.on_enter,  skeleton.progs.on_exit};
  if (pages_) {
    programs.push_back(skeleton.progs.on_allocation);
    programs.push_back(skeleton.progs.on_fault);
  }
  for (bpf_program* const program : programs) {
    bpf_link* const link = bpf_program__attach(program);
    if (link == nullptr) {
      const int error = errno;
      loaded_->links.clear();
      return refused("attach the program", error);
    }
    loaded_->links.emplace_back(link);
  }
  return {};
}

Result<std::unique_ptr<BpfCounts::View>> BpfCounts::begin(bool container, bool restores) {
  const std::lock_guard lock(loaded_->mutex);
  auto& used = loaded_->used;
  const auto free = std::find(used.begin(), used.end(), false);
  if (free == used.end()) {
    return Error{Code::resource_exhausted,
                 "BPF: " + std::to_string(KYMO_VIEWS) + " other requests are looked at already"};
  }
  if (loaded_->links.empty()) {
    if (Result<void> attached = attach(); !attached) return attached.error();
  }
  *free = true;
  const auto index = static_cast<std::size_t>(free - used.begin());
  auto& bss = *loaded_->skeleton->bss;
  const auto threads = std::span(bss.seen).subspan(index * KYMO_VIEW_THREADS, KYMO_VIEW_THREADS);
  std::fill(threads.begin(), threads.end(), kymo_thread{});
  bss.views[index].threads = 0;
  bss.views[index].container = container ? 1 : 0;
  bss.views[index].restores = restores ? 1 : 0;
  if (++loaded_->generation == 0) loaded_->generation = 1;
  __atomic_store_n(&bss.views[index].generation, loaded_->generation, __ATOMIC_RELEASE);
  return std::make_unique<View>(shared_from_this(), index);
}

BpfCounts::View::View(std::shared_ptr<BpfCounts> counts, std::size_t index)
    : counts_(std::move(counts)), index_(index), threads_(KYMO_VIEW_THREADS) {}

BpfCounts::View::~View() {
  InsideLinks unused;
  Loaded& loaded = *counts_->loaded_;
  const std::lock_guard lock(loaded.mutex);
  __atomic_store_n(&loaded.skeleton->bss->views[index_].generation, 0, __ATOMIC_RELEASE);
  for (const pid_t pid : expected_) bpf_map_delete_elem(loaded.wanted(), &pid);
  if (followed_ != 0) bpf_map_delete_elem(loaded.starters(), &followed_);
  loaded.used[index_] = false;
  if (std::none_of(loaded.used.begin(), loaded.used.end(), [](bool is) { return is; })) {
    unused.swap(loaded.links);
  }
  detach_in_background(std::move(unused));
}

void BpfCounts::View::follow(pid_t thread) {
  const std::lock_guard lock(counts_->loaded_->mutex);
  followed_ = thread;
  const auto view = static_cast<std::uint32_t>(index_);
  bpf_map_update_elem(counts_->loaded_->starters(), &thread, &view, BPF_ANY);
}

void BpfCounts::View::expect(const std::vector<pid_t>& processes) {
  const std::lock_guard lock(counts_->loaded_->mutex);
  const auto value = static_cast<std::uint32_t>(index_ | KYMO_TARGET << kRoleShift);
  for (const pid_t pid : processes) {
    expected_.push_back(pid);
    bpf_map_update_elem(counts_->loaded_->wanted(), &pid, &value, BPF_ANY);
  }
}

void BpfCounts::View::look_at(const std::vector<pid_t>& processes, kymo_role role) {
  const std::lock_guard lock(counts_->loaded_->mutex);
  const int wanted = counts_->loaded_->wanted();
  const auto value = static_cast<std::uint32_t>(index_ | static_cast<unsigned>(role) << kRoleShift);
  for (const pid_t pid : processes) bpf_map_update_elem(wanted, &pid, &value, BPF_ANY);
  counts_->loaded_->adopt();
  for (const pid_t pid : processes) bpf_map_delete_elem(wanted, &pid);
}

ThreadCounts BpfCounts::View::read(kymo_role role) {
  const auto& bss = *counts_->loaded_->skeleton->bss;
  const std::size_t found = __atomic_load_n(&bss.views[index_].threads, __ATOMIC_ACQUIRE);
  const std::size_t count = std::min<std::size_t>(found, KYMO_VIEW_THREADS);
  ThreadCounts counts;
  for (std::size_t i = 0; i < count; ++i) {
    const kymo_thread& thread = bss.seen[index_ * KYMO_VIEW_THREADS + i];
    if (thread.role != role) continue;
    copy_thread(thread, threads_[i]);
    add(threads_[i], monotonic_ns(), counts);
  }
  return counts;
}

std::size_t BpfCounts::View::left_out() const {
  const std::size_t found =
      __atomic_load_n(&counts_->loaded_->skeleton->bss->views[index_].threads, __ATOMIC_ACQUIRE);
  return found - std::min<std::size_t>(found, KYMO_VIEW_THREADS);
}

}  // namespace kymo::inside
