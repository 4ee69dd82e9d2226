#include "lens/report/phases.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/diagnosis/phases.h"

namespace kymo::report {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// `began_ns` and `start_ns` are on CLOCK_MONOTONIC. The rows begin at `start_ns`.
std::uint64_t on_rows(std::uint64_t since_ns, std::uint64_t began_ns, std::uint64_t start_ns) {
  const std::uint64_t at_ns = began_ns > kNever - since_ns ? kNever : began_ns + since_ns;
  return at_ns > start_ns ? at_ns - start_ns : 0;
}

std::vector<diagnosis::Phase> phases_of_request(const analysis::Metadata& metadata) {
  std::vector<diagnosis::Phase> phases;
  const nlohmann::json& about = *metadata.about;
  const auto list = about.find("phases");
  const auto began = about.find("request_began_monotonic_ns");
  if (list == about.end() || began == about.end() || !began->is_number_unsigned()) {
    return phases;
  }
  const auto began_ns = began->get<std::uint64_t>();
  const std::uint64_t start_ns = metadata.start_monotonic_ns;
  phases = diagnosis::phases_from(*list);
  for (diagnosis::Phase& phase : phases) {
    phase.begin_ns = on_rows(phase.begin_ns, began_ns, start_ns);
    phase.end_ns = on_rows(phase.end_ns, began_ns, start_ns);
  }
  return phases;
}

}  // namespace

std::vector<diagnosis::Phase> phases_of(const analysis::Summary& summary) {
  std::vector<diagnosis::Phase> phases;
  if (!summary.recording.metadata) {
    return phases;
  }
  phases = phases_of_request(*summary.recording.metadata);
  if (!phases.empty()) {
    return phases;
  }
  const std::vector<analysis::Mark>& marks = summary.recording.metadata->marks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const std::uint64_t end = i + 1 < marks.size() ? marks[i + 1].at_ns : summary.last_ns;
    phases.push_back({marks[i].name, marks[i].at_ns, std::max(end, marks[i].at_ns), 0, {}, false});
  }
  return phases;
}

}  // namespace kymo::report
