#include "recorder/sampling/history/cut_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace kymo {

Result<CutFiles> CutFiles::create(const std::string& path, const RecordingInfo& stream,
                                  std::uint64_t base_ns, nlohmann::json about,
                                  std::shared_ptr<OwnColumns> own_columns) {
  RecordingInfo info = stream;
  info.start_unix_ns += static_cast<std::int64_t>(base_ns);
  info.start_monotonic_ns += base_ns;
  OwnColumns::Chosen own;
  if (own_columns != nullptr) {
    own = own_columns->chosen(stream.columns);
    info.columns = own.columns;
  }
  Result<RecordingFiles> files = RecordingFiles::create(path, info, std::move(about));
  if (!files) {
    return files.error();
  }
  files->set_cut();
  return CutFiles(*std::move(files), stream, base_ns, std::move(own_columns), own.indexes);
}

CutFiles::CutFiles(RecordingFiles files, const RecordingInfo& stream, std::uint64_t base_ns,
                   std::shared_ptr<OwnColumns> own_columns,
                   const std::vector<std::size_t>& own_indexes)
    : files_(std::move(files)),
      base_ns_(base_ns),
      interval_ns_(static_cast<std::uint64_t>(stream.interval.count())),
      start_monotonic_ns_(stream.start_monotonic_ns),
      stride_(stream.columns.size() + 1),
      own_columns_(std::move(own_columns)) {
  for (const std::size_t index : own_indexes) {
    places_.push_back({index, places_.size() + 1});
  }
}

Result<void> CutFiles::write(CutBatch batch) {
  for (Mark& mark : batch.marks) {
    mark.at_ns -= std::min(mark.at_ns, base_ns_);
    files_.add_mark(std::move(mark));
  }
  for (const nlohmann::json& about : batch.about) {
    files_.merge_about(about);
  }
  for (const Gap& gap : batch.gaps) {
    add_gap(gap);
  }
  write_rows(batch.words);
  if (batch.last) {
    add_refused_gap();
  }
  if (!batch.describe && !batch.last) {
    return {};
  }
  if (!batch.last) {
    // A later batch writes the metadata again.
    static_cast<void>(files_.write_metadata(stats_of(batch), "running"));
    return {};
  }
  const bool has_no_row = counted_.rows_written == 0 && counted_.missed_sink_error != 0;
  Result<void> written = files_.write_metadata(stats_of(batch), has_no_row ? "failed" : "ended");
  if (!written) {
    files_.mark_failed();
  }
  return written;
}

std::optional<Error> CutFiles::loss() const {
  const std::uint64_t lost = counted_.missed_sink_error + refused_.ticks;
  if (lost == 0) {
    return std::nullopt;
  }
  return Error{Code::data_loss,
               files_.path() + " lacks " + std::to_string(lost) + " of " +
                   std::to_string(lost + counted_.rows_written) + " rows: " +
                   (first_refusal_.empty()
                        ? "newer rows took their place in memory before they were written, because "
                          "the disk or the machine was too slow"
                        : first_refusal_),
               0};
}

// The rows with the own columns in place of those of the stream. Valid until the next call.
Rows CutFiles::own_rows(const Rows& rows) {
  const std::size_t stride = places_.size() + 1;
  own_words_.resize(rows.count * stride);
  for (std::size_t i = 0; i < rows.count; ++i) {
    own_words_[i * stride] = rows.row(i)[0];
  }
  own_columns_->overlay(own_words_, stride, places_, start_monotonic_ns_);
  return {own_words_.data(), rows.count, stride};
}

void CutFiles::write_rows(const std::vector<std::uint64_t>& words) {
  const Rows rows{words.data(), words.size() / stride_, stride_};
  if (rows.count == 0) {
    return;
  }
  const Result<void> appended =
      files_.append(own_columns_ != nullptr ? own_rows(rows) : rows, base_ns_);
  if (appended) {
    add_refused_gap();
    counted_.rows_written += rows.count;
    return;
  }
  if (first_refusal_.empty()) {
    first_refusal_ = appended.error().message;
  }
  const std::uint64_t first_tick = rows.row(0)[0] / interval_ns_;
  const std::uint64_t last_tick = rows.row(rows.count - 1)[0] / interval_ns_;
  if (refused_.ticks == 0) {
    refused_.start_ns = first_tick * interval_ns_;
  }
  refused_.end_ns = (last_tick + 1) * interval_ns_;
  refused_.ticks += rows.count;
}

void CutFiles::add_refused_gap() {
  if (refused_.ticks != 0) {
    add_gap(refused_);
    refused_.ticks = 0;
  }
}

void CutFiles::add_gap(const Gap& gap) {
  const std::uint64_t start_ns = std::max(gap.start_ns, base_ns_);
  files_.add_gap({start_ns - base_ns_, gap.end_ns - base_ns_, gap.ticks, gap.cause});
  counted_.missed_by(gap.cause) += gap.ticks;
}

ProfilerStats CutFiles::stats_of(const CutBatch& batch) const {
  ProfilerStats stats = batch.timing;
  stats.duration_ns = batch.end_ns - std::min(batch.end_ns, base_ns_);
  stats.rows_written = counted_.rows_written;
  stats.missed_late = counted_.missed_late;
  stats.missed_ring_full = counted_.missed_ring_full;
  stats.missed_sink_error = counted_.missed_sink_error + refused_.ticks;
  stats.missed_frozen = counted_.missed_frozen;
  stats.rows_captured = stats.rows_written + stats.missed_sink_error;
  stats.ticks_due = stats.rows_written + stats.missed();
  stats.bytes_written = files_.bytes();
  return stats;
}

}  // namespace kymo
