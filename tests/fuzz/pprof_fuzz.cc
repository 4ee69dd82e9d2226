#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"
#include "targets.h"

namespace kymo::fuzz {

void pprof(Bytes data) {
  const Result<stacks::NamedProfile> read = stacks::read_pprof(text_of(data), "fuzz");
  if (!read) {
    require(read.error().message.find('\n') == std::string::npos, "an error is one line");
    return;
  }
  for (const stacks::NamedProfile::Stack& stack : read->stacks) {
    for (const std::uint32_t function : stack.functions) {
      require(function < read->functions.size(), "each frame has a function");
    }
  }
  const stacks::Hottest hottest = stacks::hottest(*read);
  require(hottest.unknown_frames <= hottest.frames, "unknown frames are frames");
  for (const stacks::HotFunction& function : hottest.functions) {
    require(function.self.value <= function.total.value,
            "a function's own time is a part of its total");
  }
}

}  // namespace kymo::fuzz
