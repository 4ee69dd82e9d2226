#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace kymo {

// Columns whose values belong to one recording only, for example what one request has written. In
// this recording they replace the stream's columns of the same names, which add up all requests.
// All values begin at 0. Each change of a value is noted with its time. A row gets the values of
// its own time.
//
// Threads: set(), add() and value() from any thread; overlay() from one.
// Memory:  24 bytes for each change until the rows of its time have passed, at most 1.5 MiB. Beyond
//          that, the oldest changes of each column are merged into one.
// Cost:    a short lock for each change. No function waits for files.
class OwnColumns {
 public:
  explicit OwnColumns(std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  void set(std::size_t column, std::uint64_t value);
  void add(std::size_t column, std::uint64_t n);
  [[nodiscard]] std::uint64_t value(std::size_t column) const;

  // Where one of these columns is in a row of `stride` words, of which the first is the time.
  struct Place {
    std::size_t column = 0;
    std::size_t word = 0;
  };
  // Overwrites these places of each row with the values at the row's time. Rows come in the order
  // of their times, which count from `start_monotonic_ns` of CLOCK_MONOTONIC.
  void overlay(std::span<std::uint64_t> rows, std::size_t stride, const std::vector<Place>& places,
               std::uint64_t start_monotonic_ns);

 private:
  struct Change {
    std::uint64_t at_ns = 0;  // on CLOCK_MONOTONIC
    std::size_t column = 0;
    std::uint64_t value = 0;
  };

  void note(std::size_t column, std::uint64_t value);
  void merge_oldest();

  const std::vector<std::string> names_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> newest_;  // guarded by mutex_
  std::vector<Change> changes_;        // guarded by mutex_: not seen by overlay() yet, oldest first
  // Used by overlay() only:
  std::vector<Change> seen_;           // changes that overlay() has taken
  std::size_t next_ = 0;               // the first of them that no row has passed
  std::vector<std::uint64_t> at_row_;  // the values at the last row
};

}  // namespace kymo
