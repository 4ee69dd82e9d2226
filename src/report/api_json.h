#pragma once

#include <nlohmann/json.hpp>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::report {

// What the API says, as JSON: one shape, whether kymo prints it or the page asks for it.

nlohmann::json to_json(const v1::Recorder& recorder);

}  // namespace kymo::report
