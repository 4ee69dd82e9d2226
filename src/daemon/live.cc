#include "daemon/live.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "daemon/web_json.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::milliseconds kRound{50};
constexpr std::uint64_t kQuietNs = 1'000'000'000;  // an event at least so often
constexpr std::uint64_t kDefaultPerSecond = 100;
// What is sent at once when much has gathered: a reader that is slow gets it in such pieces.
constexpr std::size_t kMostSpans = 20000;
constexpr std::size_t kMostColumns = 256;

std::string event_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A moment of CLOCK_MONOTONIC on the recording's clock; before its start: 0.
std::uint64_t on_recording(std::uint64_t monotonic, const std::optional<RecordingInfo>& info) {
  if (!info || monotonic < info->start_monotonic_ns) return 0;
  return monotonic - info->start_monotonic_ns;
}

nlohmann::json request_json(const RequestProgress& request,
                            const std::optional<RecordingInfo>& info) {
  nlohmann::json phases = nlohmann::json::array();
  const std::vector<RequestProgress::PhaseBegin> begins = request.phases();
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (begins[i].phase == "ended") continue;
    nlohmann::json phase{{"name", begins[i].phase},
                         {"begin_ns", on_recording(begins[i].at_ns, info)}};
    if (i + 1 < begins.size()) phase["end_ns"] = on_recording(begins[i + 1].at_ns, info);
    phases.push_back(std::move(phase));
  }
  nlohmann::json out = to_json(request.view());
  out["phases"] = std::move(phases);
  return out;
}

// Those that run, and each that ended once more.
class RequestNews {
 public:
  explicit RequestNews(const Parts& parts) : parts_(parts) {}

  nlohmann::json news() {
    const std::optional<RecordingInfo> info = parts_.recorder.info();
    nlohmann::json out = nlohmann::json::array();
    for (const auto& request : parts_.progress.matching({}, 0)) {
      const bool over = request->ended();
      if (over && !told_.insert(request->id()).second) continue;
      out.push_back(request_json(*request, info));
    }
    return out;
  }

 private:
  const Parts& parts_;
  std::set<std::string> told_;
};

nlohmann::json gaps_json(const Recorder& recorder, std::uint64_t from_ns) {
  nlohmann::json out = nlohmann::json::array();
  for (const Gap& gap : recorder.gaps_after(from_ns)) {
    out.push_back({{"start_ns", gap.start_ns}, {"end_ns", gap.end_ns}, {"ticks", gap.ticks}});
  }
  return out;
}

// What tells one recording from the next; 0: there is none.
std::uint64_t start_of(const Recorder& recorder) {
  const std::optional<RecordingInfo> info = recorder.info();
  return info ? info->start_monotonic_ns : 0;
}

Result<std::uint64_t> number_in(const http::Request& request, const std::string& name,
                                std::uint64_t otherwise, std::uint64_t most) {
  return parse_number(request.value(name), name, otherwise, most);
}

// The names in a list of columns; a comma in a name is within brackets.
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

}  // namespace

Result<LiveRequest> parse_live(const http::Request& request, const Recorder& recorder) {
  LiveRequest out;
  const auto per_second = number_in(request, "per_second", kDefaultPerSecond, 1'000'000'000);
  if (!per_second) return per_second.error();
  const auto back = number_in(request, "back_ns", 0, UINT64_MAX);
  if (!back) return back.error();
  const std::vector<std::string> names = split_columns(request.value("columns"));
  if (names.size() > kMostColumns) {
    return Error{Code::invalid_argument, "columns: " + std::to_string(names.size()) +
                                             " names; at most " + std::to_string(kMostColumns) +
                                             " are shown at once"};
  }
  const std::optional<RecordingInfo> info = recorder.info();
  if (!info) return out;
  for (const std::string& name : names) {
    const auto found = std::find_if(info->columns.begin(), info->columns.end(),
                                    [&](const Column& column) { return column.name == name; });
    if (found == info->columns.end()) {
      return Error{Code::not_found,
                   "columns: '" + name + "' is not recorded: /api/columns lists what is"};
    }
    out.columns.push_back({static_cast<std::size_t>(found - info->columns.begin()) + 1,
                           found->metric->kind != Kind::gauge});
  }
  const auto interval = static_cast<std::uint64_t>(info->interval.count());
  const std::uint64_t span = *per_second == 0 ? 0 : kNanosPerSecond / *per_second;
  out.span_ns = span <= interval ? 0 : span;
  const std::uint64_t now = recorder.now_ns();
  out.from_ns = now - std::min(now, *back);
  return out;
}

void serve_live(const Parts& parts, const LiveRequest& request, http::EventStream& events) {
  const Recorder& recorder = parts.recorder;
  const std::uint64_t recording = start_of(recorder);
  report::Envelope envelope(request.columns, request.span_ns);
  RequestNews requests(parts);
  std::uint64_t next_ns = request.from_ns;
  std::uint64_t said_ns = 0;
  const auto send = [&](bool even_empty) {
    if (envelope.spans() == 0 && !even_empty) return true;
    said_ns = monotonic_ns();
    nlohmann::json samples = envelope.take(false);
    samples["now_ns"] = recorder.now_ns();
    samples["gaps"] = gaps_json(recorder, request.from_ns);
    return events.send("samples", event_text(samples));
  };
  bool open = true;
  do {
    // A reader that stood still for longer than rows are kept goes on with those there are.
    if (!request.columns.empty()) {
      recorder.read(next_ns, [&](const Rows& rows) {
        if (!open) return;
        envelope.add(rows);
        next_ns = rows.row(rows.count - 1)[0] + 1;
        if (envelope.spans() >= kMostSpans) open = send(false);
      });
    }
    open = open && send(monotonic_ns() - said_ns > kQuietNs);
    if (const nlohmann::json news = requests.news(); open && !news.empty()) {
      open = events.send("requests", event_text(news));
    }
    if (open && start_of(recorder) != recording) {
      static_cast<void>(events.send("changed", "{}"));
      return;
    }
  } while (open && events.wait(kRound));
}

}  // namespace kymo::daemon
