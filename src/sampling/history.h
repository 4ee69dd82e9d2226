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
#include "sampling/own_columns.h"

namespace kymo {

// What a recording that is cut out of a history may have besides; each may be left out.
struct CutOptions {
  // Stand in place of the stream's columns of the same names.
  std::shared_ptr<OwnColumns> own_columns{};
  // Called before the files are created, such as to make their folder. An error is the cut's.
  std::function<Result<void>()> prepare{};
  // Told once that the files are there, or why they cannot be created.
  std::function<void(const Result<void>& created)> created{};
};

// A sink that keeps the newest rows of a stream in fixed memory and cuts recordings out of it:
// files like those of make_tsv_sink(), with rows from before the cut was asked for.
//
// Each cut has a thread of its own, which alone touches its files and runs the functions of its
// CutOptions. A disk that stands still therefore holds up its own cuts and nobody else. Its rows
// wait in the memory of the history; those that are overwritten there before the disk goes on are
// counted as missed and listed as a gap (sink_error), and so are rows that the disk refuses.
//
// Threads:   the Sink part as Sink says; everything else from any thread.
//            Only wait(), close() and the destructor wait for files; no other member ever does.
// Memory:    the rows of `keep` at the recording's interval, allocated by open(); while a cut is
//            written, half a megabyte for it.
// Errors:    a cut whose files cannot be created or finished is given up alone; failure_of() and
//            wait() say why. The stream goes on.
class History : public Sink {
 public:
  using CutId = std::uint64_t;

  // Keeps at least the rows of the last `keep`.
  explicit History(std::chrono::nanoseconds keep);
  ~History() override;

  // Begins a recording at `path` (ending in .tsv, not yet there) with the rows from `from_ns` on,
  // times on the stream's clock (Profiler::now_ns). `about` stands in its metadata under "about":
  // request, job, target. Returns before the files are there. Errors: failed_precondition before
  // open(); resource_exhausted: no more threads.
  Result<CutId> begin(std::string path, std::uint64_t from_ns, nlohmann::json about,
                      CutOptions options = {});
  // Adds a named instant to the metadata ("marks"): a phase of CRIU, a step of the request.
  void mark(CutId cut, std::string name, std::uint64_t at_ns);
  // The recording takes the rows up to `until_ns` and then finishes by itself; `about` is merged
  // into what begin() was given.
  void end(CutId cut, std::uint64_t until_ns, nlohmann::json about);
  // Waits until the cut's files are created, at most `timeout`. Errors: deadline_exceeded, or why
  // they could not be.
  Result<void> wait_created(CutId cut, std::chrono::milliseconds timeout);
  // Waits until the cut's files are whole, at most `timeout`. Errors: deadline_exceeded, or why the
  // recording could not be kept. The outcomes of the last thousand cuts are remembered.
  Result<void> wait(CutId cut, std::chrono::milliseconds timeout);
  // Why the recording could not be kept; none: it could, or goes on.
  [[nodiscard]] std::optional<Error> failure_of(CutId cut) const;

  // The time that the rows span which are kept at least, known once open: `keep`, or less where
  // that did not fit.
  [[nodiscard]] std::chrono::nanoseconds kept() const;

  // The oldest rows at or after `from_ns` that are kept, at most `most`, one after the other.
  [[nodiscard]] std::vector<std::uint64_t> copy_rows(std::uint64_t from_ns, std::size_t most) const;
  // The gaps that ended after `from_ns` and are remembered, oldest first.
  [[nodiscard]] std::vector<Gap> gaps_after(std::uint64_t from_ns) const;
  // What the stream is of; none while it is not open.
  [[nodiscard]] std::optional<RecordingInfo> info() const;

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  // Finishes every cut with the rows there are, and waits for that.
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo
