#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "print.h"
#include "report/api_json.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using RecorderRequest = v1::ControlRecorderRequest;

void show_recorder(const v1::Recorder& recorder) {
  const bool began = recorder.start_unix_ns() != 0;
  std::vector<std::vector<std::string>> rows{
      {"state", recorder.running() ? "recording" : "stopped"},
      {"a row every", duration_text(recorder.interval_ns())},
      {"metrics", recorder.metrics()},
      {"file", recorder.log_path().empty() ? "none: in memory alone" : recorder.log_path()}};
  if (began) {
    rows.push_back({"since", local_time(recorder.start_unix_ns()) + ", for " +
                                 duration_text(recorder.duration_ns())});
    rows.push_back({"rows", grouped(recorder.rows_written()) + " written, " +
                                grouped(recorder.ticks_missed()) + " ticks missed"});
  }
  if (recorder.running()) {
    std::string reach = duration_text(recorder.reach_ns());
    if (recorder.reach_ns() < recorder.kept_ns()) {
      reach += ", later " + duration_text(recorder.kept_ns());
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
    say("the recording before has ended: what was only in memory is gone, and no snapshot reaches "
        "back to it");
  }
  if (context.json) return print_json(report::to_json(*recorder));
  show_recorder(*recorder);
}

void add_changes(CLI::App& verb, const std::shared_ptr<RecorderRequest>& request) {
  constexpr double kMostUs = 86'400'000'000;
  verb.add_option_function<std::uint64_t>(
          "--rate-us", [request](std::uint64_t us) { request->set_interval_us(us); },
          "Microseconds between samples")
      ->check(CLI::Range(1.0, kMostUs));
  verb.add_option_function<std::string>(
      "--metrics", [request](const std::string& list) { request->set_metrics(list); },
      "Metrics to record, with commas between them, or all");
  verb.add_option_function<std::string>(
      "--log", [request](const std::string& path) { request->set_log_path(absolute_path(path)); },
      "The daemon-wide recording: a new file NAME.tsv or NAME.tsv.zst");
}

}  // namespace

void add_recorder(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("recorder", "How kymod's recorder does; start it, stop it, set its rate");
  verb->fallthrough();
  verb->require_subcommand(0, 1);
  verb->add_flag("--json", context.json, "Print JSON");
  const auto add = [&](const char* name, const char* help, RecorderRequest::Action action,
                       bool takes_changes) {
    CLI::App* one = verb->add_subcommand(name, help);
    one->fallthrough();
    auto request = std::make_shared<RecorderRequest>();
    request->set_action(action);
    if (takes_changes) add_changes(*one, request);
    one->callback([&context, request] { control(context, *request); });
  };
  add("status", "How it does, as without a word", RecorderRequest::DESCRIBE, false);
  add("start", "Begin a recording", RecorderRequest::START, true);
  add("stop", "End it; its files are whole then", RecorderRequest::STOP, false);
  add("set", "Record otherwise; what runs ends, and another begins", RecorderRequest::SET, true);
  verb->callback([&context, verb] {
    if (verb->get_subcommands().empty()) control(context, {});
  });
}

}  // namespace kymo::cli
