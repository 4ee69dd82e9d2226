#include <algorithm>

#include "profiler/kept/pull_targets.h"
#include "profiler/kept/pulled.h"
#include "targets.h"

namespace kymo::fuzz {

// Reads the bytes as the file of targets, as the pods of Kubernetes, as the list that a child process makes of them, and as
// what a child has pulled.
void targets(Bytes data) {
  const std::string text = text_of(data);
  if (const auto read = profiles::pull_targets_in(text, "f")) {
    const bool good = std::all_of(read->all.begin(), read->all.end(), [](const auto& one) {
      return !one.service.empty() && !one.host.empty() && one.port > 0 && one.port < 65536;
    });
    require(good, "each target has a service, a host and a port");
  } else {
    require(read.error().message.starts_with("f"), "an error names the file");
  }
  if (const auto listed = profiles::listed_in(text, "http://api")) {
    const auto again = profiles::listed_in(profiles::list_text(*listed), "http://api");
    require(again.ok() && *again == *listed, "a list that is written is read as it was");
  }
  const profiles::Pulled pulled = profiles::pulled_in(text);
  require(!pulled.failures.empty() || text.ends_with("failed end 0 0\n"),
          "what is not whole is a failure");
}

}  // namespace kymo::fuzz
