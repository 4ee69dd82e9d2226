#include "daemon/recording/tee_sink.h"

#include <utility>

namespace kymo::daemon {

TeeSink::TeeSink(std::shared_ptr<Sink> cuts, std::shared_ptr<Sink> file)
    : cuts_(std::move(cuts)), file_(std::move(file)) {}

Result<void> TeeSink::open(const RecordingInfo& info) {
  if (Result<void> opened = file_->open(info); !opened) return opened;
  return cuts_->open(info);
}

Result<void> TeeSink::write(const Rows& rows) {
  Result<void> kept = cuts_->write(rows);
  Result<void> written = file_->write(rows);
  return written ? kept : written;
}

void TeeSink::gap(const Gap& gap) {
  file_->gap(gap);
  // Memory has the rows that the file could not keep, and so has no gap there.
  if (gap.cause != MissCause::sink_error) cuts_->gap(gap);
}

void TeeSink::progress(const ProfilerStats& stats) {
  cuts_->progress(stats);
  file_->progress(stats);
}

LostRows TeeSink::lost_rows() const {
  LostRows lost = file_->lost_rows();
  const LostRows snapshots = cuts_->lost_rows();
  if (!lost.text.empty() && !snapshots.text.empty()) lost.text += "; ";
  lost.text += snapshots.text;
  lost.rows += snapshots.rows;
  return lost;
}

Result<void> TeeSink::close(const ProfilerStats& stats) {
  Result<void> kept = cuts_->close(stats);
  Result<void> closed = file_->close(stats);
  return closed ? kept : closed;
}

}  // namespace kymo::daemon
