#include "recorder/sampling/collect/late_causes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace kymo {
namespace {

// The first bytes of the file as text; empty if it cannot be read.
std::array<char, 1024> beginning_of(const std::string& path) {
  std::array<char, 1024> text{};
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd.valid() ? ::read(fd.get(), text.data(), text.size() - 1) : 0;
  text[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
  return text;
}

// The number in a field of a line whose fields are separated by spaces, counted from 0.
std::uint64_t number_in(const char* at, int field) {
  for (; at != nullptr && field > 0; --field) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

LateCauses::Use read_thread_use(pid_t thread) {
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  LateCauses::Use use;
  const auto schedstat = beginning_of(folder + "/schedstat");
  use.known = schedstat[0] != '\0';
  use.waited_ns = number_in(schedstat.data(), 1);
  const auto stat = beginning_of(folder + "/stat");
  // The name of the thread, in parentheses, may contain any character. The page faults are in the
  // tenth field after it.
  use.page_faults = number_in(std::strrchr(stat.data(), ')'), 10);
  return use;
}

std::uint64_t read_stolen_ns() {
  const auto stat = beginning_of("/proc/stat");
  constexpr int kSteal = 9;  // after "cpu", two spaces and seven numbers
  const auto ticks_a_second = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  const auto cpus = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  return number_in(stat.data(), kSteal) * (kNanosPerSecond / ticks_a_second) / cpus;
}

std::uint64_t grown(std::uint64_t before, std::uint64_t after) {
  return after - std::min(before, after);
}

}  // namespace

const LateCauses::Source LateCauses::kSystem{read_thread_use, read_stolen_ns};

LateCauses::LateCauses(std::uint64_t interval_ns, const RecorderCounts::Collected& collected,
                       RecorderCounts::Written& counts, const Source& source)
    : interval_ns_(interval_ns), collected_(collected), counts_(counts), source_(source) {}

LateCauses::Seen LateCauses::now(const Use& use) const {
  return {use,
          source_.stolen_ns(),
          collected_.missed_late.get(),
          collected_.late_sample.get(),
          collected_.captured.get(),
          collected_.timing_error_ns.get()};
}

void LateCauses::begin() {
  const pid_t thread = ::gettid();
  before_ = now(source_.use(thread));
  thread_.store(thread, std::memory_order_release);  // pairs with look(), which then sees before_
}

void LateCauses::end() {
  last_use_ = source_.use(thread_.load(std::memory_order_relaxed));
}

void LateCauses::look() {
  if (const pid_t thread = thread_.load(std::memory_order_acquire); thread != 0) {
    judge(now(source_.use(thread)));
  }
}

void LateCauses::finish() {
  judge(now(last_use_));
}

void LateCauses::judge(const Seen& now) {
  // The counts of a thread go back when its process is restored. Nothing is known then.
  const bool known = now.use.known && before_.use.known;
  const std::uint64_t waited_ns = known ? grown(before_.use.waited_ns, now.use.waited_ns) : 0;
  const std::uint64_t rows = grown(before_.rows, now.rows);
  std::uint64_t rest = grown(before_.late, now.late);
  if (rest == 0) {
    if (rows != 0 && known) {
      const std::uint64_t wait_ns = waited_ns / rows;
      usual_wait_ns_ = usual_wait_known_ ? (usual_wait_ns_ + wait_ns) / 2 : wait_ns;
      usual_wait_known_ = true;
    }
    before_ = now;
    return;
  }
  const auto take = [&rest](OwnedCount& count, std::uint64_t ticks) {
    const std::uint64_t taken = std::min(rest, ticks);
    count.add(taken);
    rest -= taken;
  };
  const auto ticks_in = [this](std::uint64_t ns) { return (ns + interval_ns_ / 2) / interval_ns_; };
  // Rows that were taken were no later than all they waited.
  const std::uint64_t usual_ns = usual_wait_known_
                                     ? usual_wait_ns_ * rows
                                     : grown(before_.timing_error_ns, now.timing_error_ns);
  take(counts_.late_waited, ticks_in(grown(usual_ns, waited_ns)));
  take(counts_.late_sample, grown(before_.sample, now.sample));
  take(counts_.late_stolen, ticks_in(grown(before_.stolen_ns, now.stolen_ns)));
  if (known && now.use.page_faults > before_.use.page_faults) {
    take(counts_.late_page_fault, rest);
  }
  before_ = now;
}

}  // namespace kymo
