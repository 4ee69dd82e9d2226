#pragma once

#include <string>

#include "report/profile_diff.h"
#include "stacks/comparison.h"

namespace kymo::report {

// The data of a page with the flame graph of two profiles, for flame_page().
std::string flame_diff_data(const ProfileDiff& diff, const stacks::ComparedTree& compared);

}  // namespace kymo::report
