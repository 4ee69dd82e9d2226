#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// The version of NAME.meta.json and NAME.gaps.tsv, and of the meaning of a TSV's columns.
inline constexpr int kRecordingFormatVersion = 1;

std::string_view name_of(Kind kind);
std::string_view name_of(MissCause cause);

// The parts of NAME.meta.json (docs/formats.md).
nlohmann::json describe_columns(const std::vector<Column>& columns);
nlohmann::json describe_stats(const ProfilerStats& stats);
nlohmann::json describe_gap(const Gap& gap);
// The part that does not change while a recording runs: interval, clocks, ring, columns, machine.
nlohmann::json describe_recording(const RecordingInfo& info);
// The description in a ring file: the recording to which it belongs, and where its rows go.
nlohmann::json describe_ring(const RecordingInfo& info, const std::string& output_path);
// Host, kernel and clock source, the pid of this process, and what else identifies it. Ask each
// time: a process that was restored has another identity.
nlohmann::json describe_machine();

}  // namespace kymo
