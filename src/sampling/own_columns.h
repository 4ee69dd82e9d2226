#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace kymo {

// Columns whose values belong to one recording alone, such as what one request has written: in that
// recording they stand in place of the stream's columns of the same names, which add up what all
// requests do. All begin at 0. A value is noted with its time when it changes; a row has the values
// of its own time.
//
// Threads: set(), add() and value() from any thread; overlay() from one.
// Memory:  24 bytes a change until the rows of its time have passed, at most 1.5 MiB; beyond that
//          the oldest changes of each column become one.
// Cost:    a short lock a change. Nobody waits for files.
class OwnColumns {
 public:
  explicit OwnColumns(std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  void set(std::size_t column, std::uint64_t value);
  void add(std::size_t column, std::uint64_t n);
  [[nodiscard]] std::uint64_t value(std::size_t column) const;

  // Where a column of these stands in a row of `stride` words, its time first.
  struct Place {
    std::size_t column = 0;
    std::size_t word = 0;
  };
  // Writes the values at each row's time over what the rows have at these places. Rows come in the
  // order of their times, which count from `start_monotonic_ns` of CLOCK_MONOTONIC.
  void overlay(std::span<std::uint64_t> rows, std::size_t stride, const std::vector<Place>& places,
               std::uint64_t start_monotonic_ns);

 private:
  struct Change {
    std::uint64_t at_ns = 0;  // of CLOCK_MONOTONIC
    std::size_t column = 0;
    std::uint64_t value = 0;
  };

  void note(std::size_t column, std::uint64_t value);
  void merge_oldest();

  const std::vector<std::string> names_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> newest_;  // guarded by mutex_
  std::vector<Change> changes_;        // guarded by mutex_: not seen by overlay() yet, oldest first
  // Of overlay() alone:
  std::vector<Change> seen_;           // changes that it has taken
  std::size_t next_ = 0;               // the first of them that no row has passed
  std::vector<std::uint64_t> at_row_;  // the values at the last row
};

}  // namespace kymo
