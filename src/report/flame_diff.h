#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/profile_diff.h"
#include "stacks/comparison.h"

namespace kymo::report {

// The flame graph of two profiles, as the scripts of the pages read it.
nlohmann::ordered_json flame_diff_json(const ProfileDiff& diff,
                                       const stacks::ComparedTree& compared);

// The data of a page with the flame graph of two profiles, for flame_page().
std::string flame_diff_data(const ProfileDiff& diff, const stacks::ComparedTree& compared);

}  // namespace kymo::report
