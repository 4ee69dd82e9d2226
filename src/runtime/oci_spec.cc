#include "runtime/oci_spec.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace kymo::runtime {

Result<void> refuse_terminal(const std::string& tried, std::string_view spec) {
  const nlohmann::json config = parse_json(spec);
  if (!config.is_object()) return {};
  const auto process = config.find("process");
  if (process == config.end() || !process->is_object()) return {};
  if (process->value("terminal", nlohmann::json()) != nlohmann::json(true)) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": it has a terminal (\"terminal\": true in its config.json), whose other end "
                   "kymod cannot take in a restore: start it without a terminal"};
}

}  // namespace kymo::runtime
