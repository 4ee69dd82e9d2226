#include "recorder/sampling/recover/marked.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "base/recording_name.h"
#include "base/sync.h"
#include "base/text_file.h"
#include "recorder/sampling/files/append_file.h"
#include "recorder/sampling/files/contents.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/recording_files.h"
#include "recorder/sampling/files/stats_members.h"
#include "recorder/sampling/recover/file_end.h"

namespace kymo {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr std::size_t kMaxBeside = std::size_t{1} << 30U;
constexpr auto kCauses = {MissCause::late, MissCause::ring_full, MissCause::sink_error,
                          MissCause::frozen};

std::string metadata_path(const std::string& tsv) {
  return recording_stem(tsv) + ".meta.json";
}

// The text of a file beside the recording; empty if there is none, or if it is not a regular file.
std::string text_beside(const std::string& path) {
  Result<TextFile> file = TextFile::open_regular(path);
  std::string text;
  std::vector<char> piece(kPieceBytes);
  while (file && text.size() < kMaxBeside) {
    const Result<std::size_t> size = file->read(piece.data(), piece.size());
    if (!size || *size == 0) {
      break;
    }
    text.append(piece.data(), *size);
  }
  return text;
}

std::string gaps_path(const std::string& tsv) {
  return recording_stem(tsv) + ".gaps.tsv";
}

// The gaps in the gaps file, by their beginning. The last gaps may be missing, because the recorder
// was killed.
std::vector<Gap> listed_gaps(const std::string& tsv) {
  std::istringstream file(text_beside(gaps_path(tsv)));
  std::string line;
  std::getline(file, line);
  std::vector<Gap> gaps;
  for (Gap gap; file >> gap.start_ns >> gap.end_ns >> gap.ticks >> line;) {
    for (const MissCause cause : kCauses) {
      if (line == name_of(cause) && gap.start_ns < gap.end_ns) {
        gap.cause = cause;
        gaps.push_back(gap);
      }
    }
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
  return gaps;
}

// Finds the ticks that are neither a row nor in a listed gap, from the times of the rows.
class UnlistedGaps {
 public:
  // `listed`: by their beginning; must outlive this.
  UnlistedGaps(const std::vector<Gap>& listed, std::uint64_t interval_ns, MissCause cause)
      : listed_(listed), interval_ns_(interval_ns), cause_(cause) {}

  void add_row(std::uint64_t time_ns) {
    const std::uint64_t tick = time_ns / interval_ns_;
    if (!begun_) {
      begun_ = true;
      next_ = listed_.empty() ? tick : std::min(tick, listed_.front().start_ns / interval_ns_);
    }
    while (next_ < tick) {
      while (at_ < listed_.size() && listed_[at_].end_ns / interval_ns_ <= next_) ++at_;
      if (at_ == listed_.size() || listed_[at_].start_ns / interval_ns_ >= tick) {
        add(tick);
        break;
      }
      add(listed_[at_].start_ns / interval_ns_);
      next_ = listed_[at_].end_ns / interval_ns_;
    }
    next_ = std::max(next_, tick + 1);
  }
  [[nodiscard]] const std::vector<Gap>& found() const { return found_; }

 private:
  // The ticks from next_ to before `end`.
  void add(std::uint64_t end) {
    if (end <= next_) return;
    found_.push_back({next_ * interval_ns_, end * interval_ns_, end - next_, cause_});
  }

  const std::vector<Gap>& listed_;
  const std::uint64_t interval_ns_;
  const MissCause cause_;
  std::size_t at_ = 0;      // the first listed gap that may have ticks from next_ on
  std::uint64_t next_ = 0;  // the tick after the last row or gap
  bool begun_ = false;
  std::vector<Gap> found_;
};

// Appends gaps to the gaps file, or makes one. They replace a gap that was half written. Does
// nothing if the file is a link or belongs to somebody else: the ticks are counted all the same.
Result<void> list_gaps(const std::vector<Gap>& gaps, const std::string& tsv) {
  const std::string path = gaps_path(tsv);
  const std::string there = text_beside(path);
  const std::size_t whole = there.rfind('\n') + 1;  // 0 if there is no line
  std::string lines;
  if (whole == 0) lines = kGapsHeader;
  for (const Gap& gap : gaps) {
    lines += gap_line(gap);
  }
  if (lines.empty()) {
    return {};
  }
  if (Result<AppendFile> made = AppendFile::create(path)) {
    const int error = made->append(lines);
    return error == 0 ? sync_path(path) : system_error("cannot write " + path, error);
  }
  Result<FileDescriptor> own = FileEnd::open_own(path);
  if (!own) {
    return {};
  }
  Result<FileEnd> end = FileEnd::from(*std::move(own), path, whole);
  if (!end) {
    return end.error();
  }
  const int error = end->append(lines);
  return error == 0 ? end->finish() : system_error("cannot write " + path, error);
}

}  // namespace

nlohmann::json metadata_of(const std::string& tsv) {
  const std::string text = text_beside(metadata_path(tsv));
  return text.empty() ? nlohmann::json() : parse_object(text);
}

namespace {

// The counts of a recovered recording, as far as the files tell them. The others are erased.
void count_anew(const Contents& contents, const std::vector<Gap>& gaps, nlohmann::json& stats) {
  std::map<MissCause, std::uint64_t> missed;
  for (const Gap& gap : gaps) {
    missed[gap.cause] += gap.ticks;
  }
  // Rows that were lost with a file that somebody removed are in no gap.
  missed.try_emplace(MissCause::sink_error, number_of(stats, "missed_sink_error"));
  if (number_of(stats, "missed_late") != missed[MissCause::late]) {
    for (const char* why : {"late_waited", "late_sample", "late_stolen", "late_page_fault"}) {
      stats.erase(why);
    }
  }
  std::uint64_t due = contents.rows;
  for (const MissCause cause : kCauses) {
    stats["missed_" + std::string(name_of(cause))] = missed[cause];
    due += missed[cause];
  }
  stats["ticks_due"] = due;
  stats["rows_written"] = contents.rows;
  const std::uint64_t captured = contents.rows + missed[MissCause::sink_error];
  if (number_of(stats, "rows_captured") != captured) {
    for (const StatsMember& figure : kStatsMembers) {
      if (figure.of_rows) stats.erase(figure.name);
    }
  }
  stats["rows_captured"] = captured;
  stats["duration_ns"] = contents.last_ns;
}

}  // namespace

Result<void> mark_recovered(const std::string& tsv, const nlohmann::json& recording,
                            MissCause unlisted_cause) {
  nlohmann::json metadata = metadata_of(tsv);
  if (!metadata.is_object()) {
    metadata = recording;
  }
  std::vector<Gap> gaps = listed_gaps(tsv);
  UnlistedGaps unlisted(gaps, std::max<std::uint64_t>(1, number_of(metadata, "interval_ns")),
                        unlisted_cause);
  const Result<Contents> contents =
      contents_of(tsv, [&](std::uint64_t time_ns) { unlisted.add_row(time_ns); });
  if (!contents) {
    return contents.error();
  }
  const std::vector<Gap> found = unlisted.found();
  if (Result<void> listed = list_gaps(found, tsv); !listed) {
    return listed;
  }
  gaps.insert(gaps.end(), found.begin(), found.end());
  nlohmann::json& stats = metadata["stats"];
  if (!stats.is_object()) {
    stats = nlohmann::json::object();
  }
  count_anew(*contents, gaps, stats);
  std::error_code unknown;
  if (const auto bytes = std::filesystem::file_size(tsv, unknown); !unknown) {
    stats["bytes_written"] = bytes;
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; });
  gaps.resize(std::min(gaps.size(), kMaxLongestGaps));
  nlohmann::json& longest = metadata["longest_gaps"] = nlohmann::json::array();
  for (const Gap& gap : gaps) {
    longest.push_back(describe_gap(gap));
  }
  if (member(metadata, "part").is_object()) {
    metadata["part"].erase("next");
  }
  metadata["state"] = "recovered";
  const std::string path = metadata_path(tsv);
  if (Result<void> replaced = replace_file(path, json_text(metadata, 1) + '\n'); !replaced) {
    return replaced;
  }
  return sync_path(path);
}

}  // namespace kymo
