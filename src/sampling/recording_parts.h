#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kymo/sink.h"
#include "sampling/recording_files.h"

namespace kymo {

// The path of part `number` of a recording: NAME.tsv is part 0, then NAME.1.tsv, NAME.2.tsv, ...,
// and with `.tsv.zst` likewise.
std::string part_path(const std::string& path, std::uint64_t number);

// A recording in parts: each a whole recording of its own that names its neighbours, all on one
// clock. A part ends when it has reached its size or age; the oldest are removed first, never the
// one being written. A number whose name is taken is passed over.
//
// A part ends also where its file was changed by another's hand, as when this process was restored
// from an image that is older than the file: what is there stays, and a new part follows.
//
// Threads: one at a time.
// Errors:  write() keeps all rows or none. A next part that cannot be begun is tried again with the
//          next rows; until then the present one goes on.
// Bounds:  a part exceeds its size by one write() at most, and what is kept its bound by as much.
class RecordingParts {
 public:
  // `earlier`: parts that recordings before this one have left, oldest first; the bound holds over
  // them, too. Errors: those of RecordingFiles::create(); invalid_argument for bounds that
  // contradict.
  static Result<RecordingParts> create(const std::string& path, TsvOptions options,
                                       const RecordingInfo& info,
                                       const std::vector<std::string>& earlier = {});

  Result<void> write(const Rows& rows);
  void add_gap(const Gap& gap);
  // `stats` are those of the whole recording.
  Result<void> write_metadata(const ProfilerStats& stats, const char* state);

  [[nodiscard]] std::uint64_t bytes_written() const { return closed_bytes_ + files_.bytes(); }
  [[nodiscard]] OutputPlace place() const { return {path_, number_, files_.bytes()}; }

 private:
  struct Closed {
    std::string path;
    std::uint64_t bytes = 0;  // with the files beside it
  };

  RecordingParts(std::string path, const TsvOptions& options, RecordingInfo info,
                 RecordingFiles files);
  void add_closed(const std::string& path);
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] ProfilerStats stats_of_part() const;
  Result<void> begin_next_part();
  void end_part(const std::string& next_path);
  void remove_oldest();

  std::string path_;
  TsvOptions options_;
  RecordingInfo info_;
  RecordingFiles files_;
  std::uint64_t number_ = 0;
  std::optional<std::string> previous_;  // the part before: its file's name
  std::deque<Closed> closed_;            // those still kept, oldest first, earlier ones too
  std::uint64_t closed_bytes_ = 0;       // rows of all parts before, removed ones too
  ProfilerStats latest_;                 // of the whole recording
  // Of the present part:
  ProfilerStats at_begin_;  // of the whole recording when it began
  ProfilerStats counted_;   // its rows and missed ticks
  std::optional<std::uint64_t> first_row_ns_;
  std::uint64_t last_row_ns_ = 0;
};

}  // namespace kymo
