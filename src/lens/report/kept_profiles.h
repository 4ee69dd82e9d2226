#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "profiler/kept/reading.h"
#include "profiler/kept/store.h"
#include "profiler/stacks/named_profile.h"

// Stack profiles that are kept, as kymo profiles prints them and as kymod's page reads them.
namespace kymo::report {

// The time of each step as a bar, the highest one drawn full.
std::string bars_of(const profiles::Steps& steps);

nlohmann::ordered_json json_of(const profiles::Extent& extent);
nlohmann::ordered_json json_of(const profiles::ServiceTotal& total);

// A profile as the scripts of the pages read it: its sums, what is missing in it, and its stacks.
nlohmann::ordered_json flame_json(const stacks::NamedProfile& profile, const std::string& title);

}  // namespace kymo::report
