#include "daemon/web/web_api.h"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/http/token_file.h"
#include "base/json_text.h"
#include "daemon/request/recorder_control.h"
#include "daemon/web/live.h"
#include "daemon/web/past.h"
#include "daemon/web/web_profiles.h"
#include "daemon/web/web_stored.h"
#include "kymo/version.h"
#include "lens/report/api_json.h"
#include "lens/report/live_page.h"
#include "recorder/metrics/unit_names.h"

namespace kymo::daemon {
namespace {

http::Reply reply_of(const Result<nlohmann::json>& result) {
  if (!result) return http::error_reply(result.error());
  return http::json_reply(json_text(*result) + "\n");
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

nlohmann::json recorder_json(const Recorder& recorder) {
  nlohmann::json out = report::to_json(recorder_status(recorder));
  const std::shared_ptr<const RecorderRun> run = recorder.latest();
  out["now_ns"] = run == nullptr ? 0 : run->end_ns();
  out["first_ns"] = run == nullptr ? 0 : oldest_ns(*run);
  return out;
}

nlohmann::json status_json(const Parts& parts) {
  return {{"version", KYMO_VERSION},
          {"host", host_name()},
          {"now_unix_ns", unix_ns()},
          {"controls", parts.config.http_controls},
          {"profiles", !parts.config.profiles.empty()},
          {"recorder", recorder_json(parts.recorder)}};
}

// The recorded columns, in the order of a recording's header.
nlohmann::json columns_json(const Recorder& recorder) {
  nlohmann::json columns = nlohmann::json::array();
  const std::shared_ptr<const RecorderRun> run = recorder.latest();
  if (run == nullptr) return columns;
  for (const Column& column : run->info().columns) {
    columns.push_back({{"name", column.name},
                       {"metric", column.metric->name},
                       {"kind", column.metric->kind == kymo::Kind::gauge ? "gauge" : "counter"},
                       {"unit", unit_name(column.metric->unit)},
                       {"help", column.metric->help}});
  }
  return columns;
}

// Checks that the page may control the recorder.
// Errors: permission_denied: kymod runs without --http-controls. `instead`: the command that the
//         error names.
Result<void> check_controls(const Parts& parts, const char* instead) {
  if (parts.config.http_controls) return {};
  return Error{
      Code::permission_denied,
      std::string("the page may only read: start kymod with --http-controls, or use ") + instead};
}

Result<nlohmann::json> take_snapshot(const Parts& parts, const http::Request& request) {
  if (Result<void> may = check_controls(parts, "kymo snapshot"); !may) return may.error();
  constexpr std::uint64_t kDefaultBeforeNs = 10 * kNanosPerSecond;
  constexpr std::uint64_t kMaxBeforeNs = 3600 * kNanosPerSecond;
  constexpr std::uint64_t kMaxAfterNs = 10 * kNanosPerSecond;
  const auto before = request.number("before_ns", kDefaultBeforeNs, kMaxBeforeNs);
  if (!before) return before.error();
  const auto after = request.number("after_ns", 0, kMaxAfterNs);
  if (!after) return after.error();
  SnapshotRequest wanted;
  wanted.reason = "page";
  wanted.before = std::chrono::nanoseconds(*before);
  wanted.after = std::chrono::nanoseconds(*after);
  const Result<TakenSnapshot> taken = parts.recorder.snapshot(wanted, true);
  if (!taken) return taken.error();
  return nlohmann::json{{"recording", taken->path},
                        {"name", std::filesystem::path(taken->path).stem().string()},
                        {"before_ns", taken->before.count()}};
}

// The page cannot set the file of the recording. Only kymod's flags and `kymo recorder` can.
Result<nlohmann::json> control(const Parts& parts, const http::Request& request) {
  if (Result<void> may = check_controls(parts, "kymo recorder"); !may) return may.error();
  v1::ControlRecorderRequest wanted;
  const std::string action = request.value("action");
  if (action == "start") {
    wanted.set_action(v1::ControlRecorderRequest::START);
  } else if (action == "stop") {
    wanted.set_action(v1::ControlRecorderRequest::STOP);
  } else if (action == "set") {
    wanted.set_action(v1::ControlRecorderRequest::SET);
  } else {
    return Error{Code::invalid_argument, "action=" + action + ": there are start, stop and set"};
  }
  if (!request.value("interval_us").empty()) {
    const auto number = request.number("interval_us", 0, UINT64_MAX);
    if (!number) return number.error();
    wanted.set_interval_us(*number);
  }
  wanted.set_metrics(request.value("metrics"));
  const Result<v1::Recorder> done = control_recorder(parts, wanted, "the page");
  if (!done) return done.error();
  return recorder_json(parts.recorder);
}

// Makes a page with a new nonce.
http::Reply page_of(const std::function<Result<std::string>(const std::string& nonce)>& make) {
  const Result<std::string> nonce = http::make_token();
  if (!nonce) return http::error_reply(nonce.error());
  Result<std::string> html = make(*nonce);
  if (!html) return http::error_reply(html.error());
  return http::page_reply(std::move(html).value(), *nonce);
}

void add_stored_paths(http::Server& server, const Parts& parts) {
  using Ask = Result<nlohmann::json> (*)(const Parts&, const http::Request&);
  const auto add = [&](const std::string& path, Ask ask) {
    server.get(
        path, [parts, ask](const http::Request& request) { return reply_of(ask(parts, request)); });
  };
  add("/api/jobs", [](const Parts& all, const http::Request&) { return stored_jobs(all); });
  add("/api/now", [](const Parts& all, const http::Request&) { return live_figures(all); });
  add("/api/checkpoints", stored_checkpoints);
  add("/api/checkpoint", stored_checkpoint);
  add("/api/comparison", stored_comparison);
  add("/api/history", stored_history);
  add("/api/past", recorded_past);
}

}  // namespace

void add_open_paths(http::Server& server,
                    std::vector<std::shared_ptr<prometheus::Collectable>> metrics) {
  server.open("/metrics", [metrics = std::move(metrics)](const http::Request&) {
    std::ostringstream text;
    for (const auto& some : metrics) prometheus::TextSerializer().Serialize(text, some->Collect());
    return http::Reply{200, "text/plain; version=0.0.4; charset=utf-8", text.str(), {}};
  });
  server.open("/healthz", [](const http::Request&) {
    return http::Reply{200, "text/plain; charset=utf-8", "ok\n", {}};
  });
}

void add_page_paths(http::Server& server, const Parts& parts) {
  server.page("/", [](const http::Request&) { return page_of(report::live_page); });
  server.page("/recording", [parts](const http::Request& request) {
    return page_of(
        [&](const std::string& nonce) { return stored_recording(parts, request, nonce); });
  });
  server.post("/api/snapshot", [parts](const http::Request& request) {
    return reply_of(take_snapshot(parts, request));
  });
  server.post("/api/recorder",
              [parts](const http::Request& request) { return reply_of(control(parts, request)); });
  server.get("/api/status", [parts](const http::Request&) { return reply_of(status_json(parts)); });
  server.get("/api/columns",
             [parts](const http::Request&) { return reply_of(columns_json(parts.recorder)); });
  add_stored_paths(server, parts);
  add_profile_paths(server, parts);
  server.stream("/api/live",
                [parts](const http::Request& request) -> Result<http::Server::EventSource> {
                  Result<LiveRequest> live = parse_live(request, parts.recorder);
                  if (!live) return live.error();
                  return http::Server::EventSource(
                      [parts, live = std::move(live).value()](http::EventStream& events) {
                        serve_live(parts, live, events);
                      });
                });
}

}  // namespace kymo::daemon
