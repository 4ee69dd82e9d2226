#include "lens/report/history.h"

#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/history_run.h"
#include "print.h"
#include "recordings/share_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct HistoryArguments {
  v1::HistoryRequest request;
  report::HistoryOptions options;
  std::size_t rows = 20;
};

// By id. Empty if kymod does not list them: a history is shown without them, too.
std::map<std::string, std::string> directories_of_checkpoints(client::Client& client) {
  std::map<std::string, std::string> directories;
  const Result<v1::CheckpointsResponse> all = client.checkpoints({});
  if (!all) return directories;
  for (const v1::Checkpoint& one : all->checkpoints()) directories[one.id()] = one.directory();
  return directories;
}

void show_history(Context& context, const HistoryArguments& arguments) {
  if (arguments.options.allowed_regression) context.failed_code = kNoVerdict;
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::HistoryResponse> response = client->history(arguments.request);
  if (!response) return fail(context, response.error());
  std::vector<report::HistoryRun> runs;
  const std::map<std::string, std::string> directories = directories_of_checkpoints(*client);
  for (const v1::HistoryRun& run : response->runs()) {
    runs.push_back(report::run_of(run));
    const auto found = directories.find(run.checkpoint());
    if (found != directories.end()) runs.back().directory = found->second;
  }
  const report::History history = report::analyse_history(std::move(runs), arguments.options);
  const char* kind = arguments.request.restores() ? "restores" : "dumps";
  if (context.json) {
    nlohmann::json json = report::json_of(history);
    json["job"] = response->job();
    json["kind"] = kind;
    print_json(json);
  } else {
    std::cout << report::text_of(history, response->job() + ": " + kind, arguments.rows);
  }
  if (!arguments.options.allowed_regression) return;
  if (!history.verdict || history.verdict->baseline == 0 || history.verdict->too_noisy) {
    context.exit_code = kCannotTell;
  } else if (history.verdict->regression) {
    context.exit_code = 1;
  }
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  CLI::App* history = app.add_subcommand(
      "history", "Show the past dumps or restores of a job, and where they became worse");
  auto arguments = std::make_shared<HistoryArguments>();
  history->fallthrough();
  history
      ->add_option_function<std::string>(
          "job", [arguments](const std::string& job) { arguments->request.set_job(job); },
          "Name or id of a job, name or command line of a program, or RUNTIME:NAME of a container")
      ->required();
  history->add_flag_function(
      "--restores", [arguments](std::int64_t) { arguments->request.set_restores(true); },
      "Show restores instead of dumps");
  history
      ->add_option_function<std::uint32_t>(
          "--last", [arguments](std::uint32_t last) { arguments->request.set_last(last); },
          "Use only the newest N runs")
      ->check(CLI::Range(1, 1'000'000));
  static const std::map<std::string, report::HistoryMetric> kMetrics = [] {
    std::map<std::string, report::HistoryMetric> metrics;
    for (const report::HistoryMetric metric : report::kHistoryMetrics) {
      metrics[std::string(name_of(metric))] = metric;
    }
    return metrics;
  }();
  history
      ->add_option_function<std::string>(
          "--metric",
          [arguments](const std::string& name) { arguments->options.metric = kMetrics.at(name); },
          "Value to analyse: duration, frozen (how long the process stood still), bytes or "
          "throughput")
      ->check(CLI::IsMember({"duration", "frozen", "bytes", "throughput"}))
      ->default_str("duration");
  history
      ->add_option_function<std::string>(
          "--fail-on-regression",
          [arguments](const std::string& text) {
            arguments->options.allowed_regression = parse_share("--fail-on-regression", text);
          },
          "Exit with 1 if the newest run is worse than the level since the last step by more than "
          "this and by more than noise, with 3 if the runs are too few, or noise is larger than "
          "this, with 2 if the history could not be read")
      ->option_text("PERCENT");
  history
      ->add_option("--newest", arguments->options.newest,
                   "Number of newest runs whose median is compared with the runs before them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  history->add_option("--rows", arguments->rows, "Number of runs to print")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  history->add_flag("--json", context.json, "Print JSON");
  history->callback([&context, arguments] { show_history(context, *arguments); });
}

}  // namespace kymo::cli
