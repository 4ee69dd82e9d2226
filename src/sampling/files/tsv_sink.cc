#include "sampling/files/tsv_sink.h"

#include <optional>
#include <string>
#include <utility>

#include "sampling/files/recording_parts.h"

namespace kymo {
namespace {

class TsvSink final : public Sink {
 public:
  TsvSink(std::string path, const TsvOptions& options, std::vector<std::string> earlier)
      : path_(std::move(path)), options_(options), earlier_(std::move(earlier)) {}

  Result<void> open(const RecordingInfo& info) override {
    Result<RecordingParts> parts = RecordingParts::create(path_, options_, info, earlier_);
    if (!parts) {
      return parts.error();
    }
    parts_.emplace(*std::move(parts));
    return {};
  }

  Result<void> write(const Rows& rows) override { return parts_->write(rows); }

  void gap(const Gap& gap) override { parts_->add_gap(gap); }

  void progress(const ProfilerStats& stats) override {
    // The error is ignored: metadata that are a second old also describe the run. The next call
    // tries again, and close() reports the error.
    static_cast<void>(parts_->write_metadata(stats, "running"));
  }

  Result<void> close(const ProfilerStats& stats) override {
    Result<void> ended = parts_->write_metadata(stats, "ended");
    return ended ? ended : unfinished(ended.error(), stats);
  }

  [[nodiscard]] std::uint64_t bytes_written() const override {
    return parts_ ? parts_->bytes_written() : 0;
  }

  [[nodiscard]] OutputPlace output_place() const override {
    return parts_ ? parts_->place() : OutputPlace{path_, 0, 0};
  }

 private:
  [[nodiscard]] Error unfinished(Error cause, const ProfilerStats& stats) const {
    cause.message = "the recording was not finished: " + cause.message + "; the " +
                    std::to_string(stats.rows_written) + " rows written so far are in " + path_ +
                    (parts_->place().file == 0 ? "" : " and the parts after it") + ", " +
                    std::to_string(stats.missed_sink_error) + " could not be written";
    if (cause.code == Code::resource_exhausted) {
      cause.message += ": free space on its disk before you record again";
    }
    return cause;
  }

  std::string path_;
  TsvOptions options_;
  std::vector<std::string> earlier_;
  std::optional<RecordingParts> parts_;
};

}  // namespace

Sink::~Sink() = default;

std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options) {
  return make_tsv_sink(std::move(path), options, {});
}

std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options,
                                    std::vector<std::string> earlier) {
  return std::make_shared<TsvSink>(std::move(path), options, std::move(earlier));
}

}  // namespace kymo
