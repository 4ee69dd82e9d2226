#include "podman_stats.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

namespace kymo::cli {
namespace {

constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;

using Figure = std::pair<const char*, std::uint64_t>;

nlohmann::ordered_json without_zeros(std::initializer_list<Figure> figures) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : figures) {
    if (value != 0) object[name] = value;
  }
  return object;
}

template <class Response>
nlohmann::ordered_json podman_json(const char* verb, const Response& response,
                                   const std::string& raw_input, nlohmann::ordered_json criu) {
  const std::string kind = verb;
  nlohmann::ordered_json container;
  container["Id"] = !response.container().empty() ? response.container()
                    : response.job().empty()      ? std::to_string(response.pid())
                                                  : response.job();
  container["RawInput"] = raw_input;
  const std::uint64_t runtime_ns =
      response.container().empty() ? response.criu_time_ns() : response.runtime_time_ns();
  container["runtime_" + kind + "_duration"] = runtime_ns / kNanosecondsInAMicrosecond;
  container["criu_statistics"] = std::move(criu);
  nlohmann::ordered_json json;
  json["podman_" + kind + "_duration"] = response.duration_ns() / kNanosecondsInAMicrosecond;
  json["container_statistics"] = nlohmann::ordered_json::array({std::move(container)});
  return json;
}

}  // namespace

nlohmann::ordered_json podman_stats(const v1::DumpResponse& response,
                                    const std::string& raw_input) {
  const v1::DumpStats& stats = response.stats();
  return podman_json("checkpoint", response, raw_input,
                     without_zeros({{"freezing_time", stats.freezing_time_us()},
                                    {"frozen_time", stats.frozen_time_us()},
                                    {"memdump_time", stats.memdump_time_us()},
                                    {"memwrite_time", stats.memwrite_time_us()},
                                    {"pages_scanned", stats.pages_scanned()},
                                    {"pages_written", stats.pages_written()}}));
}

nlohmann::ordered_json podman_stats(const v1::RestoreResponse& response,
                                    const std::string& raw_input) {
  const v1::RestoreStats& stats = response.stats();
  return podman_json("restore", response, raw_input,
                     without_zeros({{"pages_compared", stats.pages_compared()},
                                    {"pages_skipped_cow", stats.pages_skipped_cow()},
                                    {"forking_time", stats.forking_time_us()},
                                    {"restore_time", stats.restore_time_us()},
                                    {"pages_restored", stats.pages_restored()}}));
}

}  // namespace kymo::cli
