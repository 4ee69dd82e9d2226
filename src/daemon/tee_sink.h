#pragma once

#include <memory>

#include "kymo/sink.h"

namespace kymo::daemon {

// Sends a stream to the requests' history and to the daemon-wide file. The history gets every row
// also while the file's disk fails: a full disk under the one costs no request its recording.
//
// Threads: as Sink. Ownership: shares both. Errors: the file's; the history's where it fails as
// well.
class TeeSink : public Sink {
 public:
  TeeSink(std::shared_ptr<Sink> history, std::shared_ptr<Sink> file);

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  Result<void> close(const ProfilerStats& stats) override;
  [[nodiscard]] std::uint64_t bytes_written() const override { return file_->bytes_written(); }
  [[nodiscard]] OutputPlace output_place() const override { return file_->output_place(); }

 private:
  const std::shared_ptr<Sink> history_;
  const std::shared_ptr<Sink> file_;
};

}  // namespace kymo::daemon
