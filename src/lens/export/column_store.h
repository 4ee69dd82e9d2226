#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "kymo/result.h"
#include "lens/analysis/parallel_rows.h"

namespace kymo::exporting {

// Creates a file without a name, so that a process that is killed leaves nothing behind.
// Errors: those of the system.
Result<FileDescriptor> create_nameless_file(const std::string& folder);

// Stores rows on disk by column, for formats that need one column after the other.
//
// Threads: one at a time.
// Cost:    8 bytes of disk for each value; buffers of 512 KiB for reading.
class ColumnStore {
 public:
  // `fd`: an empty file. `columns` includes the time. There is room for `rows` rows.
  ColumnStore(FileDescriptor fd, std::size_t columns, std::uint64_t rows)
      : fd_(std::move(fd)), columns_(columns), room_(rows) {}

  // Adds these rows of the block.
  Result<void> add(const analysis::RowBlock& block, std::span<const std::size_t> rows);
  // Adds one row.
  Result<void> add(std::span<const std::uint64_t> row);
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

  // Calls `take` with the times of all rows and the values of these columns, piece by piece.
  using Values = std::span<const std::uint64_t>;
  Result<void> read(std::span<const std::size_t> columns,
                    const std::function<void(Values, std::span<const Values>)>& take) const;

 private:
  // Writes or reads all bytes at the place of the store's value with this number: `call` is
  // pwrite(2) or pread(2), and `verb` names it in an error.
  template <class Call, class Bytes>
  Result<void> transfer(Call call, const char* verb, Bytes* bytes, std::size_t left,
                        std::size_t first_value) const;
  Result<void> write(std::size_t column, std::span<const std::uint64_t> values) const;
  Result<void> read_piece(std::size_t column, std::uint64_t row,
                          std::span<std::uint64_t> values) const;

  FileDescriptor fd_;
  std::size_t columns_;
  std::uint64_t room_;
  std::uint64_t rows_ = 0;
  std::vector<std::uint64_t> values_;
};

}  // namespace kymo::exporting
