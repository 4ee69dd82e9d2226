#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kymo/export.h"
#include "kymo/result.h"

// What a killed program left in its ring file (ProfilerOptions::ring_file). `kymo recover` does the
// same from the command line.

namespace kymo {

// What a recovery did.
struct Recovery {
  std::string output;      // the recording that now holds the rows
  std::uint64_t rows = 0;  // rows taken from the ring
  // At the end of the output. The recorder was killed while it wrote them, so the ring has their
  // rows, too. They were written again.
  std::uint64_t cut_bytes = 0;
};

// Puts the rows that a killed recorder left in its ring file into its recording, each committed row
// exactly once. Then marks the recording as "recovered" and removes the ring file.
//
// `output`: a new recording for the rows, instead of the recording that the ring names. It is
// needed if the recorder wrote no file.
// If the recovery is killed, no row is lost: call it again. It does the same, but a new recording
// that it has begun must be removed before. The recording never becomes shorter before all rows are
// on its disk, and the ring is removed last.
//
// Threads: any; two recoveries of one ring exclude each other by its lock.
// Cost:    reads the ring and the end of the recording, and writes the rows. It may take seconds.
// Errors:  failed_precondition if the ring is in use, names no output, or does not belong to the
//          recording; not_found; permission_denied if the ring belongs to another user;
//          invalid_argument if it is no ring, of another version, or damaged; data_loss if it is
//          truncated, or if the recording is shorter than the recorder left it. After these errors
//          nothing has changed.
KYMO_API Result<Recovery> recover_ring(const std::string& ring_path,
                                       const std::optional<std::string>& output = std::nullopt);

}  // namespace kymo
