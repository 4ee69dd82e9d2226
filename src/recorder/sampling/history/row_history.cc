#include "recorder/sampling/history/row_history.h"

#include <algorithm>

namespace kymo {

void RowHistory::append(const Rows& rows) {
  for (std::size_t done = 0; done < rows.count;) {
    const auto at = static_cast<std::size_t>(end_ % capacity_);
    const std::size_t count = std::min(rows.count - done, capacity_ - at);
    std::copy_n(rows.data + done * stride_, count * stride_,
                words_.begin() + static_cast<std::ptrdiff_t>(at * stride_));
    done += count;
    end_ += count;
  }
}

std::uint64_t RowHistory::first_at(std::uint64_t time_ns) const {
  std::uint64_t low = oldest();
  std::uint64_t high = end_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (time_of(middle) < time_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Rows RowHistory::contiguous(std::uint64_t first, std::uint64_t end) const {
  const auto at = static_cast<std::size_t>(first % capacity_);
  const std::size_t count =
      std::min<std::size_t>(static_cast<std::size_t>(end - first), capacity_ - at);
  return {words_.data() + at * stride_, count, stride_};
}

}  // namespace kymo
