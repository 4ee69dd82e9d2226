#include "report/phases.h"

#include <algorithm>

namespace kymo::report {

std::vector<Phase> phases_of(const analysis::Summary& summary) {
  std::vector<Phase> phases;
  if (!summary.recording.metadata) {
    return phases;
  }
  const std::vector<analysis::Mark>& marks = summary.recording.metadata->marks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const std::uint64_t end = i + 1 < marks.size() ? marks[i + 1].at_ns : summary.last_ns;
    phases.push_back({marks[i].name, marks[i].at_ns, std::max(end, marks[i].at_ns)});
  }
  return phases;
}

}  // namespace kymo::report
