#include "checkpoints/checkpoint_named.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "checkpoints/checkpoint_copy.h"
#include "checkpoints/newest_dump.h"
#include "client/client.h"

namespace kymo::cli {
namespace {

// What kymod knows of this name. Nothing if the name is a path, or if kymod does not know it. `runs`: of a job, is
// set to newest_runs(); null: they are not asked for.
std::optional<v1::InspectResponse> look_up(const Context& context, const std::string& name,
                                           NewestRuns* runs = nullptr) {
  std::error_code unknown;
  const bool is_path =
      name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      (name.find('.') != std::string::npos && std::filesystem::is_regular_file(name, unknown));
  if (is_path) return std::nullopt;
  Result<v1::InspectResponse> found = [&]() -> Result<v1::InspectResponse> {
    Result<client::Client> client = client::Client::connect(context.socket);
    if (!client) return client.error();
    Result<v1::InspectResponse> seen = client->inspect(name);
    if (seen && runs != nullptr) {
      // A name that is no job's is that of a container, which has a history, or the id of a checkpoint, which has none.
      *runs = newest_runs(*client, seen->has_job() ? seen->job().name() : name);
    }
    return seen;
  }();
  client::end_threads();
  if (!found) return std::nullopt;
  return *std::move(found);
}

// Whether the dump has ended, and its folder still says how.
bool has_ended(const v1::Checkpoint& checkpoint) {
  return checkpoint.state() == v1::Checkpoint::COMPLETE ||
         checkpoint.state() == v1::Checkpoint::FAILED ||
         checkpoint.state() == v1::Checkpoint::UNCONFIRMED;
}

void refuse_empty(const std::string& name) {
  if (!name.empty()) return;
  throw CLI::ValidationError("the name is empty",
                             "give a job, a checkpoint (its directory or id), or a file");
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& why) {
  throw CLI::ValidationError(name, why + "; for a folder give ./" + name);
}

}  // namespace

std::string checkpoint_named(const Context& context, const std::string& name) {
  refuse_empty(name);
  const std::optional<v1::InspectResponse> found = look_up(context, name);
  if (!found) return name;
  if (!found->has_job()) return found->checkpoint().directory();
  if (!found->job().last_checkpoint().empty()) return found->job().last_checkpoint();
  const bool failed =
      std::any_of(found->checkpoints().begin(), found->checkpoints().end(),
                  [](const v1::Checkpoint& one) { return one.state() == v1::Checkpoint::FAILED; });
  refuse_name(name, failed ? "this job has no complete checkpoint (kymo explain " + name +
                                 " says why its dump failed)"
                           : "this job has no checkpoint");
}

NewestDump newest_dump_named(const Context& context, const std::string& name) {
  refuse_empty(name);
  NewestRuns runs;
  const std::optional<v1::InspectResponse> found = look_up(context, name, &runs);
  if (!found) return {name, ""};
  if (!found->has_job()) return {found->checkpoint().directory(), "", std::move(runs)};
  const auto& all = found->checkpoints();  // oldest first
  const auto newest = std::find_if(all.rbegin(), all.rend(), has_ended);
  if (newest == all.rend()) {
    if (!runs.refused.empty() || runs.restore) return {"", "", std::move(runs)};
    refuse_name(name, all.empty() ? "this job has no checkpoint" : "no dump of this job has ended");
  }
  const std::string& complete = found->job().last_checkpoint();
  return {newest->directory(), complete == newest->directory() ? "" : complete, std::move(runs),
          true};
}

std::string checkpoint_to_read(const Context& context, const std::string& name) {
  return readable_checkpoint(context, checkpoint_named(context, name));
}

std::string recordings_named(const Context& context, const std::string& name) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(name, unknown)) return readable_checkpoint(context, name);
  const NewestDump dump = newest_dump_named(context, name);
  if (!dump.directory.empty()) return readable_checkpoint(context, dump.directory);
  throw CLI::ValidationError(name,
                             "its requests were refused before anything was recorded (kymo "
                             "explain " +
                                 name + " says why)");
}

}  // namespace kymo::cli
