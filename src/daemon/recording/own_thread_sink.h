#pragma once

#include <memory>

#include "kymo/sink.h"

namespace kymo::daemon {

// Passes rows to another sink, on a thread of its own, so that a disk that stalls under that sink
// delays its caller at most once, by a tenth of a second. While the disk answers, a write waits for
// the other sink and has its result. While it does not, rows wait in memory, at most 8 MiB of them;
// more are refused.
//
// Threads:   as Sink. The other sink is used by open()'s thread and then by this sink's own.
// Ownership: shares the other sink. If its disk does not answer at the end, its thread is left
//            behind with it.
// Errors:    those of the other sink; resource_exhausted if the memory is full; deadline_exceeded
//            from close() if the disk does not answer within some seconds. Rows that the other sink
//            refuses after their write had to return are a gap there, and are missed in its
//            statistics; close() then fails with data_loss and says how many, and why the first.
class OwnThreadSink : public Sink {
 public:
  explicit OwnThreadSink(std::shared_ptr<Sink> other);
  ~OwnThreadSink() override;

  Result<void> open(const RecordingInfo& info) override;
  Result<void> write(const Rows& rows) override;
  void gap(const Gap& gap) override;
  void progress(const ProfilerStats& stats) override;
  Result<void> close(const ProfilerStats& stats) override;
  // As they were when the other sink last returned.
  [[nodiscard]] std::uint64_t bytes_written() const override;
  [[nodiscard]] OutputPlace output_place() const override;
  [[nodiscard]] LostRows lost_rows() const override;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace kymo::daemon
