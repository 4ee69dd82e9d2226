#include "lens/report/api_json.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lens/report/short_reason.h"

namespace kymo::report {
namespace {

template <class Value>
nlohmann::json or_null(bool known, const Value& value) {
  return known ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json figures_json(const google::protobuf::Message& numbers) {
  nlohmann::json out = nlohmann::json::object();
  for (const ApiFigure& figure : figures_of(numbers)) out[figure.name] = figure.value;
  return out;
}

}  // namespace

nlohmann::json to_json(const v1::Checkpoint& checkpoint) {
  return {
      {"id", checkpoint.id()},
      {"job", checkpoint.job()},
      {"pid", checkpoint.pid()},
      {"state", lower(v1::Checkpoint::State_Name(checkpoint.state()))},
      {"created_unix_ns", checkpoint.created_unix_ns()},
      {"directory", checkpoint.directory()},
      {"image_bytes", checkpoint.image_bytes()},
      {"duration_ns", checkpoint.duration_ns()},
      {"stats", checkpoint.has_stats() ? to_json(checkpoint.stats()) : nlohmann::json()},
      {"stood_still_ns", or_null(checkpoint.stood_still_ns() != 0, checkpoint.stood_still_ns())},
      {"error", checkpoint.error()},
      {"reason", short_reason(checkpoint.error())}};
}

nlohmann::json to_json(const v1::DumpStats& stats) {
  return figures_json(stats);
}

nlohmann::json to_json(const v1::Job& job) {
  return {{"id", job.id()},
          {"name", job.name()},
          {"state", lower(v1::Job::State_Name(job.state()))},
          {"pid", job.pid()},
          {"command", std::vector<std::string>(job.command().begin(), job.command().end())},
          {"created_unix_ns", job.created_unix_ns()},
          {"stdout_path", job.stdout_path()},
          {"stderr_path", job.stderr_path()},
          {"last_checkpoint", job.last_checkpoint()},
          {"exit_code", or_null(job.has_exit_code(), job.exit_code())},
          {"exit_signal", or_null(job.has_exit_signal(), job.exit_signal())},
          {"last_failure", job.last_failure()},
          {"reason", short_reason(job.last_failure())},
          {"frozen", job.frozen()},
          {"held", job.held()},
          {"pending", job.pending()},
          {"runtime", job.runtime() == v1::RUNTIME_UNSPECIFIED
                          ? "process"
                          : lower(v1::Runtime_Name(job.runtime()))},
          {"container", job.container()}};
}

nlohmann::json to_json(const v1::PreDump& round) {
  return figures_json(round);
}

nlohmann::json to_json(const v1::Progress& progress) {
  return {{"request_id", progress.request_id()},
          {"kind", lower(v1::Progress::Kind_Name(progress.kind()))},
          {"state", lower(v1::Progress::State_Name(progress.state()))},
          {"pid", progress.pid()},
          {"job", progress.job()},
          {"directory", progress.directory()},
          {"phase", progress.phase()},
          {"notification", progress.notification()},
          {"bytes_done", progress.bytes_done()},
          {"bytes_source", lower(v1::Progress::Source_Name(progress.bytes_source()))},
          {"bytes_total", or_null(progress.has_bytes_total(), progress.bytes_total())},
          {"bytes_remaining", or_null(progress.has_bytes_remaining(), progress.bytes_remaining())},
          {"pages_done", progress.pages_done()},
          {"bytes_per_second", progress.bytes_per_second()},
          {"remaining_ns", or_null(progress.has_remaining_ns(), progress.remaining_ns())},
          {"estimated_end_unix_ns",
           or_null(progress.has_estimated_end_unix_ns(), progress.estimated_end_unix_ns())},
          {"started_unix_ns", progress.started_unix_ns()},
          {"elapsed_ns", progress.elapsed_ns()},
          {"stored_bytes", progress.stored_bytes()},
          {"forecast", progress.forecast()},
          {"error", progress.error()}};
}

nlohmann::json to_json(const v1::Recorder& recorder) {
  return {{"running", recorder.running()},
          {"interval_ns", recorder.interval_ns()},
          {"metrics", recorder.metrics()},
          {"log_path", recorder.log_path()},
          {"start_unix_ns", recorder.start_unix_ns()},
          {"duration_ns", recorder.duration_ns()},
          {"kept_ns", recorder.kept_ns()},
          {"reach_ns", recorder.reach_ns()},
          {"ticks_due", recorder.ticks_due()},
          {"rows_written", recorder.rows_written()},
          {"ticks_missed", recorder.ticks_missed()}};
}

nlohmann::json to_json(const v1::RestoreStats& stats) {
  return figures_json(stats);
}

std::vector<ApiFigure> figures_of(const google::protobuf::Message& numbers) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *numbers.GetReflection();
  std::vector<ApiFigure> all;
  for (int i = 0; i < numbers.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = numbers.GetDescriptor()->field(i);
    if (field->has_presence() && !fields.HasField(numbers, field)) continue;
    all.push_back({field->name(), field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                                      ? fields.GetUInt32(numbers, field)
                                      : fields.GetUInt64(numbers, field)});
  }
  return all;
}

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace kymo::report
