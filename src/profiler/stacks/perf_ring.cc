#include "profiler/stacks/perf_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace kymo::stacks {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Reads the fields of a record one after the other. Behind the record's end all is zero.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> record) : rest_(record) {}

  template <class T>
  T take() {
    T value{};
    if (rest_.size() >= sizeof value) {
      std::memcpy(&value, rest_.data(), sizeof value);
      rest_ = rest_.subspan(sizeof value);
    } else {
      rest_ = {};
    }
    return value;
  }
  std::span<const std::byte> take_bytes(std::uint64_t count) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(count, rest_.size()));
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  // Up to its 0.
  std::string take_text() {
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    return std::string(text.substr(0, text.find('\0')));
  }

 private:
  std::span<const std::byte> rest_;
};

// The time is the last field of each record that is no sample (sample_id_all).
std::uint64_t time_of(std::span<const std::byte> record) {
  return Fields(record.last(std::min<std::size_t>(record.size(), 8))).take<std::uint64_t>();
}

Mapped mapped(Fields fields) {
  Mapped mapped;
  mapped.pid = fields.take<pid_t>();
  fields.take<pid_t>();
  mapped.begin = fields.take<std::uint64_t>();
  mapped.end = mapped.begin + fields.take<std::uint64_t>();
  mapped.offset = fields.take<std::uint64_t>();
  const auto major_number = fields.take<std::uint32_t>();
  const auto minor_number = fields.take<std::uint32_t>();
  mapped.device = ::makedev(major_number, minor_number);
  mapped.inode = fields.take<std::uint64_t>();
  fields.take<std::uint64_t>();  // the inode's generation
  fields.take<std::uint64_t>();  // protection, flags
  mapped.path = fields.take_text();
  return mapped;
}

// The registers in a sample are in the order of their numbers in asm/perf_regs.h: ax, bx, cx, dx,
// si, di, bp, sp, ip, r8 to r15. This is the place of each of them in DWARF's order.
constexpr std::array<std::uint8_t, kRegisters> kPerfPlaces{0, 3, 2,  1,  4,  5,  6,  7, 16,
                                                           8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::uint64_t kRegisterMask = 0xff01ff;

// The call chain has the kernel's frames and then the program's. Marks tell which ones follow.
void take_chain(Fields& fields, Sample& sample) {
  std::vector<std::uint64_t>* frames = nullptr;
  for (auto count = fields.take<std::uint64_t>(); count > 0; --count) {
    const auto address = fields.take<std::uint64_t>();
    if (address == static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL)) {
      frames = &sample.kernel;
    } else if (address == static_cast<std::uint64_t>(PERF_CONTEXT_USER)) {
      frames = &sample.chain;
    } else if (address >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
      frames = nullptr;
    } else if (frames != nullptr) {
      frames->push_back(address);
    } else if (address == 0) {
      return;  // behind the record's end
    }
  }
}

void take_user(Fields& fields, Sample& sample) {
  UserState user;
  if (fields.take<std::uint64_t>() != PERF_SAMPLE_REGS_ABI_64) return;  // the kernel's own thread
  for (const std::uint8_t place : kPerfPlaces) user.registers[place] = fields.take<std::uint64_t>();
  user.stack_from = user.registers[kStackPointer];
  const auto stack = fields.take_bytes(fields.take<std::uint64_t>());
  const auto size = std::min<std::uint64_t>(fields.take<std::uint64_t>(), stack.size());
  user.stack.assign(stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(size));
  sample.user = std::move(user);
}

Event sample_in(Fields fields) {
  Sample sample;
  sample.pid = fields.take<pid_t>();
  sample.tid = fields.take<pid_t>();
  const auto time_ns = fields.take<std::uint64_t>();
  take_chain(fields, sample);
  take_user(fields, sample);
  return {time_ns, std::move(sample)};
}

}  // namespace

Result<std::vector<int>> online_cpus() {
  const Result<std::string> text = read_file("/sys/devices/system/cpu/online");
  if (!text) return text.error();
  std::vector<int> cpus;  // the text is like "0-3,8,10-11"
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    int first = 0;
    at = std::from_chars(at, end, first).ptr;
    int last = first;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    ++at;
  }
  return cpus;
}

Result<FileDescriptor> open_event(perf_event_attr& attributes, pid_t pid, int cpu) {
  attributes.size = sizeof attributes;
  FileDescriptor event(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event.valid()) return system_error("perf_event_open", errno);
  return event;
}

perf_event_attr PerfRing::side_events() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.sample_id_all = 1;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1U << 30U;  // nobody waits for it
  return attributes;
}

perf_event_attr PerfRing::samples(std::uint64_t period_ns) {
  constexpr std::uint32_t kStackBytes = 16 * 1024;
  perf_event_attr attributes = side_events();
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attributes.sample_regs_user = kRegisterMask;
  attributes.sample_stack_user = kStackBytes;
  attributes.exclude_idle = 1;
  return attributes;
}

Result<PerfRing> PerfRing::open(perf_event_attr attributes, pid_t pid, int cpu, std::size_t bytes) {
  Result<FileDescriptor> event = open_event(attributes, pid, cpu);
  if (!event) return event.error();
  void* const memory =
      ::mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event->get(), 0);
  if (memory == MAP_FAILED) return system_error("map the ring buffer of a perf event", errno);
  return PerfRing(*std::move(event), static_cast<perf_event_mmap_page*>(memory), bytes);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : event_(std::move(other.event_)),
      page_(std::exchange(other.page_, nullptr)),
      bytes_(other.bytes_),
      lost_(other.lost_) {}

PerfRing::~PerfRing() {
  if (page_ != nullptr) ::munmap(page_, kPage + bytes_);
}

// The record's bytes stay valid until the next call. Empty if the kernel's numbers make no sense.
std::span<const std::byte> PerfRing::record_at(std::uint64_t at) {
  const auto* const ring = reinterpret_cast<const std::byte*>(page_) + kPage;
  const std::size_t offset = static_cast<std::size_t>(at % bytes_);
  perf_event_header header{};
  std::memcpy(&header, ring + offset, sizeof header);  // records begin at multiples of 8
  const std::size_t before_end = bytes_ - offset;
  if (header.size < sizeof header || header.size > bytes_) return {};
  if (header.size <= before_end) return {ring + offset, header.size};
  joined_.assign(ring + offset, ring + bytes_);
  joined_.insert(joined_.end(), ring, ring + (header.size - before_end));
  return joined_;
}

void PerfRing::drain(std::vector<Event>& events) {
  // The acquire pairs with the kernel's store of the head after it has written a record, the
  // release with its load of the tail before it writes over one.
  std::atomic_ref head(page_->data_head);
  std::atomic_ref tail(page_->data_tail);
  const std::uint64_t end = head.load(std::memory_order_acquire);
  std::uint64_t at = tail.load(std::memory_order_relaxed);
  while (at < end) {
    const std::span<const std::byte> record = record_at(at);
    if (record.empty()) break;
    add(record, events);
    at += record.size();
  }
  tail.store(end, std::memory_order_release);
}

void PerfRing::add(std::span<const std::byte> record, std::vector<Event>& events) {
  Fields fields(record);
  const auto header = fields.take<perf_event_header>();
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      events.push_back(sample_in(fields));
      break;
    case PERF_RECORD_MMAP2:
      events.push_back({time_of(record), mapped(fields)});
      break;
    case PERF_RECORD_COMM: {
      const auto pid = fields.take<pid_t>();
      const auto tid = fields.take<pid_t>();
      if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0) {
        events.push_back({time_of(record), Executed{pid}});
      }
      events.push_back({time_of(record), Named{tid, fields.take_text()}});
      break;
    }
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      const auto pid = fields.take<pid_t>();
      const auto parent = fields.take<pid_t>();
      const auto tid = fields.take<pid_t>();
      if (pid != tid) break;  // a thread
      if (header.type == PERF_RECORD_FORK) {
        events.push_back({time_of(record), Forked{pid, parent}});
      } else {
        events.push_back({time_of(record), Exited{pid}});
      }
      break;
    }
    case PERF_RECORD_LOST:
      fields.take<std::uint64_t>();
      lost_ += fields.take<std::uint64_t>();
      break;
    default:
      break;
  }
}

}  // namespace kymo::stacks
