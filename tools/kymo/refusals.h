#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/failures/explain.h"
#include "client/client.h"

namespace kymo::cli {

// The newest dump or restore of a job, if it was refused. Such a request leaves no checkpoint.
struct Refusal {
  std::string kind;  // "dump" or "restore"
  v1::HistoryRun run;
};

struct NewestRuns {
  std::vector<Refusal>
      refused;  // the newest dump and the newest restore, if refused, the newest first
  // The newest restore that was not refused, if there was no such dump since.
  std::optional<v1::HistoryRun> restore{};
};

// Asks for the newest dump and the newest restore of a job.
NewestRuns newest_runs(client::Client& client, const std::string& job);

// Why a run was refused or failed.
failures::Explanation explanation_of(const v1::HistoryRun& run);

}  // namespace kymo::cli
