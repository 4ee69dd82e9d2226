#include "daemon/request/cancel.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kymo::daemon {
namespace {

// There is no notification when the caller of a request is answered before the request ends.
constexpr std::chrono::milliseconds kLookForEndEvery{50};

using Requests = std::vector<std::shared_ptr<RequestProgress>>;

// Finds the running requests. A request knows its job by name only, so the id of a job is turned
// into its name.
Requests find_requests(const Parts& parts, const std::string& target) {
  Requests found = parts.progress.running_of(target);
  if (!found.empty()) return found;
  const Result<store::Job> job = parts.store.job(target);
  return job ? parts.progress.running_of(job->name) : found;
}

}  // namespace

Result<v1::CancelResponse> cancel(const Parts& parts, const v1::CancelRequest& request,
                                  std::chrono::milliseconds within) {
  if (request.target().empty()) {
    return Error{Code::invalid_argument, "cancel: neither a request nor a job was given"};
  }
  const Requests requests = find_requests(parts, request.target());
  if (requests.empty()) {
    return Error{Code::not_found,
                 "cancel " + request.target() +
                     ": no dump or restore of it is running: kymo progress lists the running ones"};
  }
  for (const auto& one : requests) {
    spdlog::info("cancel: request {}", one->id());
    one->cancellation().ask();
  }
  const auto until = std::chrono::steady_clock::now() + within;
  const auto over = [&] {
    return std::all_of(requests.begin(), requests.end(),
                       [](const auto& one) { return one->ended(); });
  };
  const auto left = [&] {
    return std::any_of(requests.begin(), requests.end(),
                       [](const auto& one) { return one->left() && !one->ended(); });
  };
  std::uint64_t seen = 0;
  while (!over()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until || left() || parts.progress.stopped()) {
      return Error{Code::deadline_exceeded, "cancel " + request.target() +
                                                ": it was cancelled, but has not ended yet" +
                                                (left() ? ", because a disk does not answer" : "") +
                                                ": kymo progress shows it"};
    }
    parts.progress.wait_until(std::min(until, now + kLookForEndEvery), seen);
  }
  v1::CancelResponse out;
  for (const auto& one : requests) *out.add_requests() = one->view();
  return out;
}

}  // namespace kymo::daemon
