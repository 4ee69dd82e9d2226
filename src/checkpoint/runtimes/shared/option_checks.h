#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Why a runtime cannot pass an option on to CRIU.
struct NotPassedOn {
  std::string_view flag;
  std::string_view why;
};

// Refuses the options that a runtime cannot pass on to CRIU.
//
// `passed_on`: the options that it can pass on, as kymo's command line names them.
// `reasons`:   why it cannot pass on some of the others.
// `otherwise`: why not, for the rest.
// Errors:      invalid_argument, with the first such option and the reason.
Result<void> refuse_options(const std::string& tried, const CheckpointOptions& options,
                            std::initializer_list<std::string_view> passed_on,
                            std::initializer_list<NotPassedOn> reasons, std::string_view otherwise);

}  // namespace kymo::runtime
