#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/metadata.h"
#include "analysis/parallel_rows.h"
#include "analysis/row_parser.h"
#include "kymo/result.h"

namespace kymo::analysis {

// Reads a recording block by block: plain TSV (docs/tsv-format.md) or gVisor's profiling file, also
// out of a log (docs/annotated-format.md); compressed by zstd or not.
//
// Threads: one at a time. Errors: open() refuses what is no recording at all; from then on damage
// is left
//          out and noted (left_out()), and only a failed read ends the reading.
// Cost:    about 2 MiB, whatever the file's size.
class TsvReader {
 public:
  // Errors: of opening and reading; invalid_argument for a file that begins with no recording's
  // header.
  static Result<TsvReader> open(const std::string& path);
  // Reads from memory; `name` stands in messages.
  static Result<TsvReader> from_text(std::string text, const std::string& name);

  TsvReader(TsvReader&&) noexcept;
  TsvReader& operator=(TsvReader&&) noexcept;
  ~TsvReader();

  // Names from the header, without the time.
  [[nodiscard]] const std::vector<std::string>& columns() const;
  // An empty block of the right shape.
  [[nodiscard]] RowBlock make_block() const;

  // Where the rows of plain TSV lie that others may read as well, right after open(); none of a
  // file that is compressed, annotated, or no regular one. The descriptor stays the reader's.
  [[nodiscard]] std::optional<PlainText> plain_text() const;
  // Goes on behind rows that somebody else has read.
  Result<void> skip(const RowsTaken& taken);

  // Fills `block` with the rows that come next. False: there are no more, and the block is empty.
  Result<bool> next(RowBlock& block);

  // What an annotated file says of itself so far, columns when it is open, statistics and notes
  // after next() returned false; none for plain TSV.
  [[nodiscard]] const Metadata* embedded_metadata() const;
  [[nodiscard]] std::vector<std::string> embedded_notes() const;

  // What was left out so far; whole after next() returned false.
  [[nodiscard]] const LeftOut& left_out() const;

 private:
  struct State;
  explicit TsvReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::analysis
