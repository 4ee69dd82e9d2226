#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kymo::inside {

// The values of some columns over the time of a request, in bounded memory: if there are too many
// readings, every second one is dropped, and from then on only every second one is kept.
//
// Threads: one at a time.
class Timeline {
 public:
  static constexpr std::size_t kMaxReadings = 8192;

  explicit Timeline(std::size_t columns) : stride_(columns + 1) {}
  // Times do not decrease.
  void add(std::uint64_t at_ns, std::span<const std::uint64_t> values);
  // How much a column has grown from the newest reading at or before `from_ns` to the first at or
  // after `to_ns`. 0 if there are fewer than two readings.
  [[nodiscard]] std::uint64_t grown(std::size_t column, std::uint64_t from_ns,
                                    std::uint64_t to_ns) const;
  // The sum of the gaps between readings from `from_ns` to `to_ns` that are at least kMinGapNs long: in a gap the
  // reader did not run. If only every Nth reading was kept, gaps count from N times kMinGapNs.
  [[nodiscard]] std::uint64_t gaps_ns(std::uint64_t from_ns, std::uint64_t to_ns) const;
  static constexpr std::uint64_t kMinGapNs = 100'000'000;

 private:
  [[nodiscard]] std::size_t count() const { return words_.size() / stride_; }
  void thin_out();

  std::size_t stride_;
  std::vector<std::uint64_t> words_;  // readings, each a time and the values
  std::size_t keep_every_ = 1;
  std::size_t skipped_ = 0;
};

}  // namespace kymo::inside
