#include "checkpoint/runtimes/shared/option_checks.h"

#include <algorithm>

namespace kymo::runtime {

Result<void> refuse_options(const std::string& tried, const CheckpointOptions& options,
                            std::initializer_list<std::string_view> passed_on,
                            std::initializer_list<NotPassedOn> reasons,
                            std::string_view otherwise) {
  for (const std::string_view flag : criu::given(options)) {
    if (std::find(passed_on.begin(), passed_on.end(), flag) != passed_on.end()) continue;
    const auto* const reason = std::find_if(
        reasons.begin(), reasons.end(), [&](const NotPassedOn& one) { return one.flag == flag; });
    const std::string_view why = reason == reasons.end() ? otherwise : reason->why;
    return Error{Code::invalid_argument,
                 tried + ": " + std::string(flag) + " is for processes: " + std::string(why)};
  }
  return {};
}

}  // namespace kymo::runtime
