#include "daemon/web/live.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "lens/report/api_json.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::milliseconds kRound{50};
constexpr std::uint64_t kQuietNs = 1'000'000'000;  // send an event at least this often
constexpr std::uint64_t kDefaultPerSecond = 100;
// The most that is sent at once. If much has gathered, the client gets it in pieces of this size.
// Making a piece takes some milliseconds and some megabytes of memory.
constexpr std::size_t kMaxFiguresPerPiece = 1U << 15U;  // spans times columns
constexpr std::size_t kMaxColumns = 256;

std::string event_text(const nlohmann::json& value) {
  return json_text(value);
}

// Converts a time of CLOCK_MONOTONIC to the clock of the recording.
std::uint64_t on_clock(const RecorderRun* run, std::uint64_t monotonic) {
  return run == nullptr ? 0 : run->on_clock(monotonic);
}

nlohmann::json request_json(const RequestProgress& request, const RecorderRun* run) {
  nlohmann::json phases = nlohmann::json::array();
  const std::vector<RequestProgress::PhaseBegin> begins = request.phases();
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (begins[i].phase == "ended") continue;
    nlohmann::json phase{{"name", begins[i].phase}, {"begin_ns", on_clock(run, begins[i].at_ns)}};
    if (i + 1 < begins.size()) phase["end_ns"] = on_clock(run, begins[i + 1].at_ns);
    phases.push_back(std::move(phase));
  }
  nlohmann::json out = report::to_json(request.view());
  out["phases"] = std::move(phases);
  return out;
}

// Reports the requests that run. Reports each request once more after it has ended.
class RequestNews {
 public:
  RequestNews(const Parts& parts, const RecorderRun* run) : parts_(parts), run_(run) {}

  nlohmann::json news() {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& request : parts_.progress.matching({}, 0)) {
      const bool over = request->ended();
      if (over && !told_.insert(request->id()).second) continue;
      out.push_back(request_json(*request, run_));
    }
    return out;
  }

 private:
  const Parts& parts_;
  const RecorderRun* const run_;
  std::set<std::string> told_;
};

// Splits a list of columns at its commas. A comma inside brackets is part of a name.
std::vector<std::string> split_columns(const std::string& list) {
  std::vector<std::string> names;
  std::string name;
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      names.push_back(std::move(name));
      name.clear();
    } else {
      name += c;
    }
  }
  if (!list.empty()) names.push_back(std::move(name));
  return names;
}

// Sends the rows of the recorder to one stream.
class Samples {
 public:
  Samples(const LiveRequest& request, http::EventStream& events)
      : request_(request),
        events_(events),
        envelope_(request.columns, request.span_ns, request.interval_ns),
        next_ns_(request.from_ns) {}

  // Sends the rows since the last call. Returns false if the client is gone.
  bool send_new() {
    // If the client did not read for longer than rows are kept, this continues with the oldest row
    // that is left.
    if (!request_.columns.empty()) {
      request_.run->read(next_ns_, [&](const Rows& rows) { add(rows); });
    }
    return open_ = open_ && send(monotonic_ns() - said_ns_ > kQuietNs);
  }

 private:
  void add(const Rows& rows) {
    const std::size_t most =
        std::max<std::size_t>(1, kMaxFiguresPerPiece / request_.columns.size());
    for (std::size_t first = 0; open_ && first < rows.count;) {
      // Each row adds at most one span.
      const std::size_t count = std::min(most - envelope_.spans(), rows.count - first);
      {
        const std::unique_lock turn = take_turn();
        if (!open_) return;
        envelope_.add({rows.data + first * rows.stride, count, rows.stride});
      }
      first += count;
      next_ns_ = rows.row(first - 1)[0] + 1;
      if (envelope_.spans() == most) open_ = send(false);
    }
  }

  bool send(bool even_empty) {
    if (envelope_.spans() == 0 && !even_empty) return true;
    said_ns_ = monotonic_ns();
    const std::string data = text();
    return open_ && events_.send("samples", data);
  }

  std::string text() {
    const std::unique_lock turn = take_turn();
    if (!open_) return {};
    const RecorderRun* const run = request_.run.get();
    nlohmann::json samples = envelope_.take(false);
    samples["now_ns"] = run == nullptr ? 0 : run->end_ns();
    // From these, the page finds out that its information about the recorder is out of date.
    samples["start_unix_ns"] = run == nullptr ? 0 : run->info().start_unix_ns;
    samples["running"] = run != nullptr && run->running();
    samples["gaps"] = run == nullptr ? nlohmann::json::array() : gaps_json(*run, request_.from_ns);
    return event_text(samples);
  }

  // Only one stream at a time makes its text. Otherwise many streams that begin far back would keep
  // every core busy, and a stream that asks for little would have to wait. If the client went away
  // or the server is stopping when this stream gets its turn, the stream is closed.
  std::unique_lock<std::mutex> take_turn() {
    static std::mutex one_at_a_time;
    std::unique_lock turn(one_at_a_time);
    open_ = open_ && events_.wait(std::chrono::milliseconds(0));
    return turn;
  }

  const LiveRequest& request_;
  http::EventStream& events_;
  report::Envelope envelope_;
  std::uint64_t next_ns_;
  std::uint64_t said_ns_ = 0;
  bool open_ = true;
};

}  // namespace

nlohmann::json gaps_json(const RecorderRun& run, std::uint64_t from_ns) {
  nlohmann::json out = nlohmann::json::array();
  for (const Gap& gap : run.cuts().gaps_after(from_ns)) {
    out.push_back({{"start_ns", gap.start_ns}, {"end_ns", gap.end_ns}, {"ticks", gap.ticks}});
  }
  return out;
}

Result<std::vector<report::Envelope::Column>> parse_columns(const std::string& list,
                                                            const RecordingInfo& info) {
  const std::vector<std::string> names = split_columns(list);
  if (names.size() > kMaxColumns) {
    return Error{Code::invalid_argument, "columns: " + std::to_string(names.size()) +
                                             " names; at most " + std::to_string(kMaxColumns) +
                                             " are shown at once"};
  }
  std::vector<report::Envelope::Column> columns;
  for (const std::string& name : names) {
    const auto found = std::find_if(info.columns.begin(), info.columns.end(),
                                    [&](const Column& column) { return column.name == name; });
    if (found == info.columns.end()) {
      return Error{Code::not_found,
                   "columns: '" + name + "' is not recorded: /api/columns lists what is"};
    }
    columns.push_back({static_cast<std::size_t>(found - info.columns.begin()) + 1,
                       found->metric->kind != Kind::gauge});
  }
  return columns;
}

Result<LiveRequest> parse_live(const http::Request& request, const Recorder& recorder) {
  LiveRequest out;
  const auto per_second = request.number("per_second", kDefaultPerSecond, 1'000'000'000);
  if (!per_second) return per_second.error();
  const auto back = request.number("back_ns", 0, UINT64_MAX);
  if (!back) return back.error();
  out.run = recorder.latest();
  if (out.run == nullptr) return out;
  auto columns = parse_columns(request.value("columns"), out.run->info());
  if (!columns) return columns.error();
  out.columns = std::move(columns).value();
  out.interval_ns = static_cast<std::uint64_t>(out.run->info().interval.count());
  const std::uint64_t span = *per_second == 0 ? 0 : kNanosPerSecond / *per_second;
  out.span_ns = span <= out.interval_ns ? 0 : span;
  const std::uint64_t now = out.run->now_ns();
  out.from_ns = now - std::min(now, *back);
  return out;
}

void serve_live(const Parts& parts, const LiveRequest& request, http::EventStream& events) {
  const std::shared_ptr<const RecorderRun> recorded = parts.recorder.running();
  Samples samples(request, events);
  RequestNews requests(parts, request.run.get());
  do {
    if (!samples.send_new()) return;
    if (const nlohmann::json news = requests.news(); !news.empty()) {
      if (!events.send("requests", event_text(news))) return;
    }
    const std::shared_ptr<const RecorderRun> now = parts.recorder.running();
    if (now != recorded || (now != nullptr && now != request.run)) {
      static_cast<void>(events.send("changed", "{}"));
      return;
    }
  } while (events.wait(kRound));
}

}  // namespace kymo::daemon
