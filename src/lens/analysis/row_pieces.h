#pragma once

#include <functional>

#include "kymo/result.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/tsv_reader.h"

namespace kymo::analysis {

// Reads all rows of a recording that was just opened. `take` is called for them in the order of the
// file, on the caller's thread. Plain TSV is read on up to `threads` threads, fewer if the file is
// short. 0 means one thread for each core that this process may use. Afterwards, `reader` knows
// which lines were left out, with any number of threads.
//
// Errors: those of TsvReader::next().
Result<void> take_rows(TsvReader& reader, unsigned threads,
                       const std::function<void(const RowPiece&)>& take);

}  // namespace kymo::analysis
