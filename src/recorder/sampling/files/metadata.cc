#include "recorder/sampling/files/metadata.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "base/process_identity.h"
#include "kymo/version.h"
#include "recorder/metrics/unit_names.h"
#include "recorder/sampling/files/stats_members.h"

namespace kymo {

std::string_view name_of(Kind kind) {
  return kind == Kind::counter ? "counter" : "gauge";
}

std::string_view name_of(MissCause cause) {
  switch (cause) {
    case MissCause::late:
      return "late";
    case MissCause::ring_full:
      return "ring_full";
    case MissCause::sink_error:
      return "sink_error";
    case MissCause::frozen:
      return "frozen";
  }
  return "late";
}

nlohmann::json describe_columns(const std::vector<Column>& columns) {
  nlohmann::json described = nlohmann::json::array();
  for (const Column& column : columns) {
    nlohmann::json fields = nlohmann::json::object();
    for (std::size_t i = 0; i < column.field_values.size(); ++i) {
      fields[column.metric->fields[i].name] = column.field_values[i];
    }
    described.push_back({{"name", column.name},
                         {"metric", column.metric->name},
                         {"help", column.metric->help},
                         {"kind", name_of(column.metric->kind)},
                         {"unit", unit_name(column.metric->unit)},
                         {"fields", std::move(fields)}});
  }
  return described;
}

nlohmann::json describe_stats(const ProfilerStats& stats) {
  nlohmann::json described = nlohmann::json::object();
  for (const StatsMember& figure : kStatsMembers) {
    if (figure.known == StatsKnown::if_not_zero || is_known(figure, stats)) {
      described[figure.name] = stats.*figure.value;
    }
  }
  return described;
}

nlohmann::json describe_gap(const Gap& gap) {
  return {{"start_ns", gap.start_ns},
          {"end_ns", gap.end_ns},
          {"ticks", gap.ticks},
          {"cause", name_of(gap.cause)}};
}

namespace {

// What identifies this process; members that are unknown are missing.
nlohmann::json describe_process() {
  const ProcessIdentity own = own_identity();
  nlohmann::json described = nlohmann::json::object();
  if (!own.boot_id.empty()) described["boot_id"] = own.boot_id;
  if (own.pid_namespace != 0) described["pid_namespace"] = own.pid_namespace;
  if (own.start_ticks != 0) described["start_ticks"] = own.start_ticks;
  return described;
}

}  // namespace

nlohmann::json describe_machine() {
  utsname system{};
  ::uname(&system);
  std::string clock_source = "unknown";
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> clock_source;
  return {{"host", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"pid", ::getpid()},
          {"process", describe_process()},
          {"clock", "CLOCK_MONOTONIC (" + clock_source + ")"}};
}

nlohmann::json describe_recording(const RecordingInfo& info) {
  nlohmann::json described = {
      {"format_version", kRecordingFormatVersion},
      {"kymo_version", KYMO_VERSION},
      {"interval_ns", info.interval.count()},
      {"start_unix_ns", info.start_unix_ns},
      {"start_monotonic_ns", info.start_monotonic_ns},
      {"prometheus_prefix", info.prometheus_prefix},
      {"pace", info.pace == Pace::precise ? "precise" : "thrifty"},
      {"ring", {{"slots", info.slots}, {"rows_per_slot", info.rows_per_slot}}},
      {"columns", describe_columns(info.columns)}};
  if (info.pace == Pace::precise) {
    described["max_spin_share"] = info.max_spin_share;
  }
  if (!info.ring_file.empty()) {
    std::error_code ignored;
    described["ring"]["file"] = std::filesystem::absolute(info.ring_file, ignored).string();
  }
  described.update(describe_machine());
  return described;
}

nlohmann::json describe_ring(const RecordingInfo& info, const std::string& output_path) {
  std::error_code ignored;
  const std::filesystem::path output = output_path.empty()
                                           ? std::filesystem::path()
                                           : std::filesystem::absolute(output_path, ignored);
  return {{"recording", describe_recording(info)}, {"output", output.string()}};
}

}  // namespace kymo
