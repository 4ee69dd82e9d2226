#include "recorder/sampling/profiler/options.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/human.h"
#include "recorder/metrics/exposition_name.h"
#include "recorder/sampling/ring/ring_memory.h"

namespace kymo {
namespace {

constexpr std::chrono::nanoseconds kMinInterval{100};
constexpr std::chrono::nanoseconds kMaxInterval = std::chrono::hours(24);

Error refused_option(const char* option, const std::string& value, const char* allowed) {
  return Error{Code::invalid_argument,
               std::string("profiler option ") + option + " = " + value + ": " + allowed, 0};
}

}  // namespace

Result<void> check_options(const ProfilerOptions& options) {
  if (options.sink == nullptr) {
    return refused_option("sink", "none", "give one, such as kymo::make_tsv_sink(path)");
  }
  if (options.interval < kMinInterval || options.interval > kMaxInterval) {
    return refused_option("interval", std::to_string(options.interval.count()) + " ns",
                          "must be 100 ns to 24 hours");
  }
  if (options.slots < 2 || options.slots > 65536) {
    return refused_option("slots", std::to_string(options.slots), "must be 2 to 65536");
  }
  if (options.rows < 1 || options.rows > 10'000'000) {
    return refused_option("rows", std::to_string(options.rows), "must be 1 to 10000000");
  }
  if (options.flush.count() <= 0) {
    return refused_option("flush", std::to_string(options.flush.count()) + " ns",
                          "must be above 0");
  }
  if (options.realtime_priority < 0 || options.realtime_priority > 99) {
    return refused_option("realtime_priority", std::to_string(options.realtime_priority),
                          "must be 0 (none) to 99");
  }
  if (options.pace != Pace::thrifty && options.pace != Pace::precise) {
    return refused_option("pace", std::to_string(static_cast<int>(options.pace)),
                          "must be one of Pace");
  }
  if (!(options.max_spin_share >= 0 && options.max_spin_share <= 1)) {
    return refused_option("max_spin_share", std::to_string(options.max_spin_share),
                          "must be 0 to 1, a share of the interval");
  }
  if (!(options.realtime_max_share > 0 && options.realtime_max_share <= 1)) {
    return refused_option("realtime_max_share", std::to_string(options.realtime_max_share),
                          "must be above 0 and at most 1 (no bound), a share of a CPU");
  }
  if (options.nice < -20 || options.nice > 19) {
    return refused_option("nice", std::to_string(options.nice), "must be -20 to 19");
  }
  if (options.cpu < -1 || options.cpu >= CPU_SETSIZE) {
    return refused_option("cpu", std::to_string(options.cpu),
                          "must be -1 (any) or the number of a CPU");
  }
  if (!is_exposition_prefix(options.prometheus_prefix)) {
    return refused_option("prometheus_prefix", "'" + options.prometheus_prefix + "'",
                          kExpositionPrefixRule);
  }
  return {};
}

Result<void> check_ring_bytes(const ProfilerOptions& options, std::size_t columns) {
  const std::size_t bytes = RingMemory::bytes_of({options.slots, options.rows, columns + 1});
  if (bytes <= options.max_ring_bytes) {
    return {};
  }
  return Error{Code::resource_exhausted,
               "start the recorder: its ring would take " + human::bytes(bytes) + " (" +
                   std::to_string(options.slots) + " slots of " + std::to_string(options.rows) +
                   " rows of " + std::to_string(columns) + " columns), and max_ring_bytes is " +
                   human::bytes(options.max_ring_bytes) +
                   "; record fewer columns (ProfilerOptions::metrics), choose fewer rows, or allow "
                   "more",
               0};
}

std::uint64_t flush_ns(const ProfilerOptions& options) {
  const auto flush = static_cast<std::uint64_t>(options.flush.count());
  const auto wanted = static_cast<std::uint64_t>(
      std::max<std::int64_t>(options.sink->wants_rows_every().count(), 0));
  return wanted == 0 ? flush : wanted / ((wanted + flush - 1) / flush);
}

}  // namespace kymo
