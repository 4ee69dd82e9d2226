#pragma once

#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "client/client.h"
#include "failures/explain.h"

namespace kymo::cli {

// The newest dump or restore of a job, if it was refused. Such a request leaves no checkpoint.
struct Refusal {
  std::string kind;  // "dump" or "restore"
  v1::HistoryRun run;
};

// Asks for the newest dump and the newest restore of a job, and returns those that were refused, the newest first.
std::vector<Refusal> newest_refusals(client::Client& client, const std::string& job);

failures::Explanation explanation_of(const Refusal& refusal);

}  // namespace kymo::cli
