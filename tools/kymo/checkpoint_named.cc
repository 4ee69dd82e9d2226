#include "checkpoint_named.h"

#include <filesystem>

#include "client/client.h"

namespace kymo::cli {

std::string checkpoint_named(const Context& context, const std::string& name) {
  std::error_code unknown;
  const bool is_path = name.empty() || name == "." || name == ".." ||
                       name.find('/') != std::string::npos ||
                       std::filesystem::is_regular_file(name, unknown);
  if (is_path) return name;
  const Result<v1::InspectResponse> found = [&]() -> Result<v1::InspectResponse> {
    Result<client::Client> client = client::Client::connect(context.socket);
    return client ? client->inspect(name) : client.error();
  }();
  client::end_threads();
  if (!found) return name;
  if (found->has_job() && found->job().last_checkpoint().empty()) {
    throw CLI::ValidationError(name, "this job has no checkpoint; for a folder give ./" + name);
  }
  return found->has_job() ? found->job().last_checkpoint() : found->checkpoint().directory();
}

}  // namespace kymo::cli
