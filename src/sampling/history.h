#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo {

// A sink that keeps the newest rows of a stream in fixed memory and cuts recordings out of it:
// files like those of make_tsv_sink(), with rows from before the cut was asked for.
//
// Threads:   the Sink part as Sink says; begin(), mark(), end() and wait() from any thread.
// Memory:    the rows of `keep` at the recording's interval, allocated by open().
// Errors:    a cut that cannot be written is given up alone; wait() returns why. The stream goes
// on.
class History : public Sink {
 public:
  using CutId = std::uint64_t;

  // Keeps at least the rows of the last `keep`.
  explicit History(std::chrono::nanoseconds keep);
  ~History() override;

  // Begins a recording at `path` (ending in .tsv, not yet there) with the rows from `from_ns` on,
  // times on the stream's clock (Profiler::now_ns). `about` stands in its metadata under "about":
  // request, job, target. Errors: failed_precondition before open(), and those of creating the
  // file.
  Result<CutId> begin(std::string path, std::uint64_t from_ns, nlohmann::json about);
  // Adds a named instant to the metadata ("marks"): a phase of CRIU, a step of the request.
  void mark(CutId cut, std::string name, std::uint64_t at_ns);
  // The recording takes the rows up to `until_ns` and then finishes by itself; `about` is merged
  // into what begin() was given.
  void end(CutId cut, std::uint64_t until_ns, nlohmann::json about);
  // Outcomes are kept of the last thousand.
  // Waits until the cut's files are whole, at most `timeout`. Errors: deadline_exceeded, or why the
  // recording could not be kept.
  Result<void> wait(CutId cut, std::chrono::milliseconds timeout);

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
  // Finishes every cut with the rows there are.
  Result<void> close(const ProfilerStats& stats) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kymo
