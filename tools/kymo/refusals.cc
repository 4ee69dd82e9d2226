#include "refusals.h"

#include <algorithm>

namespace kymo::cli {

std::vector<Refusal> newest_refusals(client::Client& client, const std::string& job) {
  std::vector<Refusal> refusals;
  for (const bool restores : {false, true}) {
    v1::HistoryRequest request;
    request.set_job(job);
    request.set_restores(restores);
    request.set_last(1);
    const Result<v1::HistoryResponse> history = client.history(request);
    if (!history || history->runs().empty() || !history->runs().rbegin()->refused()) continue;
    refusals.push_back({restores ? "restore" : "dump", *history->runs().rbegin()});
  }
  std::stable_sort(refusals.begin(), refusals.end(), [](const Refusal& one, const Refusal& other) {
    return one.run.created_unix_ns() > other.run.created_unix_ns();
  });
  return refusals;
}

failures::Explanation explanation_of(const Refusal& refusal) {
  failures::Explanation why = failures::of_error({Code::internal, refusal.run.error()});
  if (why.id == refusal.run.failure()) return why;  // the error itself says more than its id
  const failures::Entry& entry = failures::entry_of(refusal.run.failure());
  return {entry.id, refusal.run.error(), entry.why, entry.remedy, entry.retry, {}, {}};
}

}  // namespace kymo::cli
