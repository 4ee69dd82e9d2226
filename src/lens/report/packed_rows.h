#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kymo/result.h"
#include "lens/analysis/summary.h"

namespace kymo::report {

// A column in the form that a page unpacks by itself, in blocks of kBlockRows rows.
// docs/web.md describes the bytes. Each part is deflated (RFC 1950).
struct PackedColumn {
  // For each block: its first, lowest, highest and last value, its lowest and highest rate (thinning.h), and the number
  // of bytes of a difference.
  std::string outline;
  // The differences from row to row. The first plane holds their lowest bytes, the next plane the
  // next bytes, and so on. The widest block determines the number of planes.
  std::vector<std::string> planes;
};

struct PackedRows {
  static constexpr std::uint64_t kBlockRows = 1024;
  std::vector<PackedColumn> columns;  // the time is the first
  bool samples_left_out = false;      // some blocks have only their outline
  // With a spool: the offset of each block in it, and of its end.
  std::vector<std::uint64_t> block_offsets{};
};

// Which samples are packed. The outlines of all blocks are packed in any case.
struct PackRequest {
  // Ranges of time (first and last row) whose samples are packed. If a range contains a part of a
  // block, the whole block is packed.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keep{};
  // A file to which the samples are written instead, block by block. A block holds the differences
  // of one column after the other, not deflated. -1: no file.
  int spool = -1;
};

// Reads a recording's rows again and packs the columns that are not idle.
//
// Errors: those of TsvReader.
//         resource_exhausted if there is not enough memory.
//         Those of writing the spool.
// Cost:   one pass over the file on one core; memory for the packed columns.
Result<PackedRows> pack_rows(const analysis::Summary& summary, const PackRequest& request);

}  // namespace kymo::report
