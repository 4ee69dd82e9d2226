#include "checkpoints/checkpoint_pair.h"

#include "lens/report/checkpoint_diff.h"
#include "lens/report/checkpoint_stats.h"

namespace kymo::cli {

Result<CheckpointPair> compare_checkpoints(const std::string& before, const std::string& after,
                                           std::size_t rows) {
  const auto stats_before = report::read_checkpoint_stats(before);
  if (!stats_before) return stats_before.error();
  const auto stats_after = report::read_checkpoint_stats(after);
  if (!stats_after) return stats_after.error();
  const report::CheckpointDiff diff = report::diff_of(*stats_before, *stats_after);
  return CheckpointPair{report::json_of(diff), report::text_of(diff, rows)};
}

}  // namespace kymo::cli
