#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::report {

// The API's messages as JSON. kymo and the page use the same form. Unknown values are null.

nlohmann::json to_json(const v1::Checkpoint& checkpoint);
nlohmann::json to_json(const v1::DumpStats& stats);
nlohmann::json to_json(const v1::Job& job);
nlohmann::json to_json(const v1::PreDump& round);
nlohmann::json to_json(const v1::Progress& progress);
nlohmann::json to_json(const v1::Recorder& recorder);
nlohmann::json to_json(const v1::RestoreStats& stats);

// A number of a message of the API.
struct ApiFigure {
  std::string name;
  std::uint64_t value = 0;
};
// The fields of a message that are set, in the order of the message. All its fields must be
// numbers: the messages of CRIU's statistics and of a round of pre-dump are such.
std::vector<ApiFigure> figures_of(const google::protobuf::Message& numbers);

// The name of an enum value as JSON and tables show it: "running" for RUNNING.
std::string lower(std::string name);

}  // namespace kymo::report
