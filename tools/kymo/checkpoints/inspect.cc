#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/beneath.h"
#include "base/json_text.h"
#include "checkpoints/checkpoint_copy.h"
#include "client/client.h"
#include "confined.h"
#include "lens/analysis/find_recordings.h"
#include "lens/report/api_json.h"
#include "lens/report/checkpoint_stats.h"
#include "lens/report/human.h"
#include "lens/report/stack_summary.h"
#include "messages.h"
#include "print.h"
#include "refusals.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::vector<std::string>>;

void add_row(Rows& rows, const std::string& name, const std::string& value) {
  if (!value.empty()) rows.push_back({"  " + name, value});
}

std::string words(const google::protobuf::RepeatedPtrField<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

void print_job(const v1::InspectResponse& seen, const std::vector<Refusal>& refused) {
  const v1::Job& job = seen.job();
  const bool runs = job.state() == v1::Job::RUNNING;
  Rows rows;
  add_row(rows, "id", job.id());
  add_row(rows, "state", report::lower(v1::Job::State_Name(job.state())));
  add_row(rows, "pid", runs ? std::to_string(job.pid()) : "");
  add_row(rows, "at this moment", job.pending());
  add_row(rows, "ended", ending_of(job));
  add_row(rows, "command", words(job.command()));
  add_row(rows, "created", local_time(job.created_unix_ns()));
  add_row(rows, "stdout", job.stdout_path());
  add_row(rows, "stderr", job.stderr_path());
  add_row(rows, "newest checkpoint", job.last_checkpoint());
  add_row(rows, "newest dump failed", job.last_failure());
  for (const Refusal& refusal : refused) {
    add_row(rows, "newest " + refusal.kind + " was refused",
            local_time(refusal.run.created_unix_ns()) + ": " + refusal.run.error());
  }
  std::cout << "job " << job.name() << '\n';
  print_table(rows);
  if (seen.checkpoints().empty()) return;
  std::cout << "checkpoints\n";
  print_table(rows_of(seen.checkpoints(), "  "));
}

// Reads the checkpoint.json that kymod writes into the checkpoint. Null if there is none, or if it
// cannot be read, which is an error.
nlohmann::json record_in(Context& context, const std::string& directory) {
  const Result<std::string> text = read_beneath(directory, "checkpoint.json");
  if (!text) {
    if (text.error().code != Code::not_found) fail(context, text.error());
    return {};
  }
  nlohmann::json record = parse_json(*text);
  if (record.is_object()) return record;
  fail(context, {Code::data_loss, "cannot read " + directory + "/checkpoint.json: it is damaged"});
  return {};
}

// `shown`: the directory in what is printed, if `directory` is a copy of it.
std::vector<std::string> recordings_in(const std::string& directory, const std::string& shown) {
  const Result<std::vector<std::string>> found = analysis::find_recordings(directory);
  std::vector<std::string> paths;
  if (!found) return paths;
  for (const std::string& path : *found) paths.push_back(as_in(shown, directory, path));
  return paths;
}

// Collects the longest parts of the request from the timing tree in the record.
void collect_parts(const nlohmann::json& part, const std::string& indent, Rows& rows) {
  constexpr std::uint64_t kWorthShowing = 100'000;
  for (const nlohmann::json& one : part.value("components", nlohmann::json::array())) {
    if (!one.is_object()) continue;
    const nlohmann::json duration = one.value("duration_ns", nlohmann::json());
    const nlohmann::json name = one.value("name", nlohmann::json());
    if (!duration.is_number_unsigned() || !name.is_string()) continue;
    if (duration.get<std::uint64_t>() >= kWorthShowing) {
      rows.push_back({"  " + report::duration(duration.get<std::uint64_t>()),
                      indent + name.get<std::string>()});
    }
    collect_parts(one, indent + "  ", rows);
  }
}

void print_record(const std::vector<std::string>& recordings, const nlohmann::json& record) {
  Rows rows;
  for (const std::string& recording : recordings) add_row(rows, "recording", recording);
  for (const char* key : {"state", "error"}) {
    const nlohmann::json value = record.value(key, nlohmann::json());
    if (value.is_string()) add_row(rows, std::string("record: ") + key, value);
  }
  const nlohmann::json criu = record.value("criu", nlohmann::json());
  if (criu.is_object() && criu.value("version", nlohmann::json()).is_string()) {
    add_row(rows, "made by", "CRIU " + criu["version"].get<std::string>());
  }
  print_table(rows);
  Rows parts;
  const nlohmann::json timing = record.value("timing", nlohmann::json());
  if (timing.is_object()) collect_parts(timing, "", parts);
  if (parts.empty()) return;
  std::cout << "where the time went, each with its parts\n";
  print_table(parts);
}

// Shows what the files of a checkpoint say, as in recordings_in(). There is nothing else to show if kymod does not know
// the checkpoint.
void show_files(Context& context, const std::string& directory, const std::string& shown,
                nlohmann::json json) {
  const std::vector<std::string> recordings = recordings_in(directory, shown);
  const nlohmann::json record = record_in(context, directory);
  const auto stats = report::read_checkpoint_stats(directory);
  std::vector<std::string> notes;
  const std::vector<report::StackSummary> stacks = report::stacks_of_checkpoint(directory, notes);
  if (!stats && !record.is_object() && recordings.empty()) {
    return fail(context, stats.error());
  }
  if (context.json) {
    json["record"] = record;
    json["recordings"] = recordings;
    json["criu"] = stats ? report::json_of(*stats) : nlohmann::json();
    json["stacks"] = nlohmann::json::array();
    for (const report::StackSummary& one : stacks) json["stacks"].push_back(report::json_of(one));
    return print_json(json);
  }
  if (record.is_object()) print_record(recordings, record);
  constexpr std::size_t kMappings = 3;
  if (stats) {
    std::cout << report::text_of(*stats, kMappings);
  } else {
    say(stats.error().message);
  }
  for (const report::StackSummary& one : stacks) std::cout << report::text_of(one);
  for (const std::string& note : notes) say(note);
}

void show_directory(Context& context, const std::string& directory, const nlohmann::json& json) {
  const std::string place = readable_checkpoint(context, directory);
  look_confined(context, {place}, [&] { show_files(context, place, directory, json); });
}

void print_checkpoint(const v1::Checkpoint& checkpoint) {
  Rows rows;
  add_row(rows, "job", checkpoint.job());
  add_row(rows, "pid", std::to_string(checkpoint.pid()));
  add_row(rows, "state", report::lower(v1::Checkpoint::State_Name(checkpoint.state())));
  add_row(rows, "note", checkpoint.error());
  add_row(rows, "created", local_time(checkpoint.created_unix_ns()));
  add_row(rows, "directory", checkpoint.directory());
  if (checkpoint.image_bytes() != 0) add_row(rows, "images", bytes_text(checkpoint.image_bytes()));
  if (checkpoint.duration_ns() != 0) {
    add_row(rows, "duration", report::duration(checkpoint.duration_ns()));
  }
  if (checkpoint.stood_still_ns() != 0) {
    add_row(rows, "stood still", report::duration(checkpoint.stood_still_ns()));
  }
  std::cout << "checkpoint " << checkpoint.id() << '\n';
  print_table(rows);
}

void show(Context& context, const v1::InspectResponse& seen, const std::vector<Refusal>& refused) {
  if (seen.has_checkpoint()) {
    if (!context.json) print_checkpoint(seen.checkpoint());
    return show_directory(context, seen.checkpoint().directory(),
                          {{"checkpoint", report::to_json(seen.checkpoint())}});
  }
  if (!context.json) return print_job(seen, refused);
  nlohmann::json checkpoints = nlohmann::json::array();
  for (const v1::Checkpoint& one : seen.checkpoints()) checkpoints.push_back(report::to_json(one));
  nlohmann::json refusals = nlohmann::json::array();
  for (const Refusal& refusal : refused) {
    refusals.push_back({{"kind", refusal.kind},
                        {"created_unix_ns", refusal.run.created_unix_ns()},
                        {"error", refusal.run.error()},
                        {"failure", refusal.run.failure()}});
  }
  print_json({{"job", report::to_json(seen.job())},
              {"checkpoints", std::move(checkpoints)},
              {"refused", std::move(refusals)}});
}

// A directory can be inspected without kymod.
void inspect_target(Context& context, const std::string& target) {
  std::error_code error;
  const bool directory = fs::is_directory(target, error);
  const bool path = target.find('/') != std::string::npos || target == "." || target == "..";
  const std::string asked = path ? absolute_path(target) : target;
  bool connected = false;
  std::vector<Refusal> refused;
  const Result<v1::InspectResponse> seen = [&]() -> Result<v1::InspectResponse> {
    Result<client::Client> client = client::Client::connect(context.socket);
    connected = client.ok();
    if (!client) return client.error();
    Result<v1::InspectResponse> found = client->inspect(asked);
    if (found && found->has_job()) refused = newest_runs(*client, found->job().name()).refused;
    return found;
  }();
  client::end_threads();  // a directory is read in a process without rights, which is forked
  if (seen) return show(context, *seen, refused);
  if (!directory || (connected && seen.error().code != Code::not_found)) {
    return fail(context, seen.error());
  }
  const std::string shown = absolute_path(target);
  show_directory(context, shown, {{"checkpoint", nullptr}, {"directory", shown}});
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* inspect =
      app.add_subcommand("inspect", "Show all that is known about a job or checkpoint");
  auto target = std::make_shared<std::string>();
  inspect->fallthrough();
  inspect->add_option("target", *target, "Name or id of a job, or id or directory of a checkpoint")
      ->required();
  inspect->add_flag("--json", context.json, "Print JSON");
  inspect->callback([&context, target] { inspect_target(context, *target); });
}

}  // namespace kymo::cli
