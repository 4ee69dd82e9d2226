#include "daemon/request/watch.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kymo::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kDefaultRate = 10;
constexpr std::uint32_t kMaxRate = 1000;
// The longest time until kymod notices that a watcher has gone, at any rate.
constexpr std::chrono::milliseconds kLookAround{200};

class Watcher {
 public:
  explicit Watcher(ProgressBoard& board) : board_(board), entered_(board.enter_watcher()) {}
  ~Watcher() {
    if (entered_) board_.leave_watcher();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  [[nodiscard]] bool entered() const { return entered_; }

 private:
  ProgressBoard& board_;
  bool entered_;
};

std::string target_of(const v1::WatchRequest& request) {
  switch (request.target_case()) {
    case v1::WatchRequest::kPid:
      return "process " + std::to_string(request.pid());
    case v1::WatchRequest::kJob:
      return "job " + request.job();
    case v1::WatchRequest::kRequestId:
      return "request " + request.request_id();
    case v1::WatchRequest::TARGET_NOT_SET:
      break;
  }
  return "everything";
}

using Requests = std::vector<std::shared_ptr<RequestProgress>>;

// Writes one update for each request. Those that have ended are moved from `watched` to `told`,
// because their outcome has been written. Returns false if the reader has gone.
bool write_round(Requests& watched, const WatchOutput& out, std::set<std::string>& told) {
  for (auto it = watched.begin(); it != watched.end();) {
    const v1::Progress view = (*it)->view();
    if (!out.write(view)) return false;
    if (view.state() == v1::Progress::RUNNING) {
      ++it;
    } else {
      told.insert((*it)->id());
      it = watched.erase(it);
    }
  }
  return true;
}

// Sleeps until the next update is due, or until a request begins or ends. Meanwhile checks whether
// the reader is still there; returns false if it has gone.
bool wait_for_next(ProgressBoard& board, Clock::time_point due, std::uint64_t& seen,
                   const WatchOutput& out) {
  const std::uint64_t before = seen;
  while (Clock::now() < due && seen == before && !board.stopped()) {
    board.wait_until(std::min(due, Clock::now() + kLookAround), seen);
    if (out.gone()) return false;
  }
  return !out.gone();
}

Error stopping() {
  return {Code::unavailable, "kymod is stopping: try again when it is back"};
}

// The result for a reader that has gone. When kymod stops, gRPC cancels the calls that are left, so that
// their readers seem to have gone: they must not be told that all is well.
Result<void> reader_gone(const ProgressBoard& board) {
  if (board.stopped()) return stopping();
  return {};
}

}  // namespace

Result<void> watch(ProgressBoard& board, const v1::WatchRequest& request, const WatchOutput& out) {
  if (request.updates_per_second() > kMaxRate) {
    return Error{Code::invalid_argument, "watch: updates_per_second " +
                                             std::to_string(request.updates_per_second()) +
                                             ": at most " + std::to_string(kMaxRate)};
  }
  const Watcher watcher(board);
  if (!watcher.entered()) {
    return Error{Code::resource_exhausted,
                 "watch: " + std::to_string(ProgressBoard::kMaxWatchers) +
                     " clients watch already: try again when one of them has ended"};
  }
  const std::uint32_t rate =
      request.updates_per_second() == 0 ? kDefaultRate : request.updates_per_second();
  const auto interval = std::chrono::nanoseconds(std::chrono::seconds(1)) / rate;
  const bool by_id = request.target_case() == v1::WatchRequest::kRequestId;
  const bool all = request.target_case() == v1::WatchRequest::TARGET_NOT_SET;
  // Requests that end after this point are reported even if they begin and end between two rounds.
  // A request that is named by its id is reported whenever it ended.
  const std::uint64_t ended_before = by_id ? 0 : board.ended();
  std::uint64_t seen = 0;
  std::set<std::string> told;
  Requests watched;
  for (;;) {
    const auto due = Clock::now() + interval;
    // Ask in each round, to find new requests. The board also returns requests that have ended and
    // whose outcome was written already.
    for (auto& one : board.matching(request, ended_before)) {
      if (!told.contains(one->id()) &&
          std::find(watched.begin(), watched.end(), one) == watched.end()) {
        watched.push_back(std::move(one));
      }
    }
    if (watched.empty() && told.empty() && !request.wait() && !all) {
      return Error{Code::not_found,
                   "watch " + target_of(request) +
                       ": no dump or restore of it is running: kymo ps lists the jobs"};
    }
    if (!write_round(watched, out, told)) return reader_gone(board);
    const bool over = watched.empty() && !(all && request.wait()) && !(told.empty() && !all);
    if (over) return {};
    if (board.stopped()) return stopping();
    if (!wait_for_next(board, due, seen, out)) return reader_gone(board);
  }
}

}  // namespace kymo::daemon
