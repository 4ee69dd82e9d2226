#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// The newest rows of a stream, in fixed memory. Rows are numbered from 0 as they come.
// Threads: one at a time.
class RowHistory {
 public:
  RowHistory(std::size_t capacity, std::size_t stride)
      : capacity_(capacity), stride_(stride), words_(capacity * stride) {}

  // Appends at most capacity() rows, which overwrite the oldest.
  void append(const Rows& rows);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint64_t oldest() const { return end_ > capacity_ ? end_ - capacity_ : 0; }
  [[nodiscard]] std::uint64_t end() const { return end_; }  // number of the next row to come
  [[nodiscard]] std::uint64_t time_of(std::uint64_t row) const {
    return words_[static_cast<std::size_t>(row % capacity_) * stride_];
  }
  // The number of the first kept row at or after `time_ns`; end() if there is none.
  [[nodiscard]] std::uint64_t first_at(std::uint64_t time_ns) const;
  // The rows first .. end-1, up to the point where the memory wraps. A second call returns the
  // rest.
  [[nodiscard]] Rows contiguous(std::uint64_t first, std::uint64_t end) const;

 private:
  std::size_t capacity_;
  std::size_t stride_;
  std::vector<std::uint64_t> words_;
  std::uint64_t end_ = 0;
};

}  // namespace kymo
