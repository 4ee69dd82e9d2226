#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/diagnosis/phases.h"
#include "kymo/result.h"
#include "lens/report/checkpoint_stats.h"

namespace kymo::report {

// Why a dump or restore took so long, and its phases.
struct Explanation {
  std::uint64_t frozen_ns = 0;  // 0: not known
  std::vector<std::string> lines;
  std::vector<diagnosis::Phase> phases;
  std::vector<std::pair<std::string, double>> shares;  // diagnosis::Verdict::shares, if recorded
  std::vector<std::string> unknown;                    // what could not be known, one line each
};

// Reads the explanation that kymod left in the record of a checkpoint, also of a dump that failed. Nothing: it left none.
std::optional<Explanation> explanation_in(const nlohmann::json& record);

// Reads the explanation that kymod left in checkpoint.json. If there is none, because nobody
// recorded the dump, makes one of CRIU's log and statistics alone. `path`: a checkpoint, a folder
// of images or of CRIU's log, or an archive.
// Errors: those of read_checkpoint_stats(); failed_precondition if the dump failed.
Result<Explanation> explain_checkpoint(const std::string& path);
// The same, if the statistics have been read already.
Result<Explanation> explain_checkpoint(const CheckpointStats& stats);
// Reads the explanation that kymod left in the metadata of the recording of a dump or restore.
// Errors: those of analysis::read_metadata(); failed_precondition if there is none.
Result<Explanation> explain_recording(const std::string& path);

// Text for a person: the lines, then one row for each phase, with the sum of its stretches.
std::string text_of(const Explanation& explanation);
nlohmann::json json_of(const Explanation& explanation);

}  // namespace kymo::report
