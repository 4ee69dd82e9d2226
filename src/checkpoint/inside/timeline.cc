#include "checkpoint/inside/timeline.h"

#include <algorithm>

namespace kymo::inside {

void Timeline::add(std::uint64_t at_ns, std::span<const std::uint64_t> values) {
  if (++skipped_ < keep_every_) return;
  skipped_ = 0;
  if (count() >= kMaxReadings) thin_out();
  words_.push_back(at_ns);
  words_.insert(words_.end(), values.begin(), values.end());
}

void Timeline::thin_out() {
  const std::size_t kept = (count() + 1) / 2;
  for (std::size_t i = 0; i < kept; ++i) {
    const auto from = words_.begin() + static_cast<std::ptrdiff_t>(2 * i * stride_);
    std::copy_n(from, stride_, words_.begin() + static_cast<std::ptrdiff_t>(i * stride_));
  }
  words_.resize(kept * stride_);
  keep_every_ *= 2;
}

std::uint64_t Timeline::grown(std::size_t column, std::uint64_t from_ns,
                              std::uint64_t to_ns) const {
  if (count() < 2) return 0;
  std::size_t first = 0;
  while (first + 1 < count() && words_[(first + 1) * stride_] <= from_ns) ++first;
  std::size_t last = first;
  while (last + 1 < count() && words_[last * stride_] < to_ns) ++last;
  const std::uint64_t before = words_[first * stride_ + 1 + column];
  return words_[last * stride_ + 1 + column] - before;
}

std::uint64_t Timeline::gaps_ns(std::uint64_t from_ns, std::uint64_t to_ns) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 1; i < count(); ++i) {
    const std::uint64_t begin = words_[(i - 1) * stride_];
    const std::uint64_t end = words_[i * stride_];
    if (end - begin < kMinGapNs * keep_every_) continue;
    const std::uint64_t first = std::max(begin, from_ns);
    const std::uint64_t last = std::min(end, to_ns);
    if (last > first) sum += last - first;
  }
  return sum;
}

}  // namespace kymo::inside
