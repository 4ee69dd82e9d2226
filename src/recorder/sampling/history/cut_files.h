#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"
#include "recorder/sampling/files/recording_files.h"
#include "recorder/sampling/history/own_columns.h"

namespace kymo {

// What the thread of a cut takes from the stream in one step. Times are on the stream's clock.
struct CutBatch {
  std::vector<std::uint64_t> words;  // rows, one after the other
  std::vector<Gap> gaps;             // inside the cut
  std::vector<Mark> marks;
  std::vector<nlohmann::json> about;  // to be merged, oldest first
  ProfilerStats timing;               // since the cut began
  std::uint64_t end_ns = 0;           // time that the recording has reached
  bool describe = false;              // write the metadata
  bool last = false;
};

// The files of a recording that is cut out of a stream, and what has been written to them. The
// recording's clock begins at `base_ns` of the stream's clock.
//
// Threads: one at a time. It waits for files; CutSink says which functions must not.
class CutFiles {
 public:
  // `stream` describes the stream. Errors: those of RecordingFiles::create().
  static Result<CutFiles> create(const std::string& path, const RecordingInfo& stream,
                                 std::uint64_t base_ns, nlohmann::json about,
                                 std::shared_ptr<OwnColumns> own_columns);

  // Writes a batch. Rows that the disk refuses are counted as missed and listed as a gap.
  // Errors: only for the last batch, if the recording cannot be finished.
  Result<void> write(CutBatch batch);
  // data_loss if the disk did not take all rows so far: how many of them, and why.
  [[nodiscard]] std::optional<Error> loss() const;

 private:
  CutFiles(RecordingFiles files, const RecordingInfo& stream, std::uint64_t base_ns,
           std::shared_ptr<OwnColumns> own_columns, const std::vector<std::size_t>& own_indexes);
  void write_rows(const std::vector<std::uint64_t>& words);
  [[nodiscard]] Rows own_rows(const Rows& rows);
  void add_gap(const Gap& gap);
  void add_refused_gap();
  [[nodiscard]] ProfilerStats stats_of(const CutBatch& batch) const;

  RecordingFiles files_;
  std::uint64_t base_ns_;
  std::uint64_t interval_ns_;
  std::uint64_t start_monotonic_ns_;  // of the stream
  std::size_t stride_;
  std::shared_ptr<OwnColumns> own_columns_;  // null: none
  std::vector<OwnColumns::Place> places_;
  std::vector<std::uint64_t> own_words_;  // rows with the own columns, while they are written
  Gap refused_{0, 0, 0, MissCause::sink_error};  // rows that the disk refused; 0 ticks: none
  std::string first_refusal_;                    // why the disk refused rows the first time
  ProfilerStats counted_;                        // rows and missed ticks
};

}  // namespace kymo
