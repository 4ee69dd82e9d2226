#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

std::string_view name_of(Kind kind);
std::string_view name_of(Unit unit);
std::string_view name_of(MissCause cause);

// The parts of NAME.meta.json (docs/tsv-format.md).
nlohmann::json describe_columns(const std::vector<Column>& columns);
nlohmann::json describe_stats(const ProfilerStats& stats);
nlohmann::json describe_gap(const Gap& gap);
// Host, kernel, pid and clock source of this process.
nlohmann::json describe_machine();

}  // namespace kymo
