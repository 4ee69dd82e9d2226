#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"
#include "recorder/sampling/files/append_file.h"
#include "recorder/sampling/files/output_file.h"
#include "recorder/sampling/files/tsv_format.h"

namespace kymo {

// A named point in time, on the recording's own clock.
struct Mark {
  std::string name;
  std::uint64_t at_ns = 0;
};

// The first line of NAME.gaps.tsv, and the line of a gap.
inline constexpr std::string_view kGapsHeader = "Start (ns)\tEnd (ns)\tTicks\tCause\n";
std::string gap_line(const Gap& gap);
// The number of gaps that the metadata list.
inline constexpr std::size_t kMaxLongestGaps = 100;

// Errors: invalid_argument if `path` does not have the ending of a recording.
Result<void> check_recording_name(const std::string& path);

// The three files of a recording (docs/formats.md): NAME.tsv or NAME.tsv.zst, NAME.gaps.tsv,
// NAME.meta.json.
//
// Threads: one at a time.
// Errors:  append() keeps all of its rows or none: it removes a part that was written, so that the
//          file always parses. A failed write of gaps or metadata is tried again with the next one.
// Memory:  fixed by create(); the list of longest gaps is bounded.
class RecordingFiles {
 public:
  // Creates the files. `path` ends in ".tsv" or ".tsv.zst". `part`: the number and the neighbours
  // of this part, if the recording has several (sampling/files/recording_parts.h). A relative path
  // is that of the working directory of this call, also for what is written later.
  // Errors: already_exists; not_found (no such folder); invalid_argument (another ending);
  //         permission_denied; unimplemented (no zstd).
  static Result<RecordingFiles> create(const std::string& path, const RecordingInfo& info,
                                       nlohmann::json about);
  static Result<RecordingFiles> create(const std::string& path, const RecordingInfo& info,
                                       nlohmann::json about, nlohmann::json part);

  // Appends rows; `base_ns` is subtracted from their times.
  Result<void> append(const Rows& rows, std::uint64_t base_ns);
  // Adds a line to the gaps file, and the gap to the longest gaps of the metadata. While the gaps
  // file cannot be written, the lines wait in fixed memory. If this memory is full, gaps of one
  // cause are merged.
  void add_gap(const Gap& gap);
  void add_mark(Mark mark) { marks_.push_back(std::move(mark)); }
  // Merges these members into "about".
  void merge_about(const nlohmann::json& about);
  void set_part(nlohmann::json part);
  // The part goes on after `before`, which has ended: it has no scopes that are there.
  void continue_scopes_of(const RecordingFiles& before) { scopes_before_ = before.scopes_seen_; }
  // The rows are cut out of a longer recording: the recorder does not know which of its figures
  // belong to them, as for a part.
  void set_cut() { is_cut_ = true; }
  // Replaces the metadata. `state` is "running", "ended", or "failed": it has ended, and the disk
  // has taken none of its rows. For the latter two, the other files are closed first: when a reader sees
  // them, nothing writes to the files any more.
  // Errors: those of replacing a file; data_loss if gaps still wait for the disk at the end. The
  //         metadata then stays "running". Also data_loss if somebody else has removed the rows or
  //         the list of gaps, at the end. Metadata are not written for rows that are gone.
  Result<void> write_metadata(const ProfilerStats& stats, const char* state);

  // If write_metadata() could not end the recording: changes only the state in the metadata, to
  // "failed", in place. That takes no space, so a full disk allows it. Changes nothing if somebody
  // else has removed or replaced the metadata.
  void mark_failed() const;
  // Marks the recording as ended although somebody else has removed, cut off or written to its rows.
  // `stats` do not count rows that are gone as written. Writes nothing if the metadata are not those
  // that this object wrote last: they were removed, or another run of this process goes on with them.
  void end_changed(const ProfilerStats& stats);

  [[nodiscard]] std::uint64_t bytes() const { return rows_.size(); }
  [[nodiscard]] std::uint64_t gap_bytes() const { return gaps_.size(); }
  // Whether write_metadata() has ended the recording. Also true if it has told of a lost list of
  // gaps.
  [[nodiscard]] bool ended() const { return ended_; }
  // What somebody else has done to the rows.
  [[nodiscard]] FileChange change() const { return rows_.change(); }
  // Why gaps are not, or not any more, in the list of gaps; one line for a person. Empty: they are.
  [[nodiscard]] std::string gaps_trouble() const;
  // AppendFile::moved_to() of the rows.
  [[nodiscard]] std::string moved_to() const { return rows_.moved_to(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RecordingFiles(const std::string& path, RecordingInfo info, nlohmann::json about, OutputFile rows,
                 AppendFile gaps);
  void keep_unwritten(const Gap& gap);
  void flush_gaps();
  [[nodiscard]] bool has_own_metadata() const;
  void describe_scopes(nlohmann::json& metadata);
  [[nodiscard]] Result<void> replace_metadata(const ProfilerStats& stats, const char* state);

  std::string path_;
  std::string metadata_path_;
  RecordingInfo info_;
  std::shared_ptr<nlohmann::json> about_;  // not shared; never null, like part_
  OutputFile rows_;
  AppendFile gaps_;
  TsvFormatter formatter_;
  std::shared_ptr<nlohmann::json> part_;  // JSON's null: the recording has one part
  std::vector<Gap> unwritten_gaps_;       // not written yet, oldest first
  int gaps_error_ = 0;                    // errno, while gaps are not written
  std::vector<Gap> longest_gaps_;         // longest first
  std::vector<Mark> marks_;
  std::uint64_t scopes_before_ = 0;  // the trees that the parts before have
  std::uint64_t scopes_seen_ = 0;    // the trees that were given when the metadata was written
  std::size_t metadata_hash_ = 0;    // of the metadata that were written last
  bool ended_ = false;
  bool is_cut_ = false;
};

}  // namespace kymo
