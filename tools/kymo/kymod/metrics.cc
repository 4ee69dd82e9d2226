#include <iostream>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/human.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::string kind_of(const v1::Metric& metric) {
  return metric.kind() == v1::Metric::GAUGE ? "gauge" : "counter";
}

std::string column_of(const v1::Metric& metric, const v1::Metric::Value& value) {
  std::string fields;
  for (const std::string& field : value.field_values())
    fields += (fields.empty() ? "" : ",") + field;
  return fields.empty() ? metric.name() : metric.name() + "[" + fields + "]";
}

nlohmann::json metric_json(const v1::Metric& metric) {
  nlohmann::json fields = nlohmann::json::array();
  for (const v1::Metric::Field& field : metric.fields()) {
    fields.push_back(
        {{"name", field.name()},
         {"values", std::vector<std::string>(field.values().begin(), field.values().end())}});
  }
  nlohmann::json values = nlohmann::json::array();
  for (const v1::Metric::Value& value : metric.values()) {
    values.push_back({{"column", column_of(metric, value)}, {"value", value.value()}});
  }
  return {{"name", metric.name()},   {"prometheus_name", metric.prometheus_name()},
          {"kind", kind_of(metric)}, {"unit", metric.unit()},
          {"help", metric.help()},   {"fields", fields},
          {"values", values}};
}

void list_metrics(Context& context) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::MetricsResponse> response = client->metrics();
  if (!response) return fail(context, response.error());
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{{"METRIC", "KIND", "UNIT", "VALUE"}};
  for (const v1::Metric& metric : response->metrics()) {
    json.push_back(metric_json(metric));
    for (const v1::Metric::Value& value : metric.values()) {
      rows.push_back({column_of(metric, value), kind_of(metric), metric.unit(),
                      report::with_commas(value.value())});
    }
  }
  if (context.json) return print_json(json);
  print_table(rows);
}

}  // namespace

void add_metrics(CLI::App& app, Context& context) {
  CLI::App* metrics = app.add_subcommand("metrics", "List the metrics of kymod with their values");
  metrics->fallthrough();
  metrics->add_flag("--json", context.json, "Print JSON");
  metrics->callback([&context] { list_metrics(context); });
}

}  // namespace kymo::cli
