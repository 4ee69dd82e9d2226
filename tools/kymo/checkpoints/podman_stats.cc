#include "checkpoints/podman_stats.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "checkpoint/criu/drive/stats.h"
#include "lens/report/api_json.h"

namespace kymo::cli {
namespace {

constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;

// Podman leaves out a figure that is zero.
nlohmann::ordered_json criu_json(const google::protobuf::Message& stats) {
  constexpr std::string_view kMicroseconds = "_us";
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const report::ApiFigure& figure : report::figures_of(stats)) {
    if (figure.value == 0 || !criu::is_podman_figure(figure.name)) continue;
    std::string name = figure.name;
    if (name.ends_with(kMicroseconds)) name.resize(name.size() - kMicroseconds.size());
    object[name] = figure.value;
  }
  return object;
}

template <class Response>
nlohmann::ordered_json podman_json(const char* verb, const Response& response,
                                   const std::string& raw_input) {
  const std::string kind = verb;
  nlohmann::ordered_json container;
  container["Id"] = !response.container().empty() ? response.container()
                    : response.job().empty()      ? std::to_string(response.pid())
                                                  : response.job();
  container["RawInput"] = raw_input;
  const std::uint64_t runtime_ns =
      response.container().empty() ? response.criu_time_ns() : response.runtime_time_ns();
  container["runtime_" + kind + "_duration"] = runtime_ns / kNanosecondsInAMicrosecond;
  container["criu_statistics"] = criu_json(response.stats());
  nlohmann::ordered_json json;
  if (response.podman_time_ns() != 0) {
    json["podman_" + kind + "_duration"] = response.podman_time_ns() / kNanosecondsInAMicrosecond;
  }
  json["kymod_" + kind + "_duration"] = response.duration_ns() / kNanosecondsInAMicrosecond;
  json["container_statistics"] = nlohmann::ordered_json::array({std::move(container)});
  return json;
}

}  // namespace

nlohmann::ordered_json podman_stats(const v1::DumpResponse& response,
                                    const std::string& raw_input) {
  return podman_json("checkpoint", response, raw_input);
}

nlohmann::ordered_json podman_stats(const v1::RestoreResponse& response,
                                    const std::string& raw_input) {
  return podman_json("restore", response, raw_input);
}

}  // namespace kymo::cli
