#pragma once

#include <memory>

#include "kymo/sink.h"

namespace kymo::daemon {

// Passes rows to the memory from which recordings are cut (`cuts`) and to the daemon-wide file.
// The memory gets every row even if writing the file fails, so that a full disk does not damage
// the recordings of requests.
//
// Threads:   as Sink.
// Ownership: shares both.
// Errors:    those of the file; if the file has none, those of `cuts`.
class TeeSink : public Sink {
 public:
  TeeSink(std::shared_ptr<Sink> cuts, std::shared_ptr<Sink> file);

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  Result<void> close(const ProfilerStats& stats) override;
  [[nodiscard]] std::uint64_t bytes_written() const override { return file_->bytes_written(); }
  [[nodiscard]] OutputPlace output_place() const override { return file_->output_place(); }
  [[nodiscard]] LostRows lost_rows() const override;

 private:
  const std::shared_ptr<Sink> cuts_;
  const std::shared_ptr<Sink> file_;
};

}  // namespace kymo::daemon
