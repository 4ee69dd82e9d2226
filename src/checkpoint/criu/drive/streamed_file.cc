#include "checkpoint/criu/drive/streamed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/criu/drive/held_images.h"

namespace kymo::criu {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kSmallPiece = std::size_t{1} << 16;  // the usual size of a pipe

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

// A pipe that only this process has, between CRIU's pipe and a file. Without it, the kernel would
// hold the lock of CRIU's pipe while it waits for the file's disk (iter_file_splice_write,
// filemap_splice_read), and CRIU could not be killed before the disk answers. Moving data from
// pipe to pipe copies nothing and does not wait.
class OwnPipe {
 public:
  // Moves at most 1 MiB from one descriptor to the other; only what is there, if one is CRIU's
  // pipe. Returns the number of bytes, or -1 and errno.
  ssize_t fill(int from) {
    if (!in_.valid() && !make()) return -1;
    const ssize_t n = splice(from, nullptr, in_.get(), nullptr, kPiece, kFlags);
    if (n > 0) held_ += static_cast<std::size_t>(n);
    return n;
  }
  ssize_t drain(int to) {
    const ssize_t n = splice(out_.get(), nullptr, to, nullptr, held_, kFlags);
    if (n > 0) held_ -= static_cast<std::size_t>(n);
    return n;
  }
  // Takes the data out, for a file that does not support splice(2).
  ssize_t take(std::span<char> buffer) {
    const ssize_t n = read(out_.get(), buffer.data(), std::min(buffer.size(), held_));
    if (n > 0) held_ -= static_cast<std::size_t>(n);
    return n;
  }
  [[nodiscard]] std::size_t held() const { return held_; }

 private:
  static constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

  bool make() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    out_ = FileDescriptor(ends[0]);
    in_ = FileDescriptor(ends[1]);
    fcntl(in_.get(), F_SETPIPE_SZ, static_cast<int>(kPiece));
    return true;
  }

  FileDescriptor out_;
  FileDescriptor in_;
  std::size_t held_ = 0;
};

// The new file in which an image is stored.
struct NewFile {
  FileDescriptor file;
  std::string path;  // in the folder
  int dir_fd;
  bool named;        // false: it gets its name when it is complete
  HeldImages* held;  // may be null
};

Result<NewFile> make_file(const std::string& path, int dir_fd, bool spliced, HeldImages* held) {
  NewFile made{{}, path, dir_fd, false, held};
  if (spliced) {
    made.file = FileDescriptor(::openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (made.file.valid()) return made;
  }
  made.named = true;
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  made.file = FileDescriptor(::openat(dir_fd, path.c_str(), kNew | (spliced ? 0 : O_APPEND), 0600));
  if (made.file.valid()) return made;
  Error error = failed_at(path, "make", errno);
  error.message +=
      advice_on_full_disk("/proc/self/fd/" + std::to_string(dir_fd), error.errno_value);
  return error;
}

class CapturedFile : public StreamedFile {
 public:
  CapturedFile(std::string name, FileDescriptor pipe, NewFile file,
               std::unique_ptr<Encoder> encoder)
      : StreamedFile(std::move(pipe)),
        name_(std::move(name)),
        pages_(are_pages(name_)),
        file_(std::move(file)),
        encoder_(std::move(encoder)) {}

  Result<bool> pump(Streamed& totals) override {
    if (encoder_ == nullptr && pages_) return splice_some(totals);
    in_.resize(pages_ ? kPiece : kSmallPiece);
    const ssize_t n = read(pipe(), in_.data(), in_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < 0) return failed_at(name_, "read", errno);
    count(totals, static_cast<std::uint64_t>(n), pages_);
    const std::span<const char> got(in_.data(), static_cast<std::size_t>(n));
    if (encoder_ == nullptr) {
      if (Result<void> ok = store(got, totals); !ok) return ok.error();
      return n == 0 ? ended() : false;
    }
    out_.clear();
    Result<void> ok = n == 0 ? encoder_->finish(out_) : encoder_->write(got, out_);
    if (ok) ok = store(out_, totals);
    if (!ok) return ok.error();
    return n == 0 ? ended() : false;
  }

  Result<void> flush(Streamed& totals) override {
    out_.clear();
    Result<void> ok = encoder_ == nullptr ? Result<void>() : encoder_->flush(out_);
    if (ok) ok = store(out_, totals);
    return ok ? keep() : ok;
  }

 private:
  Result<bool> ended() {
    const Result<void> kept = keep();
    return kept ? Result<bool>(true) : kept.error();
  }

  // Gives the file its name, if it has none, and lets `held` remember what is in it.
  Result<void> keep() {
    if (!file_.named) {
      const std::string unnamed = "/proc/self/fd/" + std::to_string(file_.file.get());
      if (::linkat(AT_FDCWD, unnamed.c_str(), file_.dir_fd, file_.path.c_str(),
                   AT_SYMLINK_FOLLOW) != 0) {
        return failed_at(file_.path, "make", errno);
      }
      file_.named = true;
    }
    if (file_.held == nullptr) return {};
    struct stat seen {};
    if (::fstat(file_.file.get(), &seen) != 0) return failed_at(file_.path, "look at", errno);
    file_.held->wrote(file_.path, seen.st_ino, stored_);
    return {};
  }

  // Moves pages from the pipe to the file without copying them through this process.
  Result<bool> splice_some(Streamed& totals) {
    const ssize_t n = own_.fill(pipe());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < 0) return failed_at(name_, "read", errno);
    count(totals, static_cast<std::uint64_t>(n), pages_);
    while (own_.held() > 0) {
      const ssize_t written = own_.drain(file_.file.get());
      if (written > 0) count_stored(static_cast<std::uint64_t>(written), totals);
      if (written > 0 || (written < 0 && errno == EINTR)) continue;
      if (written == 0 || errno != EINVAL) return failed_at(name_, "write", errno);
      if (Result<void> ok = copy_held(totals); !ok) return ok.error();
    }
    return n == 0 ? ended() : false;
  }

  // For a file system that does not support splice(2).
  Result<void> copy_held(Streamed& totals) {
    in_.resize(kPiece);
    const ssize_t n = own_.take(in_);
    if (n < 0) return failed_at(name_, "read", errno);
    return store(std::span<const char>(in_).first(static_cast<std::size_t>(n)), totals);
  }

  Result<void> store(std::span<const char> bytes, Streamed& totals) {
    std::size_t written = 0;
    const int error = write_all(file_.file.get(), {bytes.data(), bytes.size()}, &written);
    count_stored(written, totals);
    return error == 0 ? Result<void>() : failed_at(name_, "write", error);
  }

  void count_stored(std::uint64_t bytes, Streamed& totals) {
    stored_ += bytes;
    totals.stored += bytes;
  }

  const std::string name_;
  const bool pages_;
  NewFile file_;
  std::uint64_t stored_ = 0;          // bytes in the file
  std::unique_ptr<Encoder> encoder_;  // null: stored uncompressed
  OwnPipe own_;                       // of pages that are stored uncompressed
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
    if (own_.held() == 0) {
      const ssize_t n = own_.fill(file_.get());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (n < 0) return failed_at(name_, "read", errno);
      if (n == 0) return true;
      totals.stored += static_cast<std::uint64_t>(n);
    }
    const ssize_t n = own_.drain(pipe());
    if (n < 0) return after_failed_write();
    count(totals, static_cast<std::uint64_t>(n), pages_);
    return false;
  }

  // Takes the next piece to send. It is sent only after the one behind it was decompressed: so CRIU never
  // gets the end of an image that is damaged or cut short, also if only its checksum is missing. Returns
  // false at the end of the image.
  Result<bool> refill(Streamed& totals) {
    if (!begun_) {
      begun_ = true;
      if (Result<void> ok = decode_next(totals); !ok) return ok.error();
    }
    if (next_.empty()) return false;
    std::swap(out_, next_out_);
    ready_ = next_;
    if (Result<void> ok = decode_next(totals); !ok) return ok.error();
    return true;
  }

  // Decompresses the piece after that. It is empty at the end of the image.
  Result<void> decode_next(Streamed& totals) {
    next_out_.resize(kPiece);
    for (;;) {
      const Result<Decoder::Step> step = decoder_->read(unread_, next_out_);
      if (!step) {
        return Error{step.error().code, "image stream: " + name_ + ": " + step.error().message};
      }
      unread_ = unread_.subspan(step->used);
      next_ = std::span<const char>(next_out_).first(step->produced);
      if (step->produced > 0) return {};
      if (!unread_.empty() && step->used > 0) continue;
      in_.resize(kPiece / 4);
      const ssize_t n = read(file_.get(), in_.data(), in_.size());
      if (n < 0) return failed_at(name_, "read", errno);
      if (n == 0 && decoder_->whole()) return {};
      if (n == 0) return Error{Code::data_loss, "image stream: " + name_ + " is cut short"};
      totals.stored += static_cast<std::uint64_t>(n);
      unread_ = std::span<const char>(in_).first(static_cast<std::size_t>(n));
    }
  }

  const std::string name_;
  const bool pages_;
  FileDescriptor file_;
  std::unique_ptr<Decoder> decoder_;  // null: stored uncompressed
  OwnPipe own_;
  std::vector<char> in_;
  std::vector<char> out_;
  std::vector<char> next_out_;
  std::span<const char> unread_;  // the part of in_ that is still to be decompressed
  std::span<const char> ready_;   // the part of out_ that is still to be sent
  std::span<const char> next_;    // the part of next_out_ that is sent after it
  bool begun_ = false;
};

}  // namespace

Result<std::unique_ptr<StreamedFile>> capture_file(const std::string& name, FileDescriptor pipe,
                                                   int dir_fd, const Encoding& encoding,
                                                   HeldImages* held) {
  const bool spliced = encoding.compression == Compression::none && are_pages(name);
  Result<NewFile> file =
      make_file(name + std::string(suffix_of(encoding.compression)), dir_fd, spliced, held);
  if (!file) return file.error();
  std::unique_ptr<Encoder> encoder;
  if (encoding.compression != Compression::none) {
    Result<std::unique_ptr<Encoder>> made = Encoder::make(encoding);
    if (!made) return made.error();
    encoder = std::move(made).value();
  }
  make_ready(pipe.get(), are_pages(name));
  return std::unique_ptr<StreamedFile>(
      std::make_unique<CapturedFile>(name, std::move(pipe), *std::move(file), std::move(encoder)));
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
