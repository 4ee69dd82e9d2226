#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"
#include "profiler/stacks/profile_text.h"
#include "targets.h"

namespace kymo::fuzz {

void folded(Bytes data) {
  const std::string text = text_of(data);
  if (const Result<stacks::NamedProfile> said = stacks::profile_in(text)) {
    static_cast<void>(stacks::hottest(*said));
  }
  const auto read = stacks::read_folded(text, "fuzz", stacks::Quantity::wait);
  if (!read) {
    require(read.error().message.find('\n') == std::string::npos, "an error is one line");
    return;
  }
  for (const stacks::NamedProfile::Stack& stack : read->stacks) {
    require(!stack.functions.empty(), "each stack has a function");
  }
  const Result<stacks::NamedProfile> again = stacks::profile_in(stacks::text_of(*read));
  require(again.ok() && again->sum().value == read->sum().value,
          "what a reader says is read as the same");
}

}  // namespace kymo::fuzz
