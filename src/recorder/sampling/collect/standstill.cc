#include "recorder/sampling/collect/standstill.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/file.h"

namespace kymo {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// Reading the CPU use of the thread delays the ticks of a fast recording, so it is read less often
// there.
constexpr std::uint64_t kFastNs = 50'000;

// The first bytes of the file as text; empty if it cannot be read.
template <std::size_t N>
const char* read_text(const char* path, std::array<char, N>* text) {
  const FileDescriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd.valid() ? ::read(fd.get(), text->data(), N - 1) : 0;
  (*text)[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
  return text->data();
}

Standstill::Use read_use() {
  std::array<char, 128> text{};
  Standstill::Use use;
  char* end = nullptr;
  use.ran_ns = std::strtoull(read_text("/proc/thread-self/schedstat", &text), &end, 10);
  use.known = end != text.data();
  use.waited_ns = std::strtoull(end, nullptr, 10);
  return use;
}

std::uint64_t read_process_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * kSecond +
         static_cast<std::uint64_t>(used.tv_nsec);
}

std::uint64_t count_cpus() {
  return static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::uint64_t read_process_start() {
  std::array<char, 1024> text{};
  // The process name, in parentheses, may contain any character. The start time is the 20th field
  // after it.
  const char* at = std::strrchr(read_text("/proc/self/stat", &text), ')');
  for (int field = 0; at != nullptr && field < 20; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

}  // namespace

const Standstill::Source Standstill::kSystem{read_use, read_process_cpu_ns, count_cpus,
                                             read_process_start, unix_ns};

Standstill::Standstill(std::uint64_t interval_ns, const Source& source)
    : source_(source), note_every_ns_(interval_ns < kFastNs ? 10 * kSecond : kSecond) {}

void Standstill::note_now(std::uint64_t now_ns, std::int64_t now_unix_ns) {
  noted_ns_ = now_ns;
  noted_unix_ns_ = now_unix_ns;
  if (process_start_ == 0) {
    process_start_ = source_.process_start();
  }
  noted_ = source_.use();
  process_cpu_ns_ = source_.process_cpu_ns();
  counted_ns_ = looked_ns_ = now_ns;
  clocks_apart_ns_ = noted_unix_ns_ - static_cast<std::int64_t>(now_ns);
}

void Standstill::note_now(std::uint64_t now_ns) {
  note_now(now_ns, source_.unix_ns());
}

void Standstill::count(std::uint64_t now_ns) {
  if (now_ns - noted_ns_ >= note_every_ns_) {
    return note_now(now_ns);
  }
  process_cpu_ns_ = source_.process_cpu_ns();
  counted_ns_ = now_ns;
}

bool Standstill::look(std::uint64_t now_ns) {
  looked_ns_ = now_ns;
  const std::int64_t apart_ns = source_.unix_ns() - static_cast<std::int64_t>(now_ns);
  const std::int64_t moved_ns = apart_ns - clocks_apart_ns_;
  clocks_apart_ns_ = apart_ns;
  return std::abs(moved_ns) > static_cast<std::int64_t>(kClockSlackNs);
}

Standstill::Verdict Standstill::judge(std::uint64_t now_ns, std::uint64_t late_ns) {
  Verdict verdict;
  const std::int64_t now_unix_ns = source_.unix_ns();  // before the slow reads
  const std::uint64_t process_cpu_ns = source_.process_cpu_ns();
  const Use use = source_.use();
  const std::uint64_t process_start = source_.process_start();
  verdict.restored = process_start != process_start_ || use.ran_ns < noted_.ran_ns;
  const auto elapsed_ns = static_cast<std::int64_t>(now_ns - noted_ns_);
  if (verdict.restored || elapsed_ns < 0) {
    verdict.frozen = true;
    const std::int64_t away_ns = now_unix_ns - noted_unix_ns_;
    const std::int64_t disagreement = elapsed_ns - (away_ns > 0 ? away_ns : 0);
    if (disagreement > static_cast<std::int64_t>(kClockSlackNs) ||
        disagreement < -static_cast<std::int64_t>(kClockSlackNs)) {
      verdict.clock_shift_ns = disagreement;
    }
  } else if (use.known && noted_.known) {
    const std::uint64_t waited_ns = use.waited_ns - noted_.waited_ns;
    const std::uint64_t busy_ns = waited_ns + (use.ran_ns - noted_.ran_ns);
    const auto passed_ns = static_cast<std::uint64_t>(elapsed_ns);
    // What the process may have used before it was late.
    const std::uint64_t counted_ns = now_ns - counted_ns_;
    const std::uint64_t before_ns = (counted_ns - std::min(counted_ns, late_ns)) * source_.cpus();
    verdict.frozen = waited_ns < late_ns / 2 && passed_ns > busy_ns &&
                     passed_ns - busy_ns >= late_ns / 2 &&
                     process_cpu_ns - process_cpu_ns_ < before_ns + late_ns / 4;
  }
  process_start_ = process_start;
  note_now(now_ns, now_unix_ns);
  return verdict;
}

}  // namespace kymo
