#include "print.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/api_json.h"
#include "report/human.h"
#include "report/short_reason.h"

namespace kymo::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string fixed(double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s",
                value < 10    ? 3
                : value < 100 ? 2
                              : 1,
                value, unit);
  return text.data();
}

// The number of characters that a terminal shows: continuation bytes of UTF-8 do not count.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

// The statistics with the same names as in the JSON.
Rows rows_of_json(const nlohmann::json& json, const std::vector<std::string>& order) {
  Rows rows;
  for (const std::string& name : order) {
    if (!json.contains(name)) continue;
    const auto value = json[name].get<std::uint64_t>();
    const bool time = name.size() > 3 && name.compare(name.size() - 3, 3, "_us") == 0;
    rows.push_back({"  " + name, grouped(value), time ? "us" : ""});
  }
  return rows;
}

template <class Response>
std::string subject_of(const Response& response) {
  std::string pid = "pid " + std::to_string(response.pid());
  if (response.container().empty()) return pid;
  return name_of(response.runtime()) + " container " + response.container() + ", " + pid;
}

// The fields that both responses have.
template <class Response>
nlohmann::json common_json(const Response& response) {
  return {{"pid", response.pid()},
          {"job", response.job()},
          {"runtime", name_of(response.runtime())},
          {"container", response.container()},
          {"directory", response.directory()},
          {"recording", response.recording()},
          {"stats", response.has_stats() ? report::to_json(response.stats()) : nlohmann::json()},
          {"duration_ns", response.duration_ns()},
          {"criu_time_ns", response.criu_time_ns()},
          {"command_time_ns", response.command_time_ns()},
          {"runtime_time_ns", response.runtime_time_ns()},
          {"warnings",
           std::vector<std::string>(response.warnings().begin(), response.warnings().end())}};
}

std::vector<std::string> checkpoint_row(const v1::Checkpoint& checkpoint) {
  const auto or_dash = [](bool known, const std::string& text) { return known ? text : "-"; };
  const std::uint64_t frozen_us = checkpoint.stats().frozen_time_us();
  return {checkpoint.id(),
          or_dash(!checkpoint.job().empty(), checkpoint.job()),
          local_time(checkpoint.created_unix_ns()),
          report::lower(v1::Checkpoint::State_Name(checkpoint.state())),
          or_dash(checkpoint.image_bytes() != 0,
                  report::bytes(static_cast<double>(checkpoint.image_bytes()))),
          or_dash(checkpoint.duration_ns() != 0, duration_text(checkpoint.duration_ns())),
          or_dash(checkpoint.has_stats(), duration_text(frozen_us * 1000)),
          checkpoint.directory(),
          report::short_reason(checkpoint.error())};
}

}  // namespace

std::string name_of(v1::Runtime runtime) {
  return report::lower(
      v1::Runtime_Name(runtime == v1::RUNTIME_UNSPECIFIED ? v1::PROCESS : runtime));
}

std::string subject(const v1::DumpResponse& response) {
  return subject_of(response);
}

std::string subject(const v1::RestoreResponse& response) {
  return subject_of(response);
}

void say(const std::string& text) {
  std::cerr << "kymo: " << report::printable(text) << '\n';
}

void fail(Context& context, const Error& error) {
  say(error.message);
  context.exit_code = 1;
}

void print_json(const nlohmann::json& json) {
  std::cout << json_text(json, 2) << '\n';
}

void print_table(const Rows& rows) {
  Rows shown = rows;
  std::vector<std::size_t> widths;
  for (auto& row : shown) {
    for (std::string& cell : row) cell = report::printable(cell);
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : shown) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
}

std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return grouped(bytes) + " bytes";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fixed(value, kUnits.at(unit)) + " (" + grouped(bytes) + " bytes)";
}

std::string duration_text(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fixed(value / 1e9, "s");
  if (ns >= 1'000'000) return fixed(value / 1e6, "ms");
  return fixed(value / 1e3, "us");
}

std::string local_time(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string ending_of(const v1::Job& job) {
  if (job.has_exit_code()) return "exit code " + std::to_string(job.exit_code());
  return job.has_exit_signal() ? "ended by " + signal_name(job.exit_signal()) : "";
}

std::vector<std::vector<std::string>> rows_of(
    const google::protobuf::RepeatedPtrField<v1::Checkpoint>& checkpoints,
    const std::string& indent) {
  Rows rows{{"ID", "JOB", "WHEN", "STATE", "SIZE", "DURATION", "FROZEN", "DIRECTORY", "NOTE"}};
  for (const v1::Checkpoint& checkpoint : checkpoints) rows.push_back(checkpoint_row(checkpoint));
  for (std::vector<std::string>& row : rows) row.front().insert(0, indent);
  return rows;
}

std::string absolute_path(const std::string& path) {
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

nlohmann::json to_json(const v1::DumpResponse& response) {
  nlohmann::json json = common_json(response);
  json["images_directory"] = response.images_directory();
  json["image_bytes"] = response.image_bytes();
  json["streamed_bytes"] = response.streamed_bytes();
  json["forecast"] = response.forecast();
  json["pre_dumps"] = nlohmann::json::array();
  for (const v1::PreDump& round : response.pre_dumps()) {
    json["pre_dumps"].push_back({{"duration_ns", round.duration_ns()},
                                 {"criu_time_ns", round.criu_time_ns()},
                                 {"pages_written", round.pages_written()},
                                 {"frozen_time_us", round.frozen_time_us()},
                                 {"image_bytes", round.image_bytes()}});
  }
  return json;
}

nlohmann::json to_json(const v1::RestoreResponse& response) {
  return common_json(response);
}

Rows rows_of(const v1::DumpStats& stats) {
  return rows_of_json(report::to_json(stats),
                      {"freezing_time_us", "frozen_time_us", "memdump_time_us", "memwrite_time_us",
                       "irmap_resolve_us", "pages_scanned", "pages_skipped_parent", "pages_written",
                       "pages_lazy", "page_pipes", "page_pipe_bufs", "shpages_scanned",
                       "shpages_skipped_parent", "shpages_written"});
}

Rows rows_of(const v1::RestoreStats& stats) {
  return rows_of_json(report::to_json(stats),
                      {"forking_time_us", "restore_time_us", "pages_restored", "pages_compared",
                       "pages_skipped_cow"});
}

}  // namespace kymo::cli
