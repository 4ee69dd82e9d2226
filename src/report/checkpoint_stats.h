#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "criu/image_set.h"
#include "criu/memory.h"
#include "criu/phases.h"
#include "criu/stats.h"

namespace kymo::report {

// What CRIU's own files say of a checkpoint, whoever made it: its statistics, where the time went,
// and which processes and mappings its pages are of.
struct CheckpointStats {
  std::string path;
  std::uint64_t image_files = 0;
  std::uint64_t image_bytes = 0;
  std::optional<criu::DumpStats> dump;
  std::optional<criu::RestoreStats> restore;
  std::string dump_path;  // where they were found
  std::string restore_path;
  std::optional<criu::LogPhases> dump_phases;  // none without a log
  std::optional<criu::LogPhases> restore_phases;
  criu::CheckpointPages pages;
  std::vector<std::string> notes;  // what could not be read, or not be so, a line each
};

// Reads them. Errors: as of ImageSet::open; what else is missing or damaged is a note.
Result<CheckpointStats> read_checkpoint_stats(const std::string& path);

// For a person; of each process the `mappings` largest mappings.
std::string text_of(const CheckpointStats& stats, std::size_t mappings);
// CRIU's figures by their names; what CRIU left out stays out.
nlohmann::json json_of(const std::vector<criu::StatsFigure>& figures);
// For a program, everything.
nlohmann::json json_of(const CheckpointStats& stats);

}  // namespace kymo::report
