#include "checkpoint/inside/bpf_source.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/proc/process.h"
#include "checkpoint/inside/call_classes.h"

namespace kymo::inside {
namespace {

// The classes of calls that have columns, in their order.
constexpr std::array kCallsOfCriu = {KYMO_DRAIN,  KYMO_WRITE, KYMO_READ,      KYMO_PAGEMAP,
                                     KYMO_PTRACE, KYMO_WAIT,  KYMO_SOCKET,    KYMO_OPEN,
                                     KYMO_MAP,    KYMO_FORK,  KYMO_OTHER_CALL};
constexpr std::array kCallsOfTarget = {KYMO_DRAIN, KYMO_READ, KYMO_MAP};

constexpr bool has_bytes(kymo_call call) {
  return call == KYMO_DRAIN || call == KYMO_WRITE || call == KYMO_READ || call == KYMO_SOCKET;
}

// Why a thread was off the CPU, in words; in the order of kymo_off.
constexpr std::array<const char*, KYMO_OFFS> kWhyOff = {
    "waited for something else",
    "waited for a disk, or for a program or machine that serves a file system (FUSE, NFS)",
    "waited in a call on a socket",
    "waited in a call that moves, reads or writes bytes",
    "waited for a process or a tracee",
    "was stopped by a signal or a tracer",
    "waited in no system call, mostly in a page fault"};

using Metrics = std::vector<Metric>;

void add_counter(Metrics& metrics, std::string name, Unit unit, std::string help) {
  metrics.push_back({std::move(name), std::move(help), Kind::counter, unit, {}, {}});
}

template <class Calls>
void add_role(Metrics& metrics, const std::string& prefix, const std::string& who,
              const Calls& calls, bool pages) {
  add_counter(metrics, prefix + "run_ns", Unit::nanoseconds, "Time that " + who + " used a CPU");
  add_counter(metrics, prefix + "runnable_ns", Unit::nanoseconds,
              "Time that " + who + " could run and had no CPU");
  for (std::size_t i = 0; i < KYMO_OFFS; ++i) {
    add_counter(metrics, prefix + "off_" + kOffNames[i] + "_ns", Unit::nanoseconds,
                "Time that " + who + " " + kWhyOff[i]);
  }
  for (const kymo_call call : calls) {
    const CallClass& is = kCallClasses[call];
    const std::string name = prefix + "sys_" + is.name;
    const std::string what = "system calls of " + who + " that " + is.shown;
    add_counter(metrics, name + "_calls", Unit::count, "Number of " + what);
    add_counter(metrics, name + "_ns", Unit::nanoseconds, "Time in " + what);
    if (has_bytes(call)) add_counter(metrics, name + "_bytes", Unit::bytes, "Bytes of " + what);
  }
  if (!pages) return;
  add_counter(metrics, prefix + "allocated_bytes", Unit::bytes,
              "Memory that the kernel has given " + who + ", also for files");
  add_counter(metrics, prefix + "user_faults", Unit::count, "Page faults of the program of " + who);
}

template <class Calls>
void put_role(const ThreadCounts& counts, const Calls& calls, bool pages,
              std::vector<std::uint64_t>::iterator& at) {
  const auto put = [&at](std::uint64_t value) {
    *at = std::max(*at, value);
    ++at;
  };
  put(counts.run_ns);
  put(counts.runnable_ns);
  for (const std::uint64_t off_ns : counts.off_ns) put(off_ns);
  for (const kymo_call call : calls) {
    put(counts.calls[call]);
    put(counts.call_ns[call]);
    if (has_bytes(call)) put(counts.call_bytes[call]);
  }
  if (!pages) return;
  put(counts.allocated_bytes);
  put(counts.user_faults);
}

}  // namespace

BpfSource::BpfSource(std::unique_ptr<BpfCounts::View> view, const Observed& target,
                     std::shared_ptr<Subjects> subjects, bool pages, bool criu)
    : view_(std::move(view)),
      subjects_(std::move(subjects)),
      restores_(target.restores),
      criu_(criu),
      pages_(pages),
      target_known_(target.pid != 0) {
  if (criu_) {
    add_counter(columns_, "memory_moved_bytes", Unit::bytes,
                "Memory of the target that was taken out of it, or read back into it");
    add_role(columns_, "criu_", "CRIU", kCallsOfCriu, pages_);
  }
  add_role(columns_, "target_", "the target", kCallsOfTarget, pages_);
  highest_.resize(columns_.size());
  if (target_known_ && !restores_) view_->look_at(probe::process_tree(target.pid), KYMO_TARGET);
}

void BpfSource::look() {
  if (!subjects_) return;
  for (const auto& [role, found] : {std::pair(KYMO_CRIU, subjects_->take_found_criu()),
                                    std::pair(KYMO_RUNTIME, subjects_->take_found_runtimes())}) {
    if (!found.empty()) view_->look_at(found, role);
  }
  if (target_known_) return;
  const pid_t target = subjects_->target();
  if (target == 0) return;
  target_known_ = true;
  view_->look_at(probe::process_tree(target), KYMO_TARGET);
}

void BpfSource::read(std::uint64_t, std::span<std::uint64_t> values) {
  look();
  auto at = highest_.begin();
  const ThreadCounts target = view_->read(KYMO_TARGET);
  longest_disk_wait_ns_ = std::max(longest_disk_wait_ns_, target.longest_disk_ns);
  if (criu_) {
    const ThreadCounts criu = view_->read(KYMO_CRIU);
    const kymo_call moves = restores_ ? KYMO_READ : KYMO_DRAIN;
    *at = std::max(*at, target.call_bytes[moves] + (restores_ ? 0 : criu.call_bytes[moves]));
    ++at;
    put_role(criu, kCallsOfCriu, pages_, at);
  }
  put_role(target, kCallsOfTarget, pages_, at);
  std::copy(highest_.begin(), highest_.end(), values.begin());
}

Result<std::unique_ptr<Source>> bpf_source_of_process(pid_t pid) {
  const Result<std::shared_ptr<BpfCounts>> counts = BpfCounts::load(false);
  if (!counts) return counts.error();
  Result<std::unique_ptr<BpfCounts::View>> view = (*counts)->begin(false, false);
  if (!view) return view.error();
  Observed target;
  target.pid = pid;
  return std::unique_ptr<Source>(
      std::make_unique<BpfSource>(*std::move(view), target, nullptr, false, false));
}

std::string BpfSource::missing() const {
  const std::size_t left_out = view_->left_out();
  if (left_out == 0) return {};
  return "BPF: only " + std::to_string(KYMO_VIEW_THREADS) + " threads are looked at, " +
         std::to_string(left_out) + " more are not";
}

}  // namespace kymo::inside
