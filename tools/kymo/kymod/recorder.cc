#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "lens/report/human.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using RecorderRequest = v1::ControlRecorderRequest;

void show_recorder(const v1::Recorder& recorder) {
  const bool began = recorder.start_unix_ns() != 0;
  std::vector<std::vector<std::string>> rows{
      {"state", recorder.running() ? "recording" : "stopped"},
      {"a row every", report::duration(recorder.interval_ns())},
      {"metrics", recorder.metrics()},
      {"file", recorder.log_path().empty() ? "none: only in memory" : recorder.log_path()}};
  if (began) {
    rows.push_back({"since", local_time(recorder.start_unix_ns()) + ", for " +
                                 report::duration(recorder.duration_ns())});
    rows.push_back({"rows", report::with_commas(recorder.rows_written()) + " written, " +
                                report::with_commas(recorder.ticks_missed()) + " ticks missed"});
  }
  if (recorder.running()) {
    std::string reach = report::duration(recorder.reach_ns());
    if (recorder.reach_ns() < recorder.kept_ns()) {
      reach += ", later " + report::duration(recorder.kept_ns());
    }
    rows.push_back({"snapshots reach back", reach});
  }
  print_table(rows);
}

void control(Context& context, const RecorderRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::Recorder> recorder = client->control_recorder(request);
  if (!recorder) return fail(context, recorder.error());
  const bool stopped = request.action() == RecorderRequest::STOP;
  if (stopped || (request.action() == RecorderRequest::SET && recorder->running())) {
    say("the previous recording has ended: its rows in memory are gone, and snapshots cannot "
        "include them");
  }
  if (context.quiet) return;
  if (context.json) return print_json(report::to_json(*recorder));
  show_recorder(*recorder);
}

void add_changes(CLI::App& verb, const std::shared_ptr<RecorderRequest>& request) {
  constexpr double kMaxUs = 86'400'000'000;
  verb.add_option_function<std::uint64_t>(
          "--rate-us", [request](std::uint64_t us) { request->set_interval_us(us); },
          "Interval between samples, in microseconds")
      ->check(CLI::Range(1.0, kMaxUs));
  verb.add_option_function<std::string>(
      "--metrics", [request](const std::string& list) { request->set_metrics(list); },
      "Metrics to record: names separated by commas, or all");
  verb.add_option_function<std::string>(
      "--log", [request](const std::string& path) { request->set_log_path(absolute_path(path)); },
      "New file for the daemon-wide recording: NAME.tsv or NAME.tsv.zst");
}

}  // namespace

void add_recorder(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "recorder", "Show the status of kymod's recorder; start, stop or change it");
  verb->fallthrough();
  verb->require_subcommand(0, 1);
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  const auto add = [&](const char* name, const char* help, RecorderRequest::Action action,
                       bool takes_changes) {
    CLI::App* one = verb->add_subcommand(name, help);
    one->fallthrough();
    auto request = std::make_shared<RecorderRequest>();
    request->set_action(action);
    if (takes_changes) add_changes(*one, request);
    one->callback([&context, request] { control(context, *request); });
  };
  add("status", "Show the recorder's status (also: kymo recorder)", RecorderRequest::DESCRIBE,
      false);
  add("start", "Start a recording", RecorderRequest::START, true);
  add("stop", "Stop the recording and complete its files", RecorderRequest::STOP, false);
  add("set", "Change what is recorded: the running recording ends, and a new one begins",
      RecorderRequest::SET, true);
  verb->callback([&context, verb] {
    if (verb->get_subcommands().empty()) control(context, {});
  });
}

}  // namespace kymo::cli
