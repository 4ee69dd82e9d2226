#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/metadata.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/row_parser.h"

namespace kymo::analysis {

// Reads a recording block by block. It can be plain TSV (docs/formats.md) or gVisor's profiling
// file, also within a log (docs/formats.md), and it can be compressed with zstd.
//
// Threads: one at a time.
// Errors:  open() refuses a file that is not a recording. After that, damaged lines are left out
//          and noted (left_out()), and only a failed read ends the reading.
// Cost:    about 2 MiB for a file of any size.
class TsvReader {
 public:
  // Errors: those of opening and reading.
  //         invalid_argument if the file does not begin with the header of a recording.
  //         data_loss if the header is cut short.
  static Result<TsvReader> open(const std::string& path);
  // Reads from memory. Messages use `name` as the path.
  static Result<TsvReader> from_text(std::string text, const std::string& name);

  TsvReader(TsvReader&&) noexcept;
  TsvReader& operator=(TsvReader&&) noexcept;
  ~TsvReader();

  // The names from the header, without the time.
  [[nodiscard]] const std::vector<std::string>& columns() const;
  // An empty block of the right shape.
  [[nodiscard]] RowBlock make_block() const;

  // The range of the rows in a plain TSV file, so that others can read them. Call it right after
  // open(). Empty if the file is compressed, annotated or not a regular file. The reader keeps the
  // ownership of the descriptor.
  [[nodiscard]] std::optional<PlainText> plain_text() const;
  // Continues after rows that others have read.
  Result<void> skip(const RowsTaken& taken);

  // Fills `block` with the next rows. Returns false if there are none; the block is empty then.
  Result<bool> next(RowBlock& block);

  // The metadata that an annotated file (gVisor's format) contains, and notes on its lines that
  // could not be read. The columns are known after open(), the statistics and notes after next()
  // has returned false. A plain TSV file contains no metadata: null, and no notes.
  [[nodiscard]] const Metadata* embedded_metadata() const;
  [[nodiscard]] std::vector<std::string> embedded_notes() const;

  // The lines that were left out so far. It is complete when next() has returned false.
  [[nodiscard]] const LeftOut& left_out() const;

 private:
  struct State;
  explicit TsvReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::analysis
