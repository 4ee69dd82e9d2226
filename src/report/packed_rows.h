#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/summary.h"
#include "kymo/result.h"

namespace kymo::report {

// A column in the form that a page unpacks by itself, block by block of kBlockRows rows
// (docs/report-page.md has the bytes). Each part is deflated (RFC 1950).
struct PackedColumn {
  // Of each block: its first, lowest, highest and last value, the lowest and highest rate between
  // two rows, and how wide its differences are.
  std::string outline;
  // The differences from row to row: their lowest bytes, the next ones, and so on, so many as the
  // widest block has.
  std::vector<std::string> planes;
};

struct PackedRows {
  static constexpr std::uint64_t kBlockRows = 1024;
  std::vector<PackedColumn> columns;  // the time is the first
  bool samples_left_out = false;      // some blocks have their outline alone
  // With a spool: where each block begins in it, and its end.
  std::vector<std::uint64_t> block_offsets{};
};

// Which samples are packed; every block has its outline.
struct PackRequest {
  // Times of rows, first and last, that samples are kept of; one that keeps a part of a block keeps
  // all of it.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keep{};
  // A file that samples go to instead, block by block: in each the columns' differences one after
  // the other, not deflated. -1: none.
  int spool = -1;
};

// Reads a recording's rows again and packs its columns that are not idle. Errors: those of
// TsvReader; resource_exhausted. Cost: a pass over the file on one core, memory for what is packed.
Result<PackedRows> pack_rows(const analysis::Summary& summary, const PackRequest& request);

}  // namespace kymo::report
