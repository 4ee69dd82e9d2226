#include "checkpoint/criu/images/image_codec.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kymo::criu {
namespace {

struct Kind {
  Compression compression;
  std::string_view name;
  std::string_view suffix;
  int highest_level;
};

constexpr std::array<Kind, 3> kKinds{{{Compression::none, "none", "", 0},
                                      {Compression::zstd, "zstd", ".zst", 19},
                                      {Compression::lz4, "lz4", ".lz4", 12}}};
// zstd's own default limit for the window of a frame that it decompresses.
constexpr int kMaxWindowLog = 27;

const Kind& kind_of(Compression compression) {
  return kKinds.at(static_cast<std::size_t>(compression));
}

int level_of(const Encoding& encoding) {
  return encoding.level == 0 ? 1 : encoding.level;
}

Error no_memory(std::string_view what) {
  return Error{Code::resource_exhausted, std::string(what) + ": out of memory"};
}

Error failed(std::string_view what, const char* why) {
  return Error{Code::data_loss, std::string(what) + ": " + why};
}

class ZstdEncoder : public Encoder {
 public:
  explicit ZstdEncoder(const Encoding& encoding) : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) return;
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level_of(encoding));
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }
  ZstdEncoder(const ZstdEncoder&) = delete;
  ZstdEncoder& operator=(const ZstdEncoder&) = delete;
  [[nodiscard]] bool valid() const { return context_ != nullptr; }

  Result<void> write(std::span<const char> in, std::vector<char>& out) override {
    return run(in, out, ZSTD_e_continue);
  }
  Result<void> flush(std::vector<char>& out) override { return run({}, out, ZSTD_e_flush); }
  Result<void> finish(std::vector<char>& out) override { return run({}, out, ZSTD_e_end); }

 private:
  Result<void> run(std::span<const char> in, std::vector<char>& out, ZSTD_EndDirective end) {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    for (;;) {
      const std::size_t at = out.size();
      out.resize(at + ZSTD_CStreamOutSize());
      ZSTD_outBuffer to{out.data() + at, out.size() - at, 0};
      const std::size_t left = ZSTD_compressStream2(context_, &to, &from, end);
      out.resize(at + to.pos);
      if (ZSTD_isError(left) != 0) return failed("zstd", ZSTD_getErrorName(left));
      if (end == ZSTD_e_continue ? from.pos == from.size : left == 0) return {};
    }
  }

  ZSTD_CCtx* context_;
};

class Lz4Encoder : public Encoder {
 public:
  explicit Lz4Encoder(const Encoding& encoding) {
    if (LZ4F_isError(LZ4F_createCompressionContext(&context_, LZ4F_VERSION)) != 0) {
      context_ = nullptr;
    }
    preferences_.compressionLevel = level_of(encoding);
    preferences_.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    preferences_.frameInfo.blockSizeID = LZ4F_max1MB;
  }
  ~Lz4Encoder() override { LZ4F_freeCompressionContext(context_); }
  Lz4Encoder(const Lz4Encoder&) = delete;
  Lz4Encoder& operator=(const Lz4Encoder&) = delete;
  [[nodiscard]] bool valid() const { return context_ != nullptr; }

  Result<void> write(std::span<const char> in, std::vector<char>& out) override {
    if (Result<void> ok = begin(out); !ok) return ok;
    return append(out, LZ4F_compressBound(in.size(), &preferences_),
                  [&](char* to, std::size_t room) {
                    return LZ4F_compressUpdate(context_, to, room, in.data(), in.size(), nullptr);
                  });
  }
  Result<void> flush(std::vector<char>& out) override {
    if (Result<void> ok = begin(out); !ok) return ok;
    return append(out, LZ4F_compressBound(0, &preferences_), [&](char* to, std::size_t room) {
      return LZ4F_flush(context_, to, room, nullptr);
    });
  }
  Result<void> finish(std::vector<char>& out) override {
    if (Result<void> ok = begin(out); !ok) return ok;
    return append(out, LZ4F_compressBound(0, &preferences_), [&](char* to, std::size_t room) {
      return LZ4F_compressEnd(context_, to, room, nullptr);
    });
  }

 private:
  Result<void> begin(std::vector<char>& out) {
    if (std::exchange(begun_, true)) return {};
    return append(out, LZ4F_HEADER_SIZE_MAX, [&](char* to, std::size_t room) {
      return LZ4F_compressBegin(context_, to, room, &preferences_);
    });
  }
  template <class Call>
  static Result<void> append(std::vector<char>& out, std::size_t room, Call&& call) {
    const std::size_t at = out.size();
    out.resize(at + room);
    const std::size_t n = call(out.data() + at, room);
    out.resize(at + (LZ4F_isError(n) != 0 ? 0 : n));
    return LZ4F_isError(n) != 0 ? Result<void>(failed("lz4", LZ4F_getErrorName(n)))
                                : Result<void>();
  }

  LZ4F_cctx* context_ = nullptr;
  LZ4F_preferences_t preferences_{};
  bool begun_ = false;
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (context_ != nullptr) {
      ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMaxWindowLog);
    }
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;
  [[nodiscard]] bool valid() const { return context_ != nullptr; }

  Result<Step> read(std::span<const char> in, std::span<char> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_, &to, &from);
    if (ZSTD_isError(left) != 0) return failed("zstd", ZSTD_getErrorName(left));
    if (from.pos > 0 || to.pos > 0) whole_ = left == 0;
    return Step{from.pos, to.pos};
  }
  [[nodiscard]] bool whole() const override { return whole_; }

 private:
  ZSTD_DCtx* context_;
  bool whole_ = false;
};

class Lz4Decoder : public Decoder {
 public:
  Lz4Decoder() {
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) != 0) {
      context_ = nullptr;
    }
  }
  ~Lz4Decoder() override { LZ4F_freeDecompressionContext(context_); }
  Lz4Decoder(const Lz4Decoder&) = delete;
  Lz4Decoder& operator=(const Lz4Decoder&) = delete;
  [[nodiscard]] bool valid() const { return context_ != nullptr; }

  Result<Step> read(std::span<const char> in, std::span<char> out) override {
    std::size_t used = in.size();
    std::size_t produced = out.size();
    const std::size_t left =
        LZ4F_decompress(context_, out.data(), &produced, in.data(), &used, nullptr);
    if (LZ4F_isError(left) != 0) return failed("lz4", LZ4F_getErrorName(left));
    if (used > 0 || produced > 0) whole_ = left == 0;
    return Step{used, produced};
  }
  [[nodiscard]] bool whole() const override { return whole_; }

 private:
  LZ4F_dctx* context_ = nullptr;
  bool whole_ = false;
};

template <class Base, class Made, class... Arguments>
Result<std::unique_ptr<Base>> made(std::string_view what, const Arguments&... arguments) {
  auto one = std::make_unique<Made>(arguments...);
  if (!one->valid()) return no_memory(what);
  return std::unique_ptr<Base>(std::move(one));
}

}  // namespace

std::string_view name_of(Compression compression) {
  return kind_of(compression).name;
}

std::string_view suffix_of(Compression compression) {
  return kind_of(compression).suffix;
}

Compression take_suffix(std::string_view& name) {
  for (const Kind& kind : kKinds) {
    if (!kind.suffix.empty() && name.ends_with(kind.suffix)) {
      name.remove_suffix(kind.suffix.size());
      return kind.compression;
    }
  }
  return Compression::none;
}

Result<void> check_encoding(const Encoding& encoding) {
  const Kind& kind = kind_of(encoding.compression);
  if (encoding.level >= 0 && encoding.level <= kind.highest_level) return {};
  if (encoding.compression == Compression::none) {
    return Error{Code::invalid_argument, "compression level " + std::to_string(encoding.level) +
                                             ": a level needs a compression, such as zstd"};
  }
  return Error{Code::invalid_argument, "compression level " + std::to_string(encoding.level) +
                                           ": " + std::string(kind.name) + " has 1 to " +
                                           std::to_string(kind.highest_level)};
}

Result<std::unique_ptr<Encoder>> Encoder::make(const Encoding& encoding) {
  if (Result<void> ok = check_encoding(encoding); !ok) return ok.error();
  if (encoding.compression == Compression::lz4) return made<Encoder, Lz4Encoder>("lz4", encoding);
  return made<Encoder, ZstdEncoder>("zstd", encoding);
}

Result<std::unique_ptr<Decoder>> Decoder::make(Compression compression) {
  if (compression == Compression::lz4) return made<Decoder, Lz4Decoder>("lz4");
  return made<Decoder, ZstdDecoder>("zstd");
}

Result<std::vector<std::byte>> decode_all(Compression compression,
                                          std::span<const std::byte> packed, std::size_t most,
                                          std::string_view name) {
  Result<std::unique_ptr<Decoder>> decoder = Decoder::make(compression);
  if (!decoder) return decoder.error();
  const auto* begin = static_cast<const char*>(static_cast<const void*>(packed.data()));
  std::span<const char> in(begin, packed.size());
  std::vector<std::byte> out;
  std::vector<char> piece(std::size_t{256} << 10);
  for (;;) {
    const Result<Decoder::Step> step = (*decoder)->read(in, piece);
    if (!step) {
      return Error{Code::data_loss,
                   "cannot read " + std::string(name) + ": " + step.error().message};
    }
    in = in.subspan(step->used);
    const auto bytes = std::as_bytes(std::span(piece.data(), step->produced));
    if (out.size() + bytes.size() > most) {
      return Error{Code::out_of_range, "cannot read " + std::string(name) +
                                           ": it would have more than " + std::to_string(most) +
                                           " bytes when it is decompressed"};
    }
    out.insert(out.end(), bytes.begin(), bytes.end());
    if (step->used == 0 && step->produced == 0) break;
  }
  if (!(*decoder)->whole()) {
    return Error{Code::data_loss, "cannot read " + std::string(name) + ": it is cut short"};
  }
  return out;
}

}  // namespace kymo::criu
