#include "checkpoint/criu/images/contents.h"

#include <archive_entry.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_codec.h"
#include "checkpoint/criu/images/tar_file.h"

namespace kymo::criu {
namespace {

constexpr std::size_t kReadPiece = std::size_t{256} << 10;
// The fifth byte of a frame of zstd (RFC 8878) and of lz4 has flags. The same bit of both says that a checksum of
// the content follows.
constexpr std::uint64_t kFlagsAt = 4;
constexpr unsigned kHasSum = 4;
constexpr std::string_view kGzip("\x1f\x8b", 2);
constexpr std::string_view kZstd("\x28\xb5\x2f\xfd", 4);
constexpr std::string_view kXz("\xfd\x37zXZ\0", 6);
constexpr std::string_view kBzip2("BZh", 3);
constexpr std::size_t kXzCheckAt = 7;  // the kind of the checksums; 0: none

using Sink = std::function<Result<void>(std::span<const char>)>;

// Decompresses what it is given, and counts the result.
class Unpacked {
 public:
  static Result<Unpacked> make(Compression compression) {
    Result<std::unique_ptr<Decoder>> decoder = Decoder::make(compression);
    if (!decoder) return decoder.error();
    return Unpacked(*std::move(decoder));
  }

  Result<void> add(std::span<const char> in) {
    if (taken_ <= kFlagsAt && kFlagsAt < taken_ + in.size()) {
      has_sum_ = (static_cast<unsigned char>(in[kFlagsAt - taken_]) & kHasSum) != 0;
    }
    taken_ += in.size();
    for (;;) {
      const Result<Decoder::Step> step = decoder_->read(in, piece_);
      if (!step) return step.error();
      in = in.subspan(step->used);
      size_ += step->produced;
      if (step->used != 0 || step->produced != 0) continue;
      return in.empty() ? Result<void>() : Error{Code::data_loss, "its end is no end of a frame"};
    }
  }

  [[nodiscard]] Result<void> finish() const {
    return decoder_->whole() ? Result<void>() : Error{Code::data_loss, "it is cut short"};
  }
  [[nodiscard]] bool has_sum() const { return has_sum_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  explicit Unpacked(std::unique_ptr<Decoder> decoder)
      : decoder_(std::move(decoder)), piece_(kReadPiece) {}

  std::unique_ptr<Decoder> decoder_;
  std::vector<char> piece_;
  std::uint64_t taken_ = 0;
  std::uint64_t size_ = 0;
  bool has_sum_ = false;
};

Result<void> read_through(int fd, const std::string& path, const Sink& sink) {
  std::vector<char> piece(kReadPiece);
  for (;;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read " + path, errno);
    if (got == 0) return {};
    Result<void> taken = sink(std::span(piece.data(), static_cast<std::size_t>(got)));
    if (!taken) return taken;
  }
}

Compression compression_of(std::string_view path) {
  return take_suffix(path);
}

class Reading {
 public:
  explicit Reading(const ImageSet& images) : images_(images) {}

  Contents contents() {
    if (images_.from_archive()) {
      if (read_archive()) read_members();
    } else {
      for (const std::string& name : images_.names()) {
        if (images_.packed(name)) read_file_of(name);
      }
    }
    return std::move(found_);
  }

 private:
  // `read`: gives the content of the image to a sink.
  void unpack(const std::string& name, const std::function<Result<void>(const Sink&)>& read) {
    Result<Unpacked> unpacked = Unpacked::make(compression_of(images_.stored(name)));
    Result<void> done = unpacked ? read([&](std::span<const char> in) { return unpacked->add(in); })
                                 : Result<void>(unpacked.error());
    if (done) done = unpacked->finish();
    if (!done) {
      found_.damaged.insert(name);
      add_fault(found_.faults,
                name + ": it cannot be decompressed, so it is damaged: " + done.error().message);
      return;
    }
    found_.sizes[name] = unpacked->size();
    ++(unpacked->has_sum() ? found_.compared : found_.without_sums);
  }

  void read_file_of(const std::string& name) {
    const std::string path = images_.stored(name);
    unpack(name, [&](const Sink& sink) -> Result<void> {
      const Result<FileDescriptor> file = open_regular(path);
      if (!file) return file.error();
      return read_through(file->get(), path, sink);
    });
  }

  // The compressed images in an archive.
  void read_members() {
    std::map<std::string, std::string> wanted;  // by member
    for (const std::string& name : images_.names()) {
      if (images_.packed(name)) wanted[images_.stored(name)] = name;
    }
    if (wanted.empty()) return;
    const Result<FileDescriptor> file = open_regular(images_.path());
    if (!file) return add_fault(found_.faults, file.error().message);
    const Result<Archive> opened =
        open_archive_file(images_.path(), file->get(), ArchiveFormat::tar);
    if (!opened) return add_fault(found_.faults, opened.error().message);
    archive_entry* entry = nullptr;
    while (!wanted.empty() && archive_read_next_header(opened->get(), &entry) >= ARCHIVE_WARN) {
      const char* said = archive_entry_pathname(entry);
      if (said == nullptr) continue;
      const auto found = wanted.find(std::filesystem::path(said).lexically_normal());
      if (found == wanted.end() || archive_entry_filetype(entry) != AE_IFREG) continue;
      unpack(found->second, [&](const Sink& sink) { return read_member(opened->get(), sink); });
      wanted.erase(found);
    }
  }

  static Result<void> read_member(archive* a, const Sink& sink) {
    std::vector<char> piece(kReadPiece);
    for (;;) {
      const la_ssize_t got = archive_read_data(a, piece.data(), piece.size());
      if (got < 0) return Error{Code::data_loss, said_by(a, "it cannot be read")};
      if (got == 0) return {};
      Result<void> taken = sink(std::span(piece.data(), static_cast<std::size_t>(got)));
      if (!taken) return taken;
    }
  }

  // Reads a compressed archive to its end, where its checksum is. Returns false if it is damaged.
  bool read_archive() {
    const Result<bool> compared = [this]() -> Result<bool> {
      Result<FileDescriptor> file = open_regular(images_.path());
      if (!file) return file.error();
      std::array<char, kXzCheckAt + 1> begin{};
      const ssize_t got = ::pread(file->get(), begin.data(), begin.size(), 0);
      const std::string_view head(begin.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
      if (head.starts_with(kGzip)) return read_gzip(*std::move(file));
      if (head.starts_with(kZstd)) return read_zstd(file->get());
      if (head.starts_with(kXz)) return read_raw(file->get(), head.back() != 0);
      if (head.starts_with(kBzip2)) return read_raw(file->get(), true);
      return Error{Code::not_found, "it is not compressed"};
    }();
    if (compared) {
      found_.archive_compared = *compared;
    } else if (compared.error().code != Code::not_found) {
      add_fault(found_.faults, "the archive cannot be decompressed, so it is damaged: " +
                                   compared.error().message);
      return false;
    }
    return true;
  }

  Result<bool> read_zstd(int fd) {
    Result<Unpacked> unpacked = Unpacked::make(Compression::zstd);
    if (!unpacked) return unpacked.error();
    Result<void> done = read_through(fd, images_.path(),
                                     [&](std::span<const char> in) { return unpacked->add(in); });
    if (done) done = unpacked->finish();
    return done ? Result<bool>(unpacked->has_sum()) : done.error();
  }

  // libarchive does not compare the checksum of gzip.
  static Result<bool> read_gzip(FileDescriptor fd) {
    const std::unique_ptr<gzFile_s, decltype(&gzclose_r)> file(gzdopen(fd.get(), "rb"), &gzclose_r);
    if (file == nullptr) return Error{Code::resource_exhausted, "gzip: out of memory"};
    static_cast<void>(fd.release());  // gzclose_r() closes it
    gzbuffer(file.get(), kReadPiece);
    std::vector<char> piece(kReadPiece);
    while (gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size())) > 0) {
    }
    int error = Z_OK;
    const char* said = gzerror(file.get(), &error);
    if (error == Z_OK) return true;
    return Error{Code::data_loss, std::string("gzip: ") + said};
  }

  Result<bool> read_raw(int fd, bool has_sum) {
    const Result<Archive> opened = open_archive_file(images_.path(), fd, ArchiveFormat::raw);
    if (!opened) return opened.error();
    archive_entry* entry = nullptr;
    if (archive_read_next_header(opened->get(), &entry) != ARCHIVE_OK) {
      return Error{Code::data_loss, said_by(opened->get(), "it cannot be read")};
    }
    const Result<void> done =
        read_member(opened->get(), [](std::span<const char>) { return Result<void>(); });
    return done ? Result<bool>(has_sum) : done.error();
  }

  const ImageSet& images_;
  Contents found_;
};

}  // namespace

Contents read_contents(const ImageSet& images) {
  return Reading(images).contents();
}

}  // namespace kymo::criu
