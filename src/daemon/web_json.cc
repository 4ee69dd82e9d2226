#include "daemon/web_json.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kymo::daemon {
namespace {

// An enum's value: "running" for RUNNING.
std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

nlohmann::json to_json(const v1::Job& job) {
  nlohmann::json out{
      {"id", job.id()},
      {"name", job.name()},
      {"state", lower(v1::Job::State_Name(job.state()))},
      {"pid", job.pid()},
      {"command", std::vector<std::string>(job.command().begin(), job.command().end())},
      {"created_unix_ns", job.created_unix_ns()},
      {"last_checkpoint", job.last_checkpoint()},
      {"last_failure", job.last_failure()}};
  if (job.has_exit_code()) out["exit_code"] = job.exit_code();
  if (job.has_exit_signal()) out["exit_signal"] = job.exit_signal();
  return out;
}

nlohmann::json to_json(const v1::Checkpoint& checkpoint) {
  nlohmann::json out{{"id", checkpoint.id()},
                     {"job", checkpoint.job()},
                     {"pid", checkpoint.pid()},
                     {"state", lower(v1::Checkpoint::State_Name(checkpoint.state()))},
                     {"created_unix_ns", checkpoint.created_unix_ns()},
                     {"directory", checkpoint.directory()},
                     {"image_bytes", checkpoint.image_bytes()},
                     {"duration_ns", checkpoint.duration_ns()},
                     {"error", checkpoint.error()}};
  if (checkpoint.has_stats()) out["frozen_time_us"] = checkpoint.stats().frozen_time_us();
  return out;
}

nlohmann::json to_json(const v1::Progress& progress) {
  nlohmann::json out{{"request_id", progress.request_id()},
                     {"kind", lower(v1::Progress::Kind_Name(progress.kind()))},
                     {"state", lower(v1::Progress::State_Name(progress.state()))},
                     {"pid", progress.pid()},
                     {"job", progress.job()},
                     {"directory", progress.directory()},
                     {"phase", progress.phase()},
                     {"bytes_done", progress.bytes_done()},
                     {"pages_done", progress.pages_done()},
                     {"bytes_per_second", progress.bytes_per_second()},
                     {"started_unix_ns", progress.started_unix_ns()},
                     {"elapsed_ns", progress.elapsed_ns()},
                     {"error", progress.error()}};
  if (progress.has_bytes_total()) out["bytes_total"] = progress.bytes_total();
  if (progress.has_remaining_ns()) out["remaining_ns"] = progress.remaining_ns();
  return out;
}

Result<std::uint64_t> parse_number(const std::string& text, const std::string& name,
                                   std::uint64_t otherwise, std::uint64_t most) {
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value <= most) return value;
  return Error{Code::invalid_argument,
               name + "=" + text + ": wanted a number from 0 to " + std::to_string(most)};
}

}  // namespace kymo::daemon
