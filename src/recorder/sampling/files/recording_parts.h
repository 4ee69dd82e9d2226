#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kymo/sink.h"
#include "recorder/sampling/files/contents.h"
#include "recorder/sampling/files/recording_files.h"

namespace kymo {

// The path of part `number` of a recording: NAME.tsv is part 0, then NAME.1.tsv, NAME.2.tsv, ...,
// and with `.tsv.zst` likewise.
std::string part_path(const std::string& path, std::uint64_t number);

// A recording in parts. Each part is a complete recording that names its neighbours. All parts have
// one clock. A part ends when it has reached its size or age. The oldest parts are removed first,
// but never the part that is being written. If the name of a part is taken, its number is skipped.
//
// A part also ends if somebody else has changed its file. This happens if this process was restored
// from an image that is older than the file, or if somebody removes the file. The file then stays
// as it is, and a new part follows: with the next rows, or with the next metadata if rows are gone.
//
// Threads: one at a time.
// Errors:  write() keeps all rows or none. If the next part cannot be begun, this is tried again
//          with the next rows. Until then the present part goes on.
// Bounds:  a part exceeds its size by at most one write(), and all parts exceed their limit by as
//          much.
class RecordingParts {
 public:
  // `earlier`: parts that earlier recordings have left, oldest first. The limit includes them.
  // Errors: those of RecordingFiles::create(); invalid_argument if the limits contradict each
  //         other.
  static Result<RecordingParts> create(const std::string& path, TsvOptions options,
                                       const RecordingInfo& info,
                                       const std::vector<std::string>& earlier = {});

  Result<void> write(const Rows& rows);
  void add_gap(const Gap& gap);
  // `stats` are those of the whole recording.
  Result<void> write_metadata(const ProfilerStats& stats, const char* state);

  // Whether write_metadata() has ended the newest part. See RecordingFiles::ended().
  [[nodiscard]] bool ended() const { return files_.ended(); }

  // What somebody else has removed of the rows that write() had accepted. `verb`: what the
  // recording does in its newest part: "goes on" or "ends".
  // Cost: one fstat(2). Reads the file if it was cut off and the next part cannot be begun.
  [[nodiscard]] LostRows lost_rows(const char* verb) const;
  // What else is wrong: the gaps of the newest part are not listed, another program has moved it, or
  // has written to a part before, or has removed one that had no row. One line; empty: nothing.
  [[nodiscard]] std::string trouble() const;
  // Why a part before did not end properly, such as gaps that reached no file; the first of them.
  [[nodiscard]] const std::string& unfinished_part() const { return unfinished_part_; }

  [[nodiscard]] std::uint64_t bytes_written() const { return closed_bytes_ + files_.bytes(); }
  [[nodiscard]] OutputPlace place() const { return {path_, number_, files_.bytes()}; }

 private:
  struct Closed {
    std::string path;
    std::uint64_t bytes = 0;  // of all three files
  };

  RecordingParts(const std::string& path, const TsvOptions& options, RecordingInfo info,
                 RecordingFiles files);
  void add_closed(const std::string& path);
  [[nodiscard]] bool is_full(const Rows& newest) const;
  [[nodiscard]] ProfilerStats stats_of_part() const;
  Result<void> begin_next_part();
  void end_part(const std::string& next_path);
  // What somebody has removed of the present part.
  struct Gone {
    const char* how = nullptr;  // loss_of()
    std::uint64_t rows = 0;
    Contents left;  // of its file
  };
  [[nodiscard]] Gone gone() const;
  // `lost`, and what is gone of the present part. The text is only the first file and what happened
  // to it.
  [[nodiscard]] LostRows with_present_part(LostRows lost, const Gone& gone) const;
  void count_as_missed(const Gone& gone);
  void remove_oldest();

  std::string path_;
  TsvOptions options_;
  RecordingInfo info_;
  RecordingFiles files_;
  std::uint64_t number_ = 0;
  std::optional<std::string> previous_;  // file name of the part before
  std::deque<Closed> closed_;            // parts that are still kept, oldest first, with `earlier`
  std::uint64_t closed_bytes_ = 0;       // row bytes of all parts before, also of removed ones
  LostRows lost_;                        // in the parts before
  std::string unfinished_part_;
  std::string
      changed_part_;      // for trouble(): the first part that a change ended, and no row is gone
  ProfilerStats latest_;  // of the whole recording
  // Of the present part:
  ProfilerStats at_begin_;  // of the whole recording when it began
  ProfilerStats counted_;   // its rows and missed ticks
  std::optional<std::uint64_t> first_row_ns_;
  std::uint64_t last_row_ns_ = 0;
};

}  // namespace kymo
