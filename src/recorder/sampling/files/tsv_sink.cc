#include "recorder/sampling/files/tsv_sink.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "base/human.h"
#include "base/quiet_thread.h"
#include "recorder/sampling/files/recording_parts.h"
#include "recorder/sampling/files/sink_in_use.h"

namespace kymo {
namespace {

// The texts that are not empty, as one line.
std::string joined(std::initializer_list<std::string> texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += all.empty() || text.empty() ? "" : "; ";
    all += text;
  }
  return all;
}

// What to do before the next recording if the last one could not be finished; may be empty.
const char* advice_on(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return ": free space on its disk before you record again";
    case EMFILE:
      return ": the program has as many descriptors open as it may; close some, or raise its limit "
             "(RLIMIT_NOFILE), before you record again";
    case ENFILE:
      return ": all processes together have as many files open as the system allows "
             "(/proc/sys/fs/file-max); close some before you record again";
    default:
      return "";
  }
}

class TsvSink final : public Sink {
 public:
  TsvSink(std::string path, const TsvOptions& options, std::vector<std::string> earlier)
      : path_(std::move(path)), options_(options), earlier_(std::move(earlier)) {}

  Result<void> open(const RecordingInfo& info) override {
    if (open_.exchange(true, std::memory_order_acquire)) {  // pairs with the store in close()
      return sink_in_use("cannot record to " + path_);
    }
    if (Result<void> valid = check_rotation(info); !valid) {
      open_.store(false, std::memory_order_release);
      return valid;
    }
    const WriteSignalsBlocked no_signals;
    Result<RecordingParts> parts = RecordingParts::create(path_, options_, info, earlier_);
    if (!parts) {
      open_.store(false, std::memory_order_release);
      return parts.error();
    }
    parts_.emplace(*std::move(parts));
    return {};
  }

  [[nodiscard]] std::chrono::nanoseconds wants_rows_every() const override {
    return options_.rotate_after;
  }

  Result<void> write(const Rows& rows) override { return parts_->write(rows); }

  void gap(const Gap& gap) override { parts_->add_gap(gap); }

  void progress(const ProfilerStats& stats) override {
    // The error is ignored: metadata that are a second old also describe the run. The next call
    // tries again, and close() reports the error.
    static_cast<void>(parts_->write_metadata(stats, "running"));
  }

  Result<void> close(const ProfilerStats& stats) override {
    const WriteSignalsBlocked no_signals;
    Result<void> ended = parts_->write_metadata(stats, "ended");
    std::string lost = joined({parts_->lost_rows("ends").text, parts_->unfinished_part()});
    open_.store(false, std::memory_order_release);
    if (!ended) {
      return parts_->ended() ? ended.error() : unfinished(ended.error(), stats);
    }
    return lost.empty() ? Result<void>() : Error{Code::data_loss, std::move(lost), 0};
  }

  [[nodiscard]] std::uint64_t bytes_written() const override {
    return parts_ ? parts_->bytes_written() : 0;
  }

  [[nodiscard]] LostRows lost_rows() const override {
    if (!parts_) {
      return {};
    }
    LostRows lost = parts_->lost_rows("goes on");
    lost.text = joined({lost.text, parts_->unfinished_part(), parts_->trouble()});
    return lost;
  }

  [[nodiscard]] OutputPlace output_place() const override {
    return parts_ ? parts_->place() : OutputPlace{path_, 0, 0};
  }

 private:
  // A shorter part would cost more for its files than for its rows.
  [[nodiscard]] Result<void> check_rotation(const RecordingInfo& info) const {
    const std::chrono::nanoseconds least = std::max(TsvOptions::kMinRotateAfter, info.interval);
    if (options_.rotate_after.count() <= 0 || options_.rotate_after >= least) {
      return {};
    }
    return Error{Code::invalid_argument,
                 "cannot record to " + path_ +
                     ": rotate_after = " + human::duration(options_.rotate_after) +
                     ": must be at least " + human::duration(least) +
                     (least == info.interval ? ", the interval between two rows" : ""),
                 0};
  }

  [[nodiscard]] Error unfinished(Error cause, const ProfilerStats& stats) const {
    cause.message = "the recording was not finished: " + cause.message + "; the " +
                    std::to_string(stats.rows_written) + " rows written so far are in " +
                    parts_->place().path +
                    (parts_->place().file == 0 ? "" : " and the parts after it");
    cause.message += advice_on(cause.errno_value);
    return cause;
  }

  std::string path_;
  TsvOptions options_;
  std::vector<std::string> earlier_;
  std::atomic<bool> open_{false};
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
