#include "lens/analysis/recording.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/human.h"

namespace kymo::analysis {
namespace {

constexpr std::size_t kMaxNamed = 5;
constexpr const char* kLostScopes = "scopes are missing: ";
constexpr const char* kOnlyPart = "it is only part ";
constexpr const char* kOnlyParts = "it has only the parts ";

// "a, b, c and 7 more"
std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxNamed; ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(names[i], 64);
  }
  if (names.size() > kMaxNamed) {
    text += " and " + std::to_string(names.size() - kMaxNamed) + " more";
  }
  return text;
}

// Describes each column of the header by the metadata. Notes the columns that only one of the two
// has.
void join_columns(const std::vector<std::string>& header, Recording& recording) {
  std::unordered_map<std::string, const ColumnInfo*> described;
  if (recording.metadata) {
    for (const ColumnInfo& column : recording.metadata->columns) {
      described.emplace(column.name, &column);
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& name : header) {
    const auto found = described.find(name);
    if (found == described.end()) {
      unknown.push_back(name);
      ColumnInfo column;
      column.name = name;
      column.metric = name.substr(0, name.find('['));
      recording.columns.push_back(std::move(column));
    } else {
      recording.columns.push_back(*found->second);
      described.erase(found);
    }
  }
  if (!recording.metadata) {
    return;
  }
  if (!unknown.empty()) {
    recording.notes.push_back("the metadata does not describe " + some_of(unknown) +
                              ": whether they are counters is guessed from their values");
  }
  std::vector<std::string> missing;
  for (const ColumnInfo& column : recording.metadata->columns) {
    if (described.contains(column.name)) {
      missing.push_back(column.name);
    }
  }
  if (!missing.empty()) {
    recording.notes.push_back("the metadata describes " + some_of(missing) +
                              ", which the header does not have");
  }
}

Result<void> join_metadata(const std::string& path, Recording& recording) {
  auto metadata = read_metadata(path);
  if (metadata) {
    recording.metadata = std::move(metadata).value();
    recording.finish = finish_of(*recording.metadata, recording.path);
    if (std::string sentence = part_sentence(*recording.metadata, 0, path); !sentence.empty()) {
      recording.notes.push_back(
          std::move(sentence) +
          "; kymo report, diff and export read all parts that you name as one");
    }
    if (std::string sentence = scopes_sentence(*recording.metadata); !sentence.empty()) {
      recording.notes.push_back(std::move(sentence));
    }
    return {};
  }
  if (metadata.error().code == Code::failed_precondition) {
    return metadata.error();
  }
  recording.notes.push_back(metadata.error().message +
                            "; units, marks and totals are unknown, and which column is a counter "
                            "is guessed from its values");
  return {};
}

// What is known of a recording whose list of gaps cannot be read.
std::string what_is_left(const Recording& recording) {
  if (!recording.metadata) {
    return "; how many ticks were missed is unknown";
  }
  const std::string gaps = "; the metadata list its longest gaps";
  return recording.metadata->state == "ended"
             ? gaps + "; the recording itself ended properly, with all rows and totals"
             : gaps;
}

void join_gaps(const std::string& path, Recording& recording) {
  auto gaps = read_gaps(path);
  if (gaps) {
    for (const std::string& sentence : gaps->left_out.sentences()) {
      recording.notes.push_back("list of gaps, " + sentence);
    }
    recording.gaps = std::move(gaps).value();
    return;
  }
  recording.notes.push_back(gaps.error().message + what_is_left(recording));
  if (recording.metadata) {
    Gaps known;
    known.longest = recording.metadata->longest_gaps;
    known.count = known.longest.size();
    for (const Gap& gap : known.longest) {
      known.ticks_by_cause.at(static_cast<std::size_t>(gap.cause)) += gap.ticks;
    }
    recording.gaps = std::move(known);
  }
}

}  // namespace

std::vector<std::string> files_of(const Recording& recording) {
  return recording.parts.empty() ? std::vector<std::string>{recording.path} : recording.parts;
}

std::string scopes_sentence(const Metadata& metadata) {
  std::string sentence = kLostScopes;
  if (metadata.scopes_left_out != 0) {
    sentence += human::with_commas(metadata.scopes_left_out) +
                " had no room in their trees, so give kymo::ScopeTree a higher limit";
  }
  if (metadata.scope_trees_left_out != 0) {
    sentence += metadata.scopes_left_out != 0 ? "; " : "";
    sentence += human::with_commas(metadata.scope_trees_left_out) +
                " older trees had no room in the recording";
  }
  return sentence == kLostScopes ? "" : sentence;
}

bool is_incomplete_sentence(const std::string& note) {
  return is_part_sentence(note) || note.starts_with(kLostScopes);
}

bool is_part_sentence(const std::string& note) {
  return note.starts_with(kOnlyPart) || note.starts_with(kOnlyParts);
}

std::string part_sentence(const Metadata& metadata, std::uint64_t last_part,
                          const std::string& path) {
  const bool first = metadata.previous_part.empty();
  const bool last = metadata.next_part.empty();
  if (first && last) {
    return {};
  }
  const auto named = [&](const std::string& name) {
    std::error_code unknown;
    const bool there =
        path.empty() ||
        std::filesystem::exists(std::filesystem::path(path).replace_filename(name), unknown);
    return in_quotes(name, 64) + (there || unknown ? "" : " (which is not there any more)");
  };
  std::string sentence = last_part > metadata.part ? kOnlyParts : kOnlyPart;
  sentence += std::to_string(metadata.part);
  sentence += last_part > metadata.part ? " to " + std::to_string(last_part) : "";
  sentence += " of a longer recording: ";
  if (!first) {
    sentence += "the rows before are in " + named(metadata.previous_part);
  }
  if (!last) {
    sentence +=
        (first ? "the rows after are in " : ", those after in ") + named(metadata.next_part);
  }
  return sentence;
}

Result<Recording> open_recording(const std::string& path) {
  auto reader = TsvReader::open(path);
  if (!reader) {
    return reader.error();
  }
  Recording recording;
  recording.path = path;
  if (const Metadata* embedded = reader->embedded_metadata(); embedded != nullptr) {
    recording.metadata = *embedded;
    join_columns(reader->columns(), recording);
    return recording;
  }
  const std::string stem = recording_stem(path);
  if (auto joined = join_metadata(stem + ".meta.json", recording); !joined) {
    return joined.error();
  }
  join_gaps(stem + ".gaps.tsv", recording);
  join_columns(reader->columns(), recording);
  return recording;
}

}  // namespace kymo::analysis
