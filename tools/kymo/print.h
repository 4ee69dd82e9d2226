#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"
#include "verbs.h"

namespace kymo::cli {

// One line on stderr, "kymo: TEXT", whatever names and paths are in it.
void say(const std::string& text);
// Says the error; the exit code becomes 1.
void fail(Context& context, const Error& error);

// Data for a person, or for a program with --json.
void print_json(const nlohmann::json& json);
// A table; what a terminal would obey in a cell is made printable here, for all of them.
void print_table(const std::vector<std::vector<std::string>>& rows);

// "1,234,567"
std::string grouped(std::uint64_t n);
// "512.0 MiB (536,870,912 bytes)"
std::string bytes_text(std::uint64_t bytes);
// "1.234 s", "12.3 ms", "45 us"
std::string duration_text(std::uint64_t ns);
// "2026-11-21 08:33:05", in the local time.
std::string local_time(std::int64_t unix_ns);

// What was dumped or restored: "pid 12", "runc container web, pid 12".
std::string subject(const v1::DumpResponse& response);
std::string subject(const v1::RestoreResponse& response);
// "process", "runc", "podman".
std::string name_of(v1::Runtime runtime);

nlohmann::json to_json(const v1::DumpResponse& response);
nlohmann::json to_json(const v1::RestoreResponse& response);

// "exit code 3", "ended by SIGKILL"; empty where it is not known, or it has not ended.
std::string ending_of(const v1::Job& job);
// "SIGTERM"; "signal 40" where it has no name.
std::string signal_name(int signal);

// A table of checkpoints, its heading first.
std::vector<std::vector<std::string>> rows_of(
    const google::protobuf::RepeatedPtrField<v1::Checkpoint>& checkpoints,
    const std::string& indent);
// The path as kymod has it: absolute, without `..` and a last slash.
std::string absolute_path(const std::string& path);

// CRIU's statistics, a line each: name and value.
std::vector<std::vector<std::string>> rows_of(const v1::DumpStats& stats);
std::vector<std::vector<std::string>> rows_of(const v1::RestoreStats& stats);

}  // namespace kymo::cli
