#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kymo/result.h"

namespace kymo {

// What a recovery did.
struct Recovery {
  std::string output;           // the recording that now holds the rows
  std::uint64_t rows = 0;       // yielded by the ring
  std::uint64_t cut_bytes = 0;  // taken off the output's end because they are among those rows
};

// Brings the rows that a killed recorder left in its ring file into its recording, each committed
// row exactly once, marks the recording "recovered" and removes the ring file.
//
// `output` is where the rows go instead of the recording that the ring names: a new recording;
// needed where the recorder wrote no file. Being killed here does no harm: called again, it does
// the same again.
//
// Errors: failed_precondition (in use; no output), not_found, invalid_argument (foreign, another
// version), data_loss (ring truncated; the recording is shorter than the recorder left it). Nothing
// is touched then.
Result<Recovery> recover_ring(const std::string& ring_path,
                              const std::optional<std::string>& output = std::nullopt);

// Makes room for a new ring at `ring_path`: a ring that a killed recorder left there, whoever's it
// is, is renamed to RING.left-<n>, n the first number that is free, and that name returned; an
// empty one where nothing is there. Of the ring only its header and its lock are looked at. Errors:
// failed_precondition (in use), and those of a file that is no whole ring.
Result<std::string> set_ring_aside(const std::string& ring_path);

}  // namespace kymo
