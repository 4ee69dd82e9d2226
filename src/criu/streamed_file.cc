#include "criu/streamed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace kymo::criu {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr unsigned kSplice = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

Error failed_at(const std::string& name, const char* what, int cause) {
  return system_error("image stream: " + std::string(what) + " " + name, cause);
}

// Makes a pipe non-blocking, because one thread serves all pipes. If `large`, it also asks for a
// larger buffer. If the kernel refuses that, the transfer is only slower.
void make_ready(int pipe, bool large) {
  fcntl(pipe, F_SETFL, fcntl(pipe, F_GETFL) | O_NONBLOCK);
  if (large) fcntl(pipe, F_SETPIPE_SZ, static_cast<int>(kPiece));
}

bool are_pages(std::string_view name) {
  return name.starts_with("pages-");
}

void count(Streamed& totals, std::uint64_t bytes, bool pages) {
  totals.bytes += bytes;
  if (pages) totals.page_bytes += bytes;
}

class CapturedFile : public StreamedFile {
 public:
  CapturedFile(std::string name, FileDescriptor pipe, FileDescriptor file,
               std::unique_ptr<Encoder> encoder)
      : StreamedFile(std::move(pipe)),
        name_(std::move(name)),
        pages_(are_pages(name_)),
        file_(std::move(file)),
        encoder_(std::move(encoder)) {}

  Result<bool> pump(Streamed& totals) override {
    if (encoder_ == nullptr && !copies_) return splice_some(totals);
    in_.resize(kPiece);
    const ssize_t n = read(pipe(), in_.data(), in_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < 0) return failed_at(name_, "read", errno);
    count(totals, static_cast<std::uint64_t>(n), pages_);
    const std::span<const char> got(in_.data(), static_cast<std::size_t>(n));
    if (encoder_ == nullptr) {
      if (Result<void> ok = store(got, totals); !ok) return ok.error();
      return n == 0;
    }
    out_.clear();
    Result<void> ok = n == 0 ? encoder_->finish(out_) : encoder_->write(got, out_);
    if (ok) ok = store(out_, totals);
    if (!ok) return ok.error();
    return n == 0;
  }

  Result<void> flush(Streamed& totals) override {
    if (encoder_ == nullptr) return {};
    out_.clear();
    Result<void> ok = encoder_->flush(out_);
    return ok ? store(out_, totals) : ok;
  }

 private:
  // Moves pages from the pipe to the file without copying them through this process.
  Result<bool> splice_some(Streamed& totals) {
    const ssize_t n = splice(pipe(), nullptr, file_.get(), nullptr, kPiece, kSplice);
    if (n >= 0) {
      count(totals, static_cast<std::uint64_t>(n), pages_);
      totals.stored += static_cast<std::uint64_t>(n);
      return n == 0;
    }
    if (errno == EAGAIN || errno == EINTR) return false;
    if (errno != EINVAL) return failed_at(name_, "write", errno);
    copies_ = true;  // the file system does not support splice(2)
    return false;
  }

  Result<void> store(std::span<const char> bytes, Streamed& totals) {
    std::size_t written = 0;
    const int error = write_all(file_.get(), {bytes.data(), bytes.size()}, &written);
    totals.stored += written;
    return error == 0 ? Result<void>() : failed_at(name_, "write", error);
  }

  const std::string name_;
  const bool pages_;
  FileDescriptor file_;
  std::unique_ptr<Encoder> encoder_;  // null: stored uncompressed
  bool copies_ = false;
  std::vector<char> in_;
  std::vector<char> out_;
};

class ServedFile : public StreamedFile {
 public:
  ServedFile(std::string name, FileDescriptor pipe, FileDescriptor file,
             std::unique_ptr<Decoder> decoder)
      : StreamedFile(std::move(pipe)),
        name_(std::move(name)),
        pages_(are_pages(name_)),
        file_(std::move(file)),
        decoder_(std::move(decoder)) {}

  Result<bool> pump(Streamed& totals) override {
    if (decoder_ == nullptr) return splice_some(totals);
    if (ready_.empty()) {
      const Result<bool> more = refill(totals);
      if (!more) return more.error();
      if (!*more) return true;
    }
    const ssize_t n = write(pipe(), ready_.data(), ready_.size());
    if (n < 0) return after_failed_write();
    count(totals, static_cast<std::uint64_t>(n), pages_);
    ready_ = ready_.subspan(static_cast<std::size_t>(n));
    return false;
  }

  Result<void> flush(Streamed& /*totals*/) override { return {}; }

 private:
  [[nodiscard]] Result<bool> after_failed_write() const {
    if (errno == EAGAIN || errno == EINTR) return false;
    if (errno == EPIPE) return true;  // CRIU does not want to read more of it
    return failed_at(name_, "send", errno);
  }

  Result<bool> splice_some(Streamed& totals) {
    const ssize_t n = splice(file_.get(), nullptr, pipe(), nullptr, kPiece, kSplice);
    if (n < 0) return after_failed_write();
    count(totals, static_cast<std::uint64_t>(n), pages_);
    totals.stored += static_cast<std::uint64_t>(n);
    return n == 0;
  }

  // Decompresses the next piece. Returns false at the end of the file.
  Result<bool> refill(Streamed& totals) {
    out_.resize(kPiece);
    for (;;) {
      const Result<Decoder::Step> step = decoder_->read(unread_, out_);
      if (!step) {
        return Error{step.error().code, "image stream: " + name_ + ": " + step.error().message};
      }
      unread_ = unread_.subspan(step->used);
      ready_ = std::span<const char>(out_).first(step->produced);
      if (step->produced > 0) return true;
      if (!unread_.empty() && step->used > 0) continue;
      in_.resize(kPiece / 4);
      const ssize_t n = read(file_.get(), in_.data(), in_.size());
      if (n < 0) return failed_at(name_, "read", errno);
      if (n == 0 && decoder_->whole()) return false;
      if (n == 0) return Error{Code::data_loss, "image stream: " + name_ + " is cut short"};
      totals.stored += static_cast<std::uint64_t>(n);
      unread_ = std::span<const char>(in_).first(static_cast<std::size_t>(n));
    }
  }

  const std::string name_;
  const bool pages_;
  FileDescriptor file_;
  std::unique_ptr<Decoder> decoder_;  // null: stored uncompressed
  std::vector<char> in_;
  std::vector<char> out_;
  std::span<const char> unread_;  // the part of in_ that is still to be decompressed
  std::span<const char> ready_;   // the part of out_ that is still to be sent
};

}  // namespace

Result<std::unique_ptr<StreamedFile>> capture_file(const std::string& name, FileDescriptor pipe,
                                                   int dir_fd, const Encoding& encoding) {
  const std::string path = name + std::string(suffix_of(encoding.compression));
  FileDescriptor file(
      openat(dir_fd, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return failed_at(path, "make", errno);
  std::unique_ptr<Encoder> encoder;
  if (encoding.compression != Compression::none) {
    Result<std::unique_ptr<Encoder>> made = Encoder::make(encoding);
    if (!made) return made.error();
    encoder = std::move(made).value();
  }
  make_ready(pipe.get(), are_pages(name));
  return std::unique_ptr<StreamedFile>(
      std::make_unique<CapturedFile>(name, std::move(pipe), std::move(file), std::move(encoder)));
}

Result<StoredImage> open_stored(int dir_fd, const std::string& name) {
  for (const Compression compression : {Compression::none, Compression::zstd, Compression::lz4}) {
    const std::string path = name + std::string(suffix_of(compression));
    FileDescriptor found(openat(dir_fd, path.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
    if (!found.valid()) continue;
    Result<FileDescriptor> file = only_regular(std::move(found), path);
    if (file) return StoredImage{*std::move(file), compression};
  }
  return Error{Code::not_found, "image stream: there is no " + name};
}

Result<std::unique_ptr<StreamedFile>> serve_file(const std::string& name, FileDescriptor pipe,
                                                 StoredImage image) {
  std::unique_ptr<Decoder> decoder;
  if (image.compression != Compression::none) {
    Result<std::unique_ptr<Decoder>> made = Decoder::make(image.compression);
    if (!made) return made.error();
    decoder = std::move(made).value();
  }
  make_ready(pipe.get(), are_pages(name));
  return std::unique_ptr<StreamedFile>(std::make_unique<ServedFile>(
      name, std::move(pipe), std::move(image.file), std::move(decoder)));
}

}  // namespace kymo::criu
