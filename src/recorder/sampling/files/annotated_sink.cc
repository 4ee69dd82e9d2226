#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/file.h"
#include "base/quiet_thread.h"
#include "kymo/sink.h"
#include "recorder/sampling/files/annotated_format.h"
#include "recorder/sampling/files/append_file.h"
#include "recorder/sampling/files/sink_in_use.h"
#include "recorder/sampling/files/tsv_format.h"

namespace kymo {
namespace {

// A descriptor that belongs to somebody else, such as that of the log. What a failed write has
// written cannot be removed, so the next write begins on a new line.
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) {}
  int append(std::string_view text) {
    std::size_t written = 0;
    if (torn_) {
      if (const int error = write_all(fd_, "\n", &written); error != 0) {
        return error;
      }
      ++size_;
      torn_ = false;
    }
    const int error = write_all(fd_, text, &written);
    torn_ = error != 0 && written > 0;
    size_ += written;
    return error;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  int fd_;
  bool torn_ = false;
  std::uint64_t size_ = 0;
};

class AnnotatedSink final : public Sink {
 public:
  AnnotatedSink(std::string path, int fd, AnnotatedFormat format)
      : path_(std::move(path)), fd_(fd), format_(format) {}

  Result<void> open(const RecordingInfo& info) override {
    if (open_.exchange(true, std::memory_order_acquire)) {  // pairs with the store of closed()
      return sink_in_use("cannot record to " + name());
    }
    const WriteSignalsBlocked no_signals;
    Result<void> opened = begin(info);
    return opened ? opened : closed(std::move(opened));
  }

  Result<void> write(const Rows& rows) override {
    if (Result<void> there = still_there(); !there) {
      return there;
    }
    const LossyLines lossy_before = lossy_;
    const std::uint64_t bytes_before = bytes_written();
    for (std::size_t first = 0; first < rows.count; first += formatter_->capacity()) {
      const std::size_t count = std::min(formatter_->capacity(), rows.count - first);
      const Rows part{rows.data + first * rows.stride, count, rows.stride};
      if (Result<void> written = put(formatter_->format(part, 0)); !written) {
        if (auto* file = std::get_if<AppendFile>(&*output_);
            file != nullptr && file->size() > bytes_before) {
          file->cut_back_to(bytes_before);
          lossy_ = lossy_before;
        }
        return written;
      }
    }
    return {};
  }

  Result<void> close(const ProfilerStats& stats) override {
    if (Result<void> there = still_there(); !there) {
      return closed(std::move(there));
    }
    const WriteSignalsBlocked no_signals;
    Result<void> written = put(annotated_stats(info_, stats));
    if (written && format_ == AnnotatedFormat::lossy) {
      written = append(lossy_.closing());
    }
    return closed(std::move(written));
  }

  [[nodiscard]] std::uint64_t bytes_written() const override {
    return output_ ? std::visit([](const auto& output) { return output.size(); }, *output_) : 0;
  }
  // No file: the rows of a ring go to a recording of their own (kymo recover --output).
  [[nodiscard]] OutputPlace output_place() const override { return {"", 0, bytes_written()}; }

 private:
  [[nodiscard]] std::string name() const { return path_.empty() ? "the log stream" : path_; }
  Result<void> closed(Result<void> outcome) {
    open_.store(false, std::memory_order_release);
    return outcome;
  }
  [[nodiscard]] Result<void> still_there() const {
    const auto* file = std::get_if<AppendFile>(&*output_);
    if (const char* loss = file == nullptr ? nullptr : loss_of(file->change())) {
      return Error{Code::data_loss, path_ + ' ' + loss + ": record to another file", 0};
    }
    return {};
  }
  Result<void> begin(const RecordingInfo& info) {
    info_ = info;
    if (path_.empty()) {
      output_.emplace(std::in_place_type<Stream>, fd_);
    } else {
      Result<AppendFile> file = AppendFile::create(path_);
      if (!file) {
        return file.error();
      }
      output_.emplace(std::in_place_type<AppendFile>, *std::move(file));
    }
    const std::size_t stride = info.columns.size() + 1;
    formatter_.emplace(stride, rows_a_buffer(stride));
    return put(annotated_header(info, format_));
  }
  Result<void> append(std::string_view text) {
    const int error = std::visit([&](auto& output) { return output.append(text); }, *output_);
    if (error != 0) {
      return system_error((path_.empty() ? "cannot write to " : "cannot write ") + name(), error);
    }
    return {};
  }
  Result<void> put(std::string_view lines) {
    if (format_ == AnnotatedFormat::plain) {
      return append(lines);
    }
    Result<void> written = append(lossy_.wrap(lines));
    if (written) {
      lossy_.accept();
    }
    return written;
  }

  std::string path_;  // empty: a stream
  int fd_;
  AnnotatedFormat format_;
  RecordingInfo info_;
  std::optional<std::variant<AppendFile, Stream>> output_;
  std::optional<TsvFormatter> formatter_;
  LossyLines lossy_;
  std::atomic<bool> open_{false};
};

}  // namespace

std::shared_ptr<Sink> make_annotated_sink(std::string path, AnnotatedFormat format) {
  return std::make_shared<AnnotatedSink>(std::move(path), -1, format);
}

std::shared_ptr<Sink> make_annotated_sink(int fd, AnnotatedFormat format) {
  return std::make_shared<AnnotatedSink>(std::string(), fd, format);
}

}  // namespace kymo
