#include <nlohmann/json.hpp>

#include "lens/analysis/metadata.h"
#include "targets.h"

namespace kymo::fuzz {

void metadata(Bytes data) {
  const auto metadata = analysis::parse_metadata(text_of(data), "fuzz");
  if (!metadata) {
    require(!metadata.error().message.empty(), "an error says something");
    return;
  }
  std::uint64_t last = 0;
  for (const analysis::Mark& mark : metadata->marks) {
    require(mark.at_ns >= last, "marks are in order");
    last = mark.at_ns;
  }
  require(metadata->about->is_object(), "it is about something, or about nothing");
  // Prints it in the way in which reports print it.
  static_cast<void>(metadata->about->dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace kymo::fuzz
