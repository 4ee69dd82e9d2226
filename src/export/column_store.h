#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/parallel_rows.h"
#include "base/file.h"
#include "kymo/result.h"

namespace kymo::exporting {

// Rows on disk, column by column, for formats that want them so. The file has no name: nothing is
// left behind by a process that is killed.
//
// Threads: one at a time. Cost: 8 bytes of disk a value; buffers of 512 KiB to read.
class ColumnStore {
 public:
  // `columns` counts the time as one; there is room for `rows`. Errors: of the system.
  static Result<std::unique_ptr<ColumnStore>> create(const std::string& folder, std::size_t columns,
                                                     std::uint64_t rows);

  // Adds these rows of the block.
  Result<void> add(const analysis::RowBlock& block, std::span<const std::size_t> rows);
  // Adds one row.
  Result<void> add(std::span<const std::uint64_t> row);
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

  // The times of all rows, and these columns' values beside them, piece by piece.
  using Values = std::span<const std::uint64_t>;
  Result<void> read(std::span<const std::size_t> columns,
                    const std::function<void(Values, std::span<const Values>)>& take) const;

 private:
  ColumnStore(FileDescriptor fd, std::size_t columns, std::uint64_t room)
      : fd_(std::move(fd)), columns_(columns), room_(room) {}
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
