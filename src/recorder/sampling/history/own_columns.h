#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kymo/metric.h"

namespace kymo {

// The columns of one recording, whose values belong to it alone: for example what one request has
// written. The recording has them in place of the stream's columns, which add up all requests. All
// values begin at 0. Each change of a value is noted with its time. A row gets the values of its
// own time.
//
// Threads: set(), set_all(), add() and value() from any thread; extend() before the recording
//          begins; chosen() and overlay() from one thread after that.
// Memory:  24 bytes for each change until the rows of its time have passed, at most 1.5 MiB. Beyond
//          that, the oldest changes of each column are merged into one.
// Cost:    a short lock for each change. No function waits for files.
class OwnColumns {
 public:
  // `columns` have the names of columns that the stream can have.
  explicit OwnColumns(std::vector<Column> columns);
  // Adds columns that no stream has, one for each metric without fields. `values` are theirs in all
  // rows until they change. Of the metrics from number `ages` on the values are times, and a row gets the time since then,
  // or 0 before it. Returns the index of the first.
  std::size_t extend(const std::vector<Metric>& metrics, std::span<const std::uint64_t> values,
                     std::size_t ages);

  void set(std::size_t column, std::uint64_t value);
  // Sets the columns from `first` on.
  void set_all(std::size_t first, std::span<const std::uint64_t> values);
  void add(std::size_t column, std::uint64_t n);
  [[nodiscard]] std::uint64_t value(std::size_t column) const;

  // The columns of a recording that is cut from a stream with these columns: all that extend() has
  // added, and of the others those that this stream has, too.
  struct Chosen {
    std::vector<Column> columns;
    std::vector<std::size_t> indexes;  // of set()
  };
  [[nodiscard]] Chosen chosen(const std::vector<Column>& stream) const;

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

  void note(std::size_t column, std::uint64_t value, std::uint64_t at_ns);
  void merge_oldest();

  std::vector<Column> columns_;
  std::vector<bool> is_age_;     // of each
  const std::size_t of_stream_;  // so many of them have names of the stream
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> newest_;  // guarded by mutex_
  std::vector<Change> changes_;        // guarded by mutex_: not seen by overlay() yet, oldest first
  // Used by overlay() only:
  std::vector<Change> seen_;           // changes that overlay() has taken
  std::size_t next_ = 0;               // the first of them that no row has passed
  std::vector<std::uint64_t> at_row_;  // the values at the last row
};

}  // namespace kymo
