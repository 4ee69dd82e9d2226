#include "checkpoint_named.h"

#include <filesystem>

#include "client/client.h"

namespace kymo::cli {

std::string checkpoint_named(const Context& context, const std::string& name) {
  std::error_code unknown;
  if (name.find('/') != std::string::npos || std::filesystem::exists(name, unknown)) return name;
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return name;
  const Result<v1::InspectResponse> found = client->inspect(name);
  if (!found) return name;
  const std::string& directory =
      found->has_job() ? found->job().last_checkpoint() : found->checkpoint().directory();
  return directory.empty() ? name : directory;
}

}  // namespace kymo::cli
