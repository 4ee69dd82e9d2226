#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kymo {

// How the writer learns of full slots. To wake a sleeping thread costs the collector 5 to 10 us on
// a virtual machine, which is up to ten ticks at 1 MHz. If slots fill fast, the writer therefore
// looks for them by itself, every eighth of the time in which the ring fills. The collector then
// wakes it only once for each half of the ring.
struct HandOverPace {
  std::uint64_t nap_ns = 0;               // longest sleep of the writer
  std::uint32_t hand_overs_a_signal = 1;  // the collector wakes it once for this many slots
};

inline HandOverPace hand_over_pace(std::size_t slots, std::size_t rows, std::uint64_t interval_ns) {
  // If slots fill more slowly than this, each one is signalled: signals are rare then, and the rows
  // are seen at once.
  constexpr std::uint64_t kFastSlotNs = 5'000'000;
  constexpr std::uint64_t kMaxNapNs = 500'000'000;
  const std::uint64_t slot_ns = std::max<std::uint64_t>(1, rows * interval_ns);
  if (slots < 4 || slot_ns > kFastSlotNs) {
    return {kMaxNapNs, 1};
  }
  return {std::max<std::uint64_t>(100'000, slots * slot_ns / 8),
          static_cast<std::uint32_t>(slots / 2)};
}

}  // namespace kymo
