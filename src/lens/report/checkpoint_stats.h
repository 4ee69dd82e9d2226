#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/memory.h"
#include "checkpoint/criu/images/memory_shape.h"

namespace kymo::report {

// What CRIU's own files say about a checkpoint: its statistics, its phases, and the processes and
// mappings that its pages belong to. kymod need not have made the checkpoint.
struct CheckpointStats {
  std::string path;
  std::uint64_t image_files = 0;
  std::uint64_t image_bytes = 0;
  std::optional<criu::DumpStats> dump;
  std::optional<criu::RestoreStats> restore;
  std::string dump_path;  // the file of the dump's statistics
  std::string restore_path;
  std::optional<criu::LogPhases> dump_phases;  // empty without a log
  std::string dump_log;                        // its path
  std::optional<criu::LogPhases> restore_phases;
  criu::CheckpointPages pages;
  std::optional<criu::MemoryShape> shape;  // nothing: it cannot be told
  std::string unfinished;                  // that the dump did not come to its end; empty: it did
  std::vector<std::string> causes;         // criu::known_causes(); kymo explain says more of them
  std::vector<std::string> notes;          // what could not be read or cannot be true, a line each
};

// Reads the statistics.
//
// Errors: those of ImageSet::open(). Anything else that is missing or damaged becomes a note.
Result<CheckpointStats> read_checkpoint_stats(const std::string& path);

// Text for a person, with the `mappings` largest mappings of each process.
std::string text_of(const CheckpointStats& stats, std::size_t mappings);
// CRIU's figures by their names. Figures that CRIU left out are left out here.
nlohmann::json json_of(const std::vector<criu::StatsFigure>& figures);
// JSON with everything.
nlohmann::json json_of(const CheckpointStats& stats);

}  // namespace kymo::report
