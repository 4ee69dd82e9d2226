#include <optional>
#include <string>
#include <utility>

#include "kymo/sink.h"
#include "sampling/recording_files.h"

namespace kymo {
namespace {

class TsvSink final : public Sink {
 public:
  explicit TsvSink(std::string path) : path_(std::move(path)) {}

  Result<void> open(const RecordingInfo& info) override {
    Result<RecordingFiles> files = RecordingFiles::create(path_, info, nlohmann::json::object());
    if (!files) {
      return files.error();
    }
    files_.emplace(*std::move(files));
    return {};
  }

  Result<void> write(const Rows& rows) override { return files_->append(rows, 0); }

  void gap(const Gap& gap) override { files_->add_gap(gap); }

  void progress(const ProfilerStats& stats) override {
    // A metadata file that is a second old describes the run as well; the next call tries again,
    // and close() reports.
    static_cast<void>(files_->write_metadata(stats, "running"));
  }

  Result<void> close(const ProfilerStats& stats) override {
    return files_->write_metadata(stats, "ended");
  }

  [[nodiscard]] std::uint64_t bytes_written() const override {
    return files_ ? files_->bytes() : 0;
  }

  [[nodiscard]] OutputPlace output_place() const override { return {path_, 0, bytes_written()}; }

 private:
  std::string path_;
  std::optional<RecordingFiles> files_;
};

}  // namespace

Sink::~Sink() = default;

std::shared_ptr<Sink> make_tsv_sink(std::string path) {
  return std::make_shared<TsvSink>(std::move(path));
}

}  // namespace kymo
