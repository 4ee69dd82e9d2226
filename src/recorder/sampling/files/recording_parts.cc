#include "recorder/sampling/files/recording_parts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/absolute_path.h"
#include "base/recording_name.h"
#include "recorder/sampling/files/stats_members.h"

namespace kymo {
namespace {

namespace fs = std::filesystem;

// The number of parts if only keep_bytes is given. With this many, removing one keeps most of the
// rows.
constexpr std::uint64_t kPartsKept = 8;
// How many names in use are skipped before giving up.
constexpr std::uint64_t kNamesTried = 10'000;

std::string name_in_folder(const std::string& path) {
  return fs::path(path).filename();
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

Error refuse_rotation(const std::string& path, const TsvOptions& options) {
  return Error{Code::invalid_argument,
               "cannot record to " + path + ": a part may have at most half of the " +
                   std::to_string(options.keep_bytes) + " bytes that are kept, not " +
                   std::to_string(options.rotate_bytes),
               0};
}

nlohmann::json describe_part(std::uint64_t number, const std::optional<std::string>& previous) {
  nlohmann::json part = {{"number", number}};
  if (previous) {
    part["previous"] = *previous;
  }
  return part;
}

}  // namespace

std::string part_path(const std::string& path, std::uint64_t number) {
  if (number == 0) {
    return path;
  }
  const std::string stem = recording_stem(path);
  return stem + '.' + std::to_string(number) + path.substr(stem.size());
}

Result<RecordingParts> RecordingParts::create(const std::string& path, TsvOptions options,
                                              const RecordingInfo& info,
                                              const std::vector<std::string>& earlier) {
  if (options.rotate_after.count() < 0) {
    return Error{Code::invalid_argument,
                 "cannot record to " + path + ": the time of a part is " +
                     std::to_string(options.rotate_after.count()) + " ns: must be 0 (none) or more",
                 0};
  }
  if (options.rotate_bytes == 0) {
    options.rotate_bytes = options.keep_bytes / kPartsKept;
  }
  if (options.keep_bytes != 0 && options.rotate_bytes > options.keep_bytes / 2) {
    return refuse_rotation(path, options);
  }
  Result<RecordingFiles> files = RecordingFiles::create(path, info, nlohmann::json::object());
  if (!files) {
    return files.error();
  }
  RecordingParts parts(path, options, info, *std::move(files));
  for (const std::string& part : earlier) {
    parts.add_closed(absolute_path(part));
  }
  return parts;
}

RecordingParts::RecordingParts(const std::string& path, const TsvOptions& options,
                               RecordingInfo info, RecordingFiles files)
    : path_(absolute_path(path)),
      options_(options),
      info_(std::move(info)),
      files_(std::move(files)) {}

void RecordingParts::add_closed(const std::string& path) {
  const std::string stem = recording_stem(path);
  closed_.push_back(
      {path, size_of(path) + size_of(stem + ".gaps.tsv") + size_of(stem + ".meta.json")});
}

Result<void> RecordingParts::write(const Rows& rows) {
  // Remove parts here and not after the last write: until now a ring file may have named the part
  // before as its output (Ring::accept_output), and a recovery would have continued that part.
  remove_oldest();
  if (const FileChange change = files_.change(); change != FileChange::none) {
    if (Result<void> begun = begin_next_part(); !begun) {
      Error error = begun.error();
      if (const char* loss = loss_of(change)) {
        error.message = files_.path() + ' ' + loss + "; " + error.message;
      }
      return error;
    }
  }
  if (Result<void> written = files_.append(rows, 0); !written) {
    return written;
  }
  if (rows.count > 0) {
    first_row_ns_ = first_row_ns_.value_or(rows.row(0)[0]);
    last_row_ns_ = rows.row(rows.count - 1)[0];
    counted_.rows_written += rows.count;
  }
  if (is_full(rows)) {
    static_cast<void>(begin_next_part());  // tried again with the next rows
  }
  return {};
}

void RecordingParts::add_gap(const Gap& gap) {
  files_.add_gap(gap);
  counted_.missed_by(gap.cause) += gap.ticks;
}

bool RecordingParts::is_full(const Rows& newest) const {
  if (options_.rotate_bytes != 0 && files_.bytes() + files_.gap_bytes() >= options_.rotate_bytes) {
    return true;
  }
  if (options_.rotate_after.count() <= 0 || newest.count == 0) {
    return false;
  }
  // Parts end between two groups of rows: at the end that is nearest to the time. A row stands for
  // its interval.
  const auto interval = static_cast<std::uint64_t>(info_.interval.count());
  const std::uint64_t age = last_row_ns_ - first_row_ns_.value_or(last_row_ns_) + interval;
  const std::uint64_t group = last_row_ns_ - newest.row(0)[0] + interval;
  return age + group / 2 >= static_cast<std::uint64_t>(options_.rotate_after.count());
}

Result<void> RecordingParts::begin_next_part() {
  const std::string now_path = files_.path();
  for (std::uint64_t number = number_ + 1; number < number_ + kNamesTried; ++number) {
    const std::string next_path = part_path(path_, number);
    Result<RecordingFiles> next =
        RecordingFiles::create(next_path, info_, nlohmann::json::object(),
                               describe_part(number, name_in_folder(now_path)));
    if (next) {
      end_part(next_path);
      next->continue_scopes_of(files_);
      files_ = *std::move(next);
      number_ = number;
      return {};
    }
    if (next.error().code != Code::already_exists) {
      return next.error();
    }
  }
  return Error{Code::already_exists,
               "cannot begin a next part of " + path_ + ": " + std::to_string(kNamesTried) +
                   " names are taken; move the parts away",
               0};
}

void RecordingParts::end_part(const std::string& next_path) {
  const Gone gone = this->gone();
  lost_ = with_present_part(std::move(lost_), gone);
  const FileChange change = files_.change();
  nlohmann::json part = describe_part(number_, previous_);
  part["next"] = name_in_folder(next_path);
  files_.set_part(std::move(part));
  if (change == FileChange::none || change == FileChange::closed) {
    const Result<void> ended = files_.write_metadata(stats_of_part(), "ended");
    if (!ended && unfinished_part_.empty()) {
      unfinished_part_ = ended.error().message;
    }
  } else {
    const char* const loss = loss_of(change);
    if (changed_part_.empty() && (loss == nullptr || counted_.rows_written == 0)) {
      changed_part_ =
          files_.path() +
          (loss != nullptr ? std::string(" ") + loss + ", before it had a row"
                           : " has lines that this recorder did not write: another program has "
                             "written to it, or this process was restored from an older image") +
          "; the rows after are in " + next_path;
    }
    if (gone.rows != 0) count_as_missed(gone);
    files_.end_changed(stats_of_part());
  }
  add_closed(files_.path());
  closed_bytes_ += files_.bytes();
  previous_ = name_in_folder(files_.path());
  at_begin_ = latest_;
  counted_ = {};
  first_row_ns_.reset();
}

RecordingParts::Gone RecordingParts::gone() const {
  const FileChange change = files_.change();
  const char* const how = loss_of(change);
  if (how == nullptr) {
    return {};
  }
  Contents left;
  if (change == FileChange::cut) {
    // Behind the rows that are whole, compressed text may end in the middle of a frame.
    static_cast<void>(contents_of(files_.path(), [&](std::uint64_t time_ns) {
      left = {left.rows + 1, time_ns};
    }));
  }
  return {how, counted_.rows_written - std::min(left.rows, counted_.rows_written), left};
}

LostRows RecordingParts::with_present_part(LostRows lost, const Gone& gone) const {
  if (gone.rows != 0 && lost.rows == 0) {
    lost.text = files_.path() + ' ' + gone.how;
  }
  lost.rows += gone.rows;
  return lost;
}

// One gap lists them, with the ticks between them that other gaps list.
void RecordingParts::count_as_missed(const Gone& gone) {
  const auto interval = static_cast<std::uint64_t>(info_.interval.count());
  const std::uint64_t first =
      gone.left.rows != 0 ? gone.left.last_ns / interval + 1 : first_row_ns_.value_or(0) / interval;
  files_.add_gap({first * interval, (last_row_ns_ / interval + 1) * interval, gone.rows,
                  MissCause::sink_error});
  counted_.rows_written -= gone.rows;
  counted_.missed_sink_error += gone.rows;
  last_row_ns_ = gone.left.rows != 0 ? gone.left.last_ns : first_row_ns_.value_or(0);
}

LostRows RecordingParts::lost_rows(const char* verb) const {
  LostRows lost = with_present_part(lost_, gone());
  if (lost.rows != 0) {
    lost.text += ": of the rows that were written, " + std::to_string(lost.rows) + " are gone";
    if (number_ != 0) {
      lost.text += std::string("; the recording ") + verb + " in " + files_.path();
    }
  }
  return lost;
}

std::string RecordingParts::trouble() const {
  std::string text = files_.gaps_trouble();
  if (!changed_part_.empty()) {
    text += (text.empty() ? "" : "; ") + changed_part_;
  }
  if (const std::string now = files_.moved_to(); !now.empty()) {
    const std::string stem = recording_stem(now);
    text += text.empty() ? "" : "; ";
    text += files_.path() + " was moved to " + now +
            " while it was recorded: its rows go on there; readers look for its gaps and metadata "
            "in " +
            stem + ".gaps.tsv and " + stem + ".meta.json";
  }
  return text;
}

void RecordingParts::remove_oldest() {
  if (options_.keep_bytes == 0) {
    return;
  }
  std::uint64_t kept = std::max(options_.rotate_bytes, files_.bytes() + files_.gap_bytes());
  for (const Closed& part : closed_) {
    kept += part.bytes;
  }
  while (!closed_.empty() && kept > options_.keep_bytes) {
    const std::string stem = recording_stem(closed_.front().path);
    ::unlink(closed_.front().path.c_str());
    ::unlink((stem + ".gaps.tsv").c_str());
    ::unlink((stem + ".meta.json").c_str());
    kept -= closed_.front().bytes;
    closed_.pop_front();
  }
}

ProfilerStats RecordingParts::stats_of_part() const {
  ProfilerStats stats = counted_;
  for (const StatsMember& figure : kStatsMembers) {
    const std::uint64_t newest = latest_.*figure.value;
    if (figure.of_part == StatsOfPart::growth) {
      stats.*figure.value = newest - at_begin_.*figure.value;
    } else if (figure.of_part == StatsOfPart::newest) {
      stats.*figure.value = newest;
    }
  }
  stats.rows_captured = stats.rows_written + stats.missed_sink_error;
  stats.ticks_due = stats.rows_written + stats.missed();
  stats.bytes_written = files_.bytes();
  stats.duration_ns = last_row_ns_ - first_row_ns_.value_or(last_row_ns_);
  return stats;
}

Result<void> RecordingParts::write_metadata(const ProfilerStats& stats, const char* state) {
  latest_ = stats;
  if (const FileChange change = files_.change();
      change != FileChange::none && change != FileChange::closed) {
    // Begin the new part at once if rows are gone, so that what is said about it does not change.
    // Otherwise, or if this fails, it begins with the next rows.
    if (loss_of(change) != nullptr && std::string_view(state) == "running") {
      static_cast<void>(begin_next_part());
    }
    return {};
  }
  return files_.write_metadata(number_ == 0 ? stats : stats_of_part(), state);
}

}  // namespace kymo
