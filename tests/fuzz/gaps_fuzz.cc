#include "input_file.h"
#include "lens/analysis/gap_file.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

void read_gap_list(const std::string& text) {
  static InputFile file;
  file.write(text);
  const auto gaps = analysis::read_gaps(file.path());
  if (!gaps) {
    require(!gaps.error().message.empty(), "an error says something");
    return;
  }
  require(
      gaps->longest.size() <= gaps->count && gaps->longest.size() <= analysis::Gaps::kMaxLongest,
      "the list of gaps is bounded");
  std::uint64_t last = 0;
  for (const Gap& gap : gaps->longest) {
    require(gap.start_ns >= last && gap.end_ns >= gap.start_ns, "gaps are in order");
    last = gap.start_ns;
  }
}

}  // namespace

void gaps(Bytes data) {
  const std::string text = text_of(data);
  read_gap_list(text);
  read_gap_list("Start (ns)\tEnd (ns)\tTicks\tCause\n" + text);
}

}  // namespace kymo::fuzz
