#include "lens/analysis/joined_parts.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "recorder/sampling/files/stats_members.h"

namespace kymo::analysis {
namespace {

// As many as NAME.meta.json lists.
constexpr std::size_t kMaxLongestOfAll = 100;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename();
}

// A recording that says of itself that it is a part.
struct NamedPart {
  std::size_t index = 0;  // in the paths
  std::uint64_t number = 0;
  std::string name;
  std::string previous;
  std::string next;
};

// What all parts of one recording have in common.
using Origin = std::tuple<std::string, std::int64_t, std::uint64_t>;

std::map<Origin, std::vector<NamedPart>> parts_among(const std::vector<std::string>& paths) {
  std::map<Origin, std::vector<NamedPart>> parts;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto metadata = read_metadata(recording_stem(paths[i]) + ".meta.json");
    if (!metadata || (metadata->previous_part.empty() && metadata->next_part.empty())) continue;
    const std::string folder = std::filesystem::path(paths[i]).parent_path();
    parts[{folder, metadata->start_unix_ns, metadata->start_monotonic_ns}].push_back(
        {i, metadata->part, file_name(paths[i]), metadata->previous_part, metadata->next_part});
  }
  return parts;
}

// Adds the figures of the next part. What is not known of a part stays 0, which means unknown.
void add_stats(const ProfilerStats& part, ProfilerStats& all) {
  for (const StatsMember& figure : kStatsMembers) {
    switch (figure.of_part) {
      case StatsOfPart::counted:
      case StatsOfPart::growth:
        all.*figure.value += part.*figure.value;
        break;
      case StatsOfPart::newest:
        all.*figure.value = part.*figure.value;
        break;
      case StatsOfPart::unknown:
        break;
    }
  }
}

void add_gaps(Gaps part, Gaps& all) {
  for (std::size_t cause = 0; cause < all.ticks_by_cause.size(); ++cause) {
    all.ticks_by_cause.at(cause) += part.ticks_by_cause.at(cause);
  }
  all.count += part.count;
  all.longest.insert(all.longest.end(), part.longest.begin(), part.longest.end());
  std::stable_sort(all.longest.begin(), all.longest.end(),
                   [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; });
  all.longest.resize(std::min(all.longest.size(), Gaps::kMaxLongest));
  std::stable_sort(all.longest.begin(), all.longest.end(),
                   [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
}

void add_metadata(Metadata part, Metadata& all) {
  if (all.stats && part.stats) {
    add_stats(*part.stats, *all.stats);
  } else {
    all.stats.reset();
  }
  if (all.state != "failed") all.state = part.state;
  all.next_part = std::move(part.next_part);
  all.callback_errors = std::move(part.callback_errors);  // since the start of the whole recording
  if (all.scopes != nullptr && part.scopes != nullptr) {
    auto both = std::make_shared<nlohmann::json>(*all.scopes);
    both->insert(both->end(), part.scopes->begin(), part.scopes->end());
    all.scopes = std::move(both);
  } else if (part.scopes != nullptr) {
    all.scopes = std::move(part.scopes);
  }
  all.scope_trees_left_out += part.scope_trees_left_out;
  all.scopes_left_out += part.scopes_left_out;
  all.marks.insert(all.marks.end(), part.marks.begin(), part.marks.end());
  all.longest_gaps.insert(all.longest_gaps.end(), part.longest_gaps.begin(),
                          part.longest_gaps.end());
  std::stable_sort(all.longest_gaps.begin(), all.longest_gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; });
  all.longest_gaps.resize(std::min(all.longest_gaps.size(), kMaxLongestOfAll));
}

bool same_names(const std::vector<ColumnInfo>& a, const std::vector<ColumnInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ColumnInfo& x, const ColumnInfo& y) { return x.name == y.name; });
}

}  // namespace

std::vector<std::vector<std::string>> join_parts(const std::vector<std::string>& paths) {
  // Of each recording: the one before it in its group.
  std::vector<std::optional<std::size_t>> before(paths.size());
  std::vector<std::optional<std::size_t>> after(paths.size());
  if (paths.size() > 1) {
    for (auto& [origin, parts] : parts_among(paths)) {
      std::stable_sort(parts.begin(), parts.end(),
                       [](const NamedPart& a, const NamedPart& b) { return a.number < b.number; });
      for (std::size_t i = 1; i < parts.size(); ++i) {
        const NamedPart& a = parts[i - 1];
        const NamedPart& b = parts[i];
        if (a.name != b.name && (a.next == b.name || b.previous == a.name)) {
          before[b.index] = a.index;
          after[a.index] = b.index;
        }
      }
    }
  }
  std::vector<std::vector<std::string>> groups;
  std::vector<bool> taken(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (taken[i]) continue;
    std::size_t first = i;
    while (before[first]) first = *before[first];
    std::vector<std::string>& group = groups.emplace_back();
    for (std::optional<std::size_t> at = first; at; at = after[*at]) {
      taken[*at] = true;
      group.push_back(paths[*at]);
    }
  }
  return groups;
}

Result<Recording> open_parts(const std::vector<std::string>& parts) {
  std::optional<Recording> all;
  std::vector<std::string> notes;
  std::vector<std::string> read;
  std::uint64_t last_number = 0;
  for (const std::string& path : parts) {
    Result<Recording> part = open_recording(path);
    // Its header is not whole: somebody has cut it. The others are read all the same.
    if (!part && part.error().code == Code::data_loss && (all || path != parts.back())) {
      notes.push_back(part.error().message);
      continue;
    }
    if (!part) return part.error();
    if (!part->metadata) {
      return Error{Code::data_loss, "read " + path + " as a part: its metadata cannot be read"};
    }
    for (const std::string& note : part->notes) {
      if (!is_incomplete_sentence(note)) notes.push_back(file_name(path) + ": " + note);
    }
    last_number = part->metadata->part;
    read.push_back(path);
    if (!all) {
      all = *std::move(part);
      continue;
    }
    if (!same_names(part->columns, all->columns)) {
      return Error{Code::invalid_argument, "read " + path + " as a part of the recording that " +
                                               parts.front() +
                                               " begins: it has other columns; read it alone"};
    }
    add_metadata(*std::move(part->metadata), *all->metadata);
    if (part->gaps && all->gaps) add_gaps(*std::move(part->gaps), *all->gaps);
    all->finish = part->finish;
  }
  if (std::string sentence = part_sentence(*all->metadata, last_number, all->path);
      !sentence.empty()) {
    notes.push_back(std::move(sentence));
  }
  if (std::string sentence = scopes_sentence(*all->metadata); !sentence.empty()) {
    notes.push_back(std::move(sentence));
  }
  if (read.size() > 1) all->parts = std::move(read);
  all->notes = std::move(notes);
  return *std::move(all);
}

}  // namespace kymo::analysis
