#include "refusals.h"

#include <algorithm>
#include <utility>

namespace kymo::cli {

NewestRuns newest_runs(client::Client& client, const std::string& job) {
  NewestRuns newest;
  std::int64_t dumped_unix_ns = 0;
  for (const bool restores : {false, true}) {
    v1::HistoryRequest request;
    request.set_job(job);
    request.set_restores(restores);
    request.set_last(1);
    Result<v1::HistoryResponse> history = client.history(request);
    if (!history || history->runs().empty()) continue;
    auto& runs = *history->mutable_runs();  // oldest first
    if (runs.rbegin()->refused()) {
      newest.refused.push_back({restores ? "restore" : "dump", *runs.rbegin()});
    }
    const auto begun = std::find_if(runs.rbegin(), runs.rend(),
                                    [](const v1::HistoryRun& run) { return !run.refused(); });
    if (begun == runs.rend()) continue;
    if (!restores) dumped_unix_ns = begun->created_unix_ns();
    if (restores && begun->created_unix_ns() > dumped_unix_ns) newest.restore = std::move(*begun);
  }
  std::stable_sort(newest.refused.begin(), newest.refused.end(),
                   [](const Refusal& one, const Refusal& other) {
                     return one.run.created_unix_ns() > other.run.created_unix_ns();
                   });
  return newest;
}

failures::Explanation explanation_of(const v1::HistoryRun& run) {
  return failures::of_error({Code::internal, run.error()}, run.failure());
}

}  // namespace kymo::cli
