#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"
#include "verbs.h"

namespace kymo::cli {

// Prints one line on stderr, "kymo: TEXT". The text is made printable.
void say(const std::string& text);
// Prints the error on stderr and sets the exit code to 1.
void fail(Context& context, const Error& error);

void print_json(const nlohmann::json& json);
// Prints a table. The text of all cells is made printable.
void print_table(const std::vector<std::vector<std::string>>& rows);

// "512 MiB (536,870,912 bytes)"
std::string bytes_text(std::uint64_t bytes);
// "2026-11-21 08:33:05", in local time.
std::string local_time(std::int64_t unix_ns);

// The target of a dump or restore: "pid 12", "runc container web, pid 12".
std::string subject(const v1::DumpResponse& response);
std::string subject(const v1::RestoreResponse& response);
// "process", "runc", "podman".
std::string name_of(v1::Runtime runtime);

nlohmann::json to_json(const v1::DumpResponse& response);
nlohmann::json to_json(const v1::RestoreResponse& response);
// A dump or restore that failed.
nlohmann::json failed_json(const Error& error, const v1::Failure& failure);

// The text of how_it_ended(). Empty if this is unknown or the job has not ended.
std::string ending_of(const v1::Job& job);

// A table of checkpoints. The first row is the heading.
std::vector<std::vector<std::string>> rows_of(
    const google::protobuf::RepeatedPtrField<v1::Checkpoint>& checkpoints,
    const std::string& indent);
// The path in kymod's form: absolute, without `..` and without a trailing slash.
std::string absolute_path(const std::string& path);

// Why a dump or restore took so long, and a table of its phases.
void print_verdict(const std::vector<std::string>& lines, const std::vector<v1::Phase>& phases);
template <class Response>
void print_verdict(const Response& response) {
  print_verdict({response.verdict().begin(), response.verdict().end()},
                {response.phases().begin(), response.phases().end()});
}

// CRIU's statistics, a row with name and value for each.
std::vector<std::vector<std::string>> rows_of(const v1::DumpStats& stats);
std::vector<std::vector<std::string>> rows_of(const v1::RestoreStats& stats);

}  // namespace kymo::cli
