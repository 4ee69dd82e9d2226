#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/process_identity.h"
#include "profiler/stacks/perf_ring.h"
#include "profiler/stacks/source.h"
#include "profiler/stacks/wire.h"
#include "stacks/stacks.skel.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kSideRingBytes = std::size_t{1} << 19U;
// The place of each of DWARF's registers in the kernel's struct pt_regs.
constexpr std::array<std::uint8_t, kRegisters> kPlaces{10, 12, 11, 5, 13, 14, 4, 19, 9,
                                                       8,  7,  6,  3, 2,  1,  0, 16};

struct DestroySkeleton {
  void operator()(stacks_bpf* skeleton) const { stacks_bpf__destroy(skeleton); }
};
struct FreeRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Skeleton = std::unique_ptr<stacks_bpf, DestroySkeleton>;
using Link = std::unique_ptr<bpf_link, DestroyLink>;

std::vector<std::uint64_t> addresses(const __u64* from, __s32 bytes) {
  if (bytes <= 0) return {};
  return {from, from + static_cast<std::size_t>(bytes) / sizeof *from};
}

std::string text(const char (&name)[KYMO_NAME_BYTES]) {
  return {name, ::strnlen(name, sizeof name)};
}

Sample sample_of(const kymo_stack& sent, std::span<const std::byte> stack) {
  Sample sample;
  sample.pid = static_cast<pid_t>(sent.pid);
  sample.tid = static_cast<pid_t>(sent.tid);
  sample.process = text(sent.process);
  sample.thread = text(sent.thread);
  sample.started = sent.reason == KYMO_STARTED;
  sample.pid_level = sent.pid_level;
  sample.value_ns = sent.value_ns;
  sample.kernel = addresses(sent.kernel, sent.kernel_bytes);
  if (sent.has_user == 0) return sample;
  sample.chain = addresses(sent.chain, sent.chain_bytes);
  UserState& user = sample.user.emplace();
  for (std::size_t i = 0; i < kRegisters; ++i) user.registers[i] = sent.registers[kPlaces[i]];
  user.stack_from = sent.stack_from;
  user.stack.assign(stack.begin(), stack.end());
  return sample;
}

// How BPF knows a cgroup: by the inode of its folder, and by how many cgroups are above it.
struct CgroupPlace {
  std::uint64_t id = 0;
  int level = 0;
};

Result<CgroupPlace> place_of(std::string folder) {
  CgroupPlace place;
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return system_error("look at " + folder, errno);
  place.id = status.st_ino;
  const dev_t device = status.st_dev;
  for (;; ++place.level) {
    folder += "/..";
    if (::stat(folder.c_str(), &status) != 0) return system_error("look at " + folder, errno);
    if (status.st_dev != device) return place;
  }
}

class BpfSource final : public Source {
 public:
  explicit BpfSource(const Sampling& sampling)
      : sampling_(sampling), period_ns_(kNanosPerSecond / sampling.rate) {}

  Result<void> open();
  void drain(std::vector<Event>& events) override;
  void stop() override;
  Result<void> add(const Starter& starter, const std::vector<pid_t>& started) override;
  [[nodiscard]] int fd() const override { return ring_buffer__epoll_fd(ring_.get()); }
  [[nodiscard]] SourceCounts counts() const override;

 private:
  Result<void> load();
  Result<void> choose();
  Result<void> choose(const std::vector<pid_t>& pids, kymo_reason reason);
  Result<void> choose(const Starter& starter);
  Result<void> attach(bpf_program* program);
  Result<void> attach_to_clocks();
  void take(const kymo_stack& sent, std::size_t size);
  void take_unfinished_waits(std::vector<Event>& events);
  static int on_record(void* self, void* data, std::size_t size);

  Sampling sampling_;
  std::uint64_t period_ns_;
  Skeleton skeleton_;
  std::vector<PerfRing> side_;
  std::vector<Link> links_;
  std::unique_ptr<ring_buffer, FreeRing> ring_;
  std::vector<Event>* events_ = nullptr;  // while drain() runs
  std::vector<Event> at_end_;
};

Error failed(const char* what, int error) {
  Error result = system_error(std::string("cannot take stacks by BPF: ") + what, error);
  if (error == EPERM || error == EACCES) result.code = Code::permission_denied;
  return result;
}

Result<void> BpfSource::load() {
  ::libbpf_set_print(nullptr);
  skeleton_.reset(stacks_bpf__open());
  if (!skeleton_) return failed("open the program", errno);
  auto& settings = *skeleton_->rodata;
  settings.shortest_wait_ns = sampling_.shortest_wait_ns;
  if (sampling_.target.kind == Profiled::Kind::processes) settings.filter = KYMO_PROCESSES;
  if (sampling_.target.kind == Profiled::Kind::cgroup) {
    const Result<CgroupPlace> place = place_of(sampling_.target.cgroup);
    if (!place) return place.error();
    settings.filter = KYMO_CGROUP;
    settings.cgroup_id = place->id;
    settings.cgroup_level = place->level;
  }
  bpf_program__set_autoload(skeleton_->progs.on_switch, sampling_.waits);
  bpf_program__set_autoload(skeleton_->progs.on_tick, !sampling_.waits);
  if (!sampling_.waits) bpf_map__set_max_entries(skeleton_->maps.waits, 1);
  const int error = stacks_bpf__load(skeleton_.get());
  return error == 0 ? Result<void>() : failed("load the program", -error);
}

// Forks are followed from before the processes are listed, so that none is missed.
Result<void> BpfSource::choose() {
  if (sampling_.target.kind != Profiled::Kind::processes) return {};
  if (Result<void> done = attach(skeleton_->progs.on_fork); !done) return done;
  if (Result<void> done = attach(skeleton_->progs.on_free); !done) return done;
  for (const Starter& starter : sampling_.target.starters) {
    if (Result<void> done = choose(starter); !done) return done;
  }
  return choose(sampling_.target.pids, KYMO_CHOSEN);
}

Result<void> BpfSource::choose(const std::vector<pid_t>& pids, kymo_reason reason) {
  const auto value = static_cast<__u8>(reason);
  for (const pid_t pid : pids) {
    const auto key = static_cast<__u32>(pid);
    if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.processes), &key, &value, BPF_ANY) != 0) {
      return failed("choose a process", errno);
    }
  }
  return {};
}

Result<void> BpfSource::choose(const Starter& starter) {
  const auto key = static_cast<__u32>(starter.id);
  const __u8 value = starter.process ? KYMO_PROCESS : KYMO_THREAD;
  const int map = bpf_map__fd(skeleton_->maps.starters);
  return bpf_map_update_elem(map, &key, &value, BPF_ANY) == 0
             ? Result<void>()
             : failed("choose what starts processes", errno);
}

Result<void> BpfSource::add(const Starter& starter, const std::vector<pid_t>& started) {
  if (Result<void> done = choose(starter); !done) return done;
  return choose(started, KYMO_STARTED);
}

Result<void> BpfSource::attach(bpf_program* program) {
  bpf_link* const link = bpf_program__attach(program);
  if (link == nullptr) return failed("attach the program to the scheduler", errno);
  links_.emplace_back(link);
  return {};
}

Result<void> BpfSource::attach_to_clocks() {
  const Result<std::vector<int>> cpus = online_cpus();
  if (!cpus) return cpus.error();
  for (const int cpu : *cpus) {
    perf_event_attr clock{};
    clock.type = PERF_TYPE_SOFTWARE;
    clock.config = PERF_COUNT_SW_CPU_CLOCK;
    clock.sample_period = period_ns_;
    clock.exclude_idle = 1;
    Result<FileDescriptor> event = open_event(clock, -1, cpu);
    if (!event) return failed("open the clock of a CPU", event.error().errno_value);
    bpf_link* const link = bpf_program__attach_perf_event(skeleton_->progs.on_tick, event->get());
    if (link == nullptr) return failed("attach the program to the clock of a CPU", errno);
    static_cast<void>(event->release());  // the link closes it
    links_.emplace_back(link);
  }
  return {};
}

Result<void> BpfSource::open() {
  if (const std::uint64_t own = own_pid_namespace(); own != 0 && own != kFirstPidNamespace) {
    return Error{Code::failed_precondition,
                 "cannot take stacks by BPF: this is a container, in which processes have other "
                 "pids than for the kernel"};
  }
  const Result<std::vector<int>> cpus = online_cpus();
  if (!cpus) return cpus.error();
  for (const int cpu : *cpus) {
    Result<PerfRing> ring = PerfRing::open(PerfRing::side_events(), -1, cpu, kSideRingBytes);
    if (!ring) return failed("follow what processes map", ring.error().errno_value);
    side_.push_back(*std::move(ring));
  }
  if (Result<void> loaded = load(); !loaded) return loaded;
  ring_.reset(ring_buffer__new(bpf_map__fd(skeleton_->maps.ring), on_record, this, nullptr));
  if (!ring_) return failed("map the ring buffer", errno);
  if (Result<void> chosen = choose(); !chosen) return chosen;
  return sampling_.waits ? attach(skeleton_->progs.on_switch) : attach_to_clocks();
}

int BpfSource::on_record(void* self, void* data, std::size_t size) {
  static_cast<BpfSource*>(self)->take(*static_cast<const kymo_stack*>(data), size);
  return 0;
}

void BpfSource::take(const kymo_stack& sent, std::size_t size) {
  constexpr std::size_t kHead = offsetof(kymo_stack, stack);
  if (size < kHead) return;
  const std::size_t bytes = std::min<std::size_t>(sent.stack_bytes, size - kHead);
  Sample sample = sample_of(sent, std::as_bytes(std::span(sent.stack, bytes)));
  if (!sampling_.waits) sample.value_ns = period_ns_;
  events_->push_back({sent.time_ns + sent.value_ns, std::move(sample)});
}

void BpfSource::drain(std::vector<Event>& events) {
  events_ = &events;
  ring_buffer__consume(ring_.get());
  events.insert(events.end(), std::make_move_iterator(at_end_.begin()),
                std::make_move_iterator(at_end_.end()));
  at_end_.clear();
  for (PerfRing& ring : side_) ring.drain(events);  // after the samples: what they need is here
}

void BpfSource::stop() {
  links_.clear();
  if (sampling_.waits) take_unfinished_waits(at_end_);
}

void BpfSource::take_unfinished_waits(std::vector<Event>& events) {
  events_ = &events;
  const int map = bpf_map__fd(skeleton_->maps.waits);
  const std::uint64_t now = monotonic_ns();
  const auto stack = std::make_unique<kymo_stack>();
  __u32 key = 0;
  const __u32* before = nullptr;
  while (bpf_map_get_next_key(map, before, &key) == 0) {
    before = &key;
    if (bpf_map_lookup_elem(map, &key, stack.get()) != 0 || stack->time_ns > now) continue;
    stack->value_ns = now - stack->time_ns;
    if (stack->value_ns >= sampling_.shortest_wait_ns) take(*stack, sizeof *stack);
  }
}

std::uint64_t run_time_ns(const bpf_program* program) {
  bpf_prog_info info{};
  __u32 size = sizeof info;
  const int fd = bpf_program__fd(program);
  return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.run_time_ns : 0;
}

SourceCounts BpfSource::counts() const {
  SourceCounts counts;
  counts.lost = skeleton_->bss->lost;
  counts.short_waits = skeleton_->bss->short_waits;
  counts.short_wait_ns = skeleton_->bss->short_wait_ns;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton_->obj) counts.bpf_ns += run_time_ns(program);
  for (const PerfRing& ring : side_) counts.lost_mappings += ring.lost();
  return counts;
}

}  // namespace

Result<std::unique_ptr<Source>> open_bpf_source(const Sampling& sampling) {
  auto source = std::make_unique<BpfSource>(sampling);
  if (Result<void> opened = source->open(); !opened) return opened.error();
  return std::unique_ptr<Source>(std::move(source));
}

std::string why_no_bpf(const Error& error) {
  if (error.code == Code::permission_denied) {
    return error.message +
           ": give kymod the capabilities CAP_BPF and CAP_PERFMON, and let it call bpf(2) and "
           "perf_event_open(2)";
  }
  if (error.code == Code::failed_precondition) return error.message;
  return error.message + ": it needs Linux 5.18 or newer with BTF (CONFIG_DEBUG_INFO_BTF)";
}

}  // namespace kymo::stacks
