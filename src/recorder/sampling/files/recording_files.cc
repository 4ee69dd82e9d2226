#include "recorder/sampling/files/recording_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/absolute_path.h"
#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "base/recording_name.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/stats_members.h"
#include "recorder/timing/scope_json.h"

namespace kymo {
namespace {

constexpr std::size_t kUnwrittenGaps = 1024;

}  // namespace

std::string gap_line(const Gap& gap) {
  return std::to_string(gap.start_ns) + '\t' + std::to_string(gap.end_ns) + '\t' +
         std::to_string(gap.ticks) + '\t' + std::string(name_of(gap.cause)) + '\n';
}

Result<void> check_recording_name(const std::string& path) {
  if (!is_recording_name(path)) {
    return Error{Code::invalid_argument,
                 "cannot record to '" + path +
                     "': the name of a recording ends in .tsv, or in .tsv.zst to be compressed",
                 0};
  }
  if (recording_stem(path).ends_with(".gaps")) {
    return Error{Code::invalid_argument,
                 "cannot record to '" + path +
                     "': names that end in .gaps.tsv are for the gaps of a recording",
                 0};
  }
  return {};
}

Result<RecordingFiles> RecordingFiles::create(const std::string& path, const RecordingInfo& info,
                                              nlohmann::json about) {
  return create(path, info, std::move(about), nullptr);
}

Result<RecordingFiles> RecordingFiles::create(const std::string& path, const RecordingInfo& info,
                                              nlohmann::json about, nlohmann::json part) {
  if (Result<void> named = check_recording_name(path); !named) {
    return named.error();
  }
  const std::string name = recording_stem(path);
  const std::string header = tsv_header(info.columns);
  Result<OutputFile> rows = OutputFile::create(path, std::max(kFormatBufferBytes, header.size()));
  if (!rows) {
    return rows.error();
  }
  Result<AppendFile> gaps = AppendFile::create(name + ".gaps.tsv");
  if (!gaps) {
    ::unlink(path.c_str());
    return gaps.error();
  }
  const std::string metadata = name + ".meta.json";
  if (Result<FileDescriptor> claimed = create_append_only(metadata); !claimed) {
    ::unlink(path.c_str());
    ::unlink((name + ".gaps.tsv").c_str());
    return claimed.error();
  }
  RecordingFiles files(path, info, std::move(about), *std::move(rows), *std::move(gaps));
  if (!part.is_null()) {
    files.scopes_before_ = UINT64_MAX;  // until the part before has ended
  }
  files.set_part(std::move(part));
  Result<void> begun;
  if (const int error = files.rows_.append(header); error != 0) {
    begun = system_error("cannot write " + path, error);
  } else if (const int gaps_error = files.gaps_.append(kGapsHeader); gaps_error != 0) {
    begun = system_error("cannot write " + name + ".gaps.tsv", gaps_error);
  } else {
    begun = files.write_metadata({}, "running");
  }
  if (!begun) {
    ::unlink(path.c_str());
    ::unlink((name + ".gaps.tsv").c_str());
    ::unlink(metadata.c_str());
    return begun.error();
  }
  return files;
}

RecordingFiles::RecordingFiles(const std::string& path, RecordingInfo info, nlohmann::json about,
                               OutputFile rows, AppendFile gaps)
    : path_(absolute_path(path)),
      metadata_path_(recording_stem(path_) + ".meta.json"),
      info_(std::move(info)),
      about_(std::make_shared<nlohmann::json>(std::move(about))),
      rows_(std::move(rows)),
      gaps_(std::move(gaps)),
      formatter_(info_.columns.size() + 1, rows_a_buffer(info_.columns.size() + 1)),
      part_(std::make_shared<nlohmann::json>()) {
  longest_gaps_.reserve(kMaxLongestGaps + 1);
  unwritten_gaps_.reserve(kUnwrittenGaps);
}

Result<void> RecordingFiles::append(const Rows& rows, std::uint64_t base_ns) {
  const std::uint64_t bytes_before = rows_.size();
  for (std::size_t first = 0; first < rows.count; first += formatter_.capacity()) {
    const std::size_t count = std::min(formatter_.capacity(), rows.count - first);
    const Rows part{rows.data + first * rows.stride, count, rows.stride};
    if (const int error = rows_.append(formatter_.format(part, base_ns)); error != 0) {
      if (rows_.size() > bytes_before) {
        rows_.cut_back_to(bytes_before);
      }
      return system_error("cannot write " + path_, error);
    }
  }
  return {};
}

void RecordingFiles::merge_about(const nlohmann::json& about) {
  about_->merge_patch(about);
}

void RecordingFiles::set_part(nlohmann::json part) {
  *part_ = std::move(part);
}

void RecordingFiles::add_gap(const Gap& gap) {
  const auto longer = [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; };
  longest_gaps_.insert(std::upper_bound(longest_gaps_.begin(), longest_gaps_.end(), gap, longer),
                       gap);
  longest_gaps_.resize(std::min(longest_gaps_.size(), kMaxLongestGaps));
  keep_unwritten(gap);
  flush_gaps();
}

void RecordingFiles::keep_unwritten(const Gap& gap) {
  if (unwritten_gaps_.size() < kUnwrittenGaps) {
    unwritten_gaps_.push_back(gap);
    return;
  }
  // The list is full: the newest gap of the same cause grows instead. A list of this length
  // normally has one. If not, its newest gap grows, whatever its cause.
  const auto same = std::find_if(unwritten_gaps_.rbegin(), unwritten_gaps_.rend(),
                                 [&](const Gap& waiting) { return waiting.cause == gap.cause; });
  Gap& grown = same == unwritten_gaps_.rend() ? unwritten_gaps_.back() : *same;
  grown.end_ns = std::max(grown.end_ns, gap.end_ns);
  grown.ticks += gap.ticks;
}

void RecordingFiles::flush_gaps() {
  if (unwritten_gaps_.empty()) {
    return;
  }
  std::string lines;
  for (const Gap& gap : unwritten_gaps_) {
    lines += gap_line(gap);
  }
  gaps_error_ = gaps_.append(lines);
  if (gaps_error_ == 0) {
    unwritten_gaps_.clear();
  }
}

std::string RecordingFiles::gaps_trouble() const {
  const std::string path = recording_stem(path_) + ".gaps.tsv";
  const FileChange change = gaps_.change();
  if (const char* lost = loss_of(change)) {
    return path + ' ' + lost +
           ": the gaps that were in it are gone; the totals and the longest gaps in the metadata "
           "are complete";
  }
  if (unwritten_gaps_.empty()) {
    return {};
  }
  if (change == FileChange::closed) {
    return "gaps cannot be listed: the program has closed the descriptor of " + path +
           ", and the file was moved or removed";
  }
  return system_error("gaps wait in memory, because they cannot be written to " + path, gaps_error_)
      .message;
}

Result<void> RecordingFiles::write_metadata(const ProfilerStats& stats, const char* state) {
  const bool ends = std::string_view(state) != "running";
  if (const FileChange change = rows_.change(); change == FileChange::removed) {
    return ends ? Result<void>(Error{Code::data_loss, path_ + ' ' + loss_of(change), 0})
                : Result<void>();
  }
  const char* const gaps_lost = loss_of(gaps_.change());
  rows_.remove_torn_end();
  gaps_.remove_torn_end();
  flush_gaps();
  if (ends) {
    if (!unwritten_gaps_.empty()) {
      const std::string gaps_path = recording_stem(path_) + ".gaps.tsv";
      return Error{Code::data_loss,
                   "cannot finish " + path_ + ": " + std::to_string(unwritten_gaps_.size()) +
                       " of its gaps could not be written" +
                       (gaps_.change() == FileChange::closed
                            ? ": the program has closed the descriptor of " + gaps_path +
                                  ", and the file was moved or removed"
                            : system_error(" to " + gaps_path, gaps_error_).message),
                   0};
    }
    gaps_.close();
  }
  Result<void> replaced = replace_metadata(stats, state);
  // Not before: a reader takes a process that does not have the file open for one that does not write it any more.
  if (ends) rows_.close();
  ended_ = replaced && ends;
  if (ended_ && gaps_lost != nullptr) {
    return Error{Code::data_loss,
                 recording_stem(path_) + ".gaps.tsv " + gaps_lost +
                     "; the recording itself ended properly: its rows and totals are complete, and "
                     "the metadata list its longest gaps, at most " +
                     std::to_string(kMaxLongestGaps),
                 0};
  }
  return replaced;
}

void RecordingFiles::mark_failed() const {
  // As json_text() writes it. The new text is as long.
  constexpr std::string_view kRunning = "\"state\": \"running\"";
  constexpr std::string_view kFailed = "\"state\": \"failed\" ";
  static_assert(kRunning.size() == kFailed.size());
  const Result<std::string> text = read_file(metadata_path_);
  if (!text || !has_own_metadata()) {
    return;
  }
  const std::size_t at = text->rfind(kRunning);
  if (at == std::string::npos) {
    return;
  }
  const FileDescriptor file(::open(metadata_path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() >= 0) {
    // If this fails, too, the metadata stay as they were.
    static_cast<void>(::pwrite(file.get(), kFailed.data(), kFailed.size(), static_cast<off_t>(at)));
  }
}

void RecordingFiles::end_changed(const ProfilerStats& stats) {
  if (!has_own_metadata()) {
    return;
  }
  gaps_.remove_torn_end();
  flush_gaps();
  gaps_.close();
  // An error leaves the metadata as they were, as for a part that is rotated.
  static_cast<void>(replace_metadata(stats, "ended"));
}

bool RecordingFiles::has_own_metadata() const {
  const Result<std::string> text = read_file(metadata_path_);
  return text && std::hash<std::string>()(*text) == metadata_hash_;
}

void RecordingFiles::describe_scopes(nlohmann::json& metadata) {
  const KeptScopes kept = info_.scopes(scopes_before_);
  scopes_seen_ = kept.trees;
  nlohmann::json trees = trees_json(kept.scopes);
  std::uint64_t left_out = kept.trees - std::min(scopes_before_, kept.trees) - trees.size();
  for (nlohmann::json& tree : trees) {
    if (number_of(tree, "start_ns") + number_of(tree, "duration_ns") < info_.start_monotonic_ns) {
      left_out = 0;  // it is before this recording, and so are the older ones
    } else {
      metadata["scopes"].push_back(std::move(tree));
    }
  }
  if (left_out != 0) {
    metadata["scope_trees_left_out"] = left_out;
  }
}

Result<void> RecordingFiles::replace_metadata(const ProfilerStats& stats, const char* state) {
  nlohmann::json metadata = describe_recording(info_);
  metadata["state"] = state;
  metadata["stats"] = describe_stats(stats);
  metadata["about"] = *about_;
  if (!part_->is_null()) {
    metadata["part"] = *part_;
  }
  if (is_cut_ || !part_->is_null()) {
    for (const StatsMember& figure : kStatsMembers) {
      const bool of_whole = is_cut_ && figure.of_part == StatsOfPart::newest;
      if (of_whole || figure.of_part == StatsOfPart::unknown) metadata["stats"].erase(figure.name);
    }
  }
  nlohmann::json& gaps = metadata["longest_gaps"] = nlohmann::json::array();
  for (const Gap& gap : longest_gaps_) {
    gaps.push_back(describe_gap(gap));
  }
  nlohmann::json& marks = metadata["marks"] = nlohmann::json::array();
  for (const Mark& mark : marks_) {
    marks.push_back({{"name", mark.name}, {"at_ns", mark.at_ns}});
  }
  if (info_.callback_errors) {
    for (const CallbackError& error : info_.callback_errors()) {
      nlohmann::json one = {{"metric", error.metric}, {"count", error.count}, {"what", error.what}};
      if (error.negative) {
        one["negative"] = true;
      }
      if (error.no_value) {
        one["no_value"] = true;
      }
      metadata["callback_errors"].push_back(std::move(one));
    }
  }
  if (info_.scopes) {
    describe_scopes(metadata);
  }
  const std::string text = json_text(metadata, 1) + '\n';
  Result<void> replaced = replace_file(metadata_path_, text);
  if (replaced) {
    metadata_hash_ = std::hash<std::string>()(text);
  }
  return replaced;
}

}  // namespace kymo
