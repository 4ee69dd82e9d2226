#pragma once

// What kymod answers, as text and JSON.

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"

namespace kymo::cli {

// The target of a dump or restore: "pid 12", "runc container web, pid 12".
std::string subject(const v1::DumpResponse& response);
std::string subject(const v1::RestoreResponse& response);
// "process", "runc", "podman".
std::string name_of(v1::Runtime runtime);

nlohmann::json to_json(const v1::DumpResponse& response);
nlohmann::json to_json(const v1::RestoreResponse& response);
// A dump or restore that failed.
nlohmann::json failed_json(const Error& error, const v1::Failure& failure);

// The text of how_it_ended(). Empty if this is unknown or the job has not ended.
std::string ending_of(const v1::Job& job);

// A table of checkpoints. The first row is the heading.
std::vector<std::vector<std::string>> rows_of(
    const google::protobuf::RepeatedPtrField<v1::Checkpoint>& checkpoints,
    const std::string& indent);

// Why a dump or restore took so long, and a table of its phases. If not `verbose`, only what stands
// out, with what to do.
void print_verdict(const std::vector<std::string>& lines, const std::vector<v1::Phase>& phases);
template <class Response>
void print_verdict(const Response& response, bool verbose) {
  const auto& lines = response.verdict();
  if (verbose) {
    return print_verdict({lines.begin(), lines.end()},
                         {response.phases().begin(), response.phases().end()});
  }
  const auto size = static_cast<std::uint32_t>(lines.size());
  const auto from = static_cast<int>(std::min(response.verdict_causes_from(), size));
  print_verdict({lines.begin() + from, lines.end()}, {});
}

// "92.4 ms", and if `verbose` "92.4 ms (then 6.25 ms to save the record)": the time that the verdict, the record
// and the history tell. `last`: the last phase; null: none is known.
std::string duration_text(std::uint64_t duration_ns, const v1::Phase* last, bool verbose);
template <class Response>
std::string duration_text(const Response& response, bool verbose) {
  const int phases = response.phases_size();
  return duration_text(response.duration_ns(), phases == 0 ? nullptr : &response.phases(phases - 1),
                       verbose);
}

// CRIU's statistics, a row with name and value for each.
std::vector<std::vector<std::string>> rows_of(const v1::DumpStats& stats);
std::vector<std::vector<std::string>> rows_of(const v1::RestoreStats& stats);

}  // namespace kymo::cli
