#include "lens/analysis/diff_windows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/human.h"

namespace kymo::analysis {
namespace {

constexpr double kNanos = 1e9;

const std::vector<Mark>& marks_of(const DiffRun& run) {
  static const std::vector<Mark> kNone;
  return run.summary.recording.metadata ? run.summary.recording.metadata->marks : kNone;
}

// The first mark of that name, or the last one.
const Mark* find_mark(const DiffRun& run, const std::string& name, bool last = false) {
  const std::vector<Mark>& marks = marks_of(run);
  const auto is_it = [&](const Mark& mark) { return mark.name == name; };
  if (last) {
    const auto found = std::find_if(marks.rbegin(), marks.rend(), is_it);
    return found == marks.rend() ? nullptr : &*found;
  }
  const auto found = std::find_if(marks.begin(), marks.end(), is_it);
  return found == marks.end() ? nullptr : &*found;
}

std::string names_of(const std::vector<Mark>& marks) {
  std::string text;
  for (const Mark& mark : marks) text += (text.empty() ? "" : ", ") + in_quotes(mark.name, 64);
  return text.empty() ? "none" : text;
}

// The names that each run has as the name of a mark, if the time of its first mark of that name, or
// of the last one, is `good` for the run. Searches no list for each mark: there may be very many.
template <class Good>
std::set<std::string_view> common_names(const std::vector<DiffRun*>& runs, bool last, Good good) {
  std::set<std::string_view> common;
  for (const DiffRun* run : runs) {
    std::map<std::string_view, std::uint64_t> times;
    for (const Mark& mark : marks_of(*run)) {
      const auto [entry, is_new] = times.try_emplace(mark.name, mark.at_ns);
      if (last && !is_new) entry->second = mark.at_ns;
    }
    std::set<std::string_view> names;
    for (const auto& [name, at_ns] : times) {
      const bool elsewhere = run == runs.front() || common.contains(name);
      if (elsewhere && good(*run, at_ns)) names.insert(name);
    }
    common = std::move(names);
  }
  return common;
}

std::string first_common_mark(const std::vector<DiffRun*>& runs) {
  const auto common = common_names(runs, false, [](const DiffRun& run, std::uint64_t at_ns) {
    return at_ns < run.summary.last_ns;
  });
  for (const Mark& mark : marks_of(*runs.front())) {
    if (common.contains(mark.name)) return mark.name;
  }
  return {};
}

// The last mark that every run has after its origin.
std::string last_common_mark(const std::vector<DiffRun*>& runs) {
  const auto common = common_names(
      runs, true, [](const DiffRun& run, std::uint64_t at_ns) { return at_ns > run.origin_ns; });
  const std::vector<Mark>& marks = marks_of(*runs.front());
  const auto found = std::find_if(marks.rbegin(), marks.rend(),
                                  [&](const Mark& mark) { return common.contains(mark.name); });
  return found == marks.rend() ? std::string() : found->name;
}

// The time `seconds` after the run's origin, but not before its first row.
std::uint64_t instant(const DiffRun& run, double seconds) {
  const double at = static_cast<double>(run.origin_ns) + seconds * kNanos;
  return static_cast<std::uint64_t>(
      std::clamp(at, static_cast<double>(run.summary.first_ns), 1e19));
}

// Where the phase that begins at the run's origin ends.
std::uint64_t end_of_phase(const DiffRun& run) {
  for (const Mark& mark : marks_of(run)) {
    if (mark.at_ns > run.origin_ns) return mark.at_ns;
  }
  return run.summary.last_ns;
}

std::uint64_t end_of(const DiffRun& run, const Aligned& aligned, const DiffOptions& options) {
  if (options.to_s) return instant(run, *options.to_s);
  if (!options.align.empty()) return end_of_phase(run);
  const Mark* mark = aligned.until.empty() ? nullptr : find_mark(run, aligned.until, true);
  return mark != nullptr ? mark->at_ns : run.summary.last_ns;
}

Result<void> set_window(DiffRun& run, const Aligned& aligned, const DiffOptions& options) {
  const Summary& summary = run.summary;
  const std::uint64_t begin = options.from_s ? instant(run, *options.from_s) : run.origin_ns;
  if (options.to_s && instant(run, *options.to_s) > summary.last_ns + kRateWindowNs) {
    const double seconds = static_cast<double>(summary.last_ns - run.origin_ns) / kNanos;
    return Error{Code::invalid_argument,
                 "compare " + summary.recording.path + " up to --to " +
                     human::duration(*options.to_s * kNanos) + ": it ends after " +
                     human::duration(seconds * kNanos) +
                     ": leave out --to, or give a time that all recordings reach"};
  }
  run.window.begin_ns = std::max(begin, summary.first_ns);
  run.window.end_ns = std::min(end_of(run, aligned, options), summary.last_ns);
  if (run.window.begin_ns < run.window.end_ns) return {};
  return Error{Code::invalid_argument,
               "compare " + summary.recording.path +
                   ": it has no rows in the compared range; see --align, --from and --to"};
}

}  // namespace

Result<Aligned> align_runs(const std::vector<DiffRun*>& runs, const DiffOptions& options) {
  Aligned aligned{options.align.empty() ? first_common_mark(runs) : options.align, {}};
  for (DiffRun* run : runs) {
    run->origin_ns = run->summary.first_ns;
    if (aligned.at.empty()) continue;
    const Mark* mark = find_mark(*run, aligned.at);
    if (mark == nullptr) {
      return Error{Code::invalid_argument,
                   "align " + run->summary.recording.path + " at " + in_quotes(aligned.at, 64) +
                       ": it has no such mark; its marks are " + names_of(marks_of(*run))};
    }
    run->origin_ns = mark->at_ns;
  }
  if (!aligned.at.empty() && options.align.empty() && !options.to_s) {
    aligned.until = last_common_mark(runs);
  }
  for (DiffRun* run : runs) {
    if (auto set = set_window(*run, aligned, options); !set) return set.error();
  }
  return aligned;
}

}  // namespace kymo::analysis
