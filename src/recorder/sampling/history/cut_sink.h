#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"
#include "recorder/sampling/history/own_columns.h"

namespace kymo {

// Options of a cut, which is a recording that is made from the newest rows in memory. All are
// optional.
struct CutOptions {
  // They replace the columns of the stream with the same names.
  std::shared_ptr<OwnColumns> own_columns{};
  // Called before the files are created, for example to make their folder. If it fails, the cut
  // fails.
  std::function<Result<void>()> prepare{};
  // Called once: when the files exist, or with the reason why they cannot be created.
  std::function<void(const Result<void>& created)> created{};
  // Called once, if the files were created: when the recording is complete, or with the reason why
  // it could not be finished, or data_loss if the disk did not take all of its rows.
  std::function<void(const Result<void>& kept)> over{};
};

// A sink that keeps the newest rows of a stream in fixed memory and cuts recordings out of it. The
// files are like those of make_tsv_sink(), and may contain rows from before the cut was requested.
//
// Each cut has its own thread. Only this thread touches the files of the cut and runs the functions
// of its CutOptions. If a disk does not answer, it delays only the cuts on this disk. Their rows
// wait in memory. Rows that are overwritten there before the disk answers, and
// rows that the disk refuses, are counted as missed and listed as a gap (sink_error).
//
// Threads: the functions of Sink as Sink says; everything else from any thread. Only
//          wait_created(), wait(), close() and the destructor wait for files.
// Memory:  the rows of `keep` at the recording's interval, allocated by open(). While a cut is
//          written, half a megabyte more for it.
// Errors:  if the files of a cut cannot be created or finished, only this cut is given up.
//          failure_of() and wait() say why. The stream goes on. loss_of() tells of rows that are
//          missing in a recording that was finished.
class CutSink : public Sink {
 public:
  using CutId = std::uint64_t;

  // Keeps at least the rows of the last `keep`, or as many as fit into 64 MiB.
  explicit CutSink(std::chrono::nanoseconds keep);
  ~CutSink() override;

  // Begins a recording at `path` (it ends in .tsv and must not exist yet) with the rows from
  // `from_ns` on. Times are on the stream's clock (Profiler::now_ns). `about` is written to the
  // metadata under "about": request, job, target. Returns before the files exist.
  // Errors: failed_precondition before open() and after close(); resource_exhausted if no thread
  //         can be started.
  Result<CutId> begin(std::string path, std::uint64_t from_ns, nlohmann::json about,
                      CutOptions options = {});
  // Adds a named point in time to the metadata ("marks"): a phase of CRIU, or a step of the
  // request.
  void mark(CutId cut, std::string name, std::uint64_t at_ns);
  // The recording takes the rows up to `until_ns` and then finishes by itself. `about` is merged
  // into the `about` of begin().
  void end(CutId cut, std::uint64_t until_ns, nlohmann::json about);
  // Waits until the files of the cut are created, at most `timeout`. Errors: deadline_exceeded, or
  // the reason why they could not be created.
  Result<void> wait_created(CutId cut, std::chrono::milliseconds timeout);
  // Waits until the files of the cut are complete, at most `timeout`. Errors: deadline_exceeded, or
  // the reason why the recording could not be kept. The results of the last thousand cuts are
  // remembered.
  Result<void> wait(CutId cut, std::chrono::milliseconds timeout);
  // Why the recording could not be kept. Returns nothing if it was kept, or if it is not finished
  // yet.
  [[nodiscard]] std::optional<Error> failure_of(CutId cut) const;
  // data_loss if the cut is over and its disk did not take all of its rows, even if the recording
  // was finished: how many rows, and why.
  [[nodiscard]] std::optional<Error> loss_of(CutId cut) const;

  // How far back the kept rows reach at least: `keep`, or less if the memory is too small. 0 unless
  // open.
  [[nodiscard]] std::chrono::nanoseconds kept() const;

  // The kept rows at or after `from_ns`, oldest first, one after the other, at most `most` rows.
  [[nodiscard]] std::vector<std::uint64_t> copy_rows(std::uint64_t from_ns, std::size_t most) const;
  // The remembered gaps that ended after `from_ns`, oldest first.
  [[nodiscard]] std::vector<Gap> gaps_after(std::uint64_t from_ns) const;
  // The description of the stream. Returns nothing while the stream is not open.
  [[nodiscard]] std::optional<RecordingInfo> info() const;

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  // Finishes every cut with the rows that exist, and waits for that.
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo
