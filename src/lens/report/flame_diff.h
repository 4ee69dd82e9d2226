#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lens/report/profile_diff.h"
#include "profiler/stacks/comparison.h"

namespace kymo::report {

// The names of two files, with as many of their folders as it takes to tell them apart:
// "old/cpu.pb.gz → new/cpu.pb.gz".
std::string flame_diff_title(const std::string& before, const std::string& after);

// The flame graph of two profiles, as the scripts of the pages read it.
nlohmann::ordered_json flame_diff_json(const ProfileDiff& diff,
                                       const stacks::ComparedTree& compared);

// The data of a page with the flame graph of two profiles, for flame_page().
std::string flame_diff_data(const ProfileDiff& diff, const stacks::ComparedTree& compared);

}  // namespace kymo::report
