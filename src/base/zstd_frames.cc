#include "base/zstd_frames.h"

#include <utility>
#include <vector>

#if KYMO_HAVE_ZSTD
#include <zstd.h>
#endif

namespace kymo {

Error no_zstd(std::string_view what) {
  return Error{Code::unimplemented,
               "cannot " + std::string(what) +
                   ": this build of kymo has no zstd (CMake option KYMO_ZSTD); use a plain .tsv",
               0};
}

// Compares with the magic numbers of a frame and of a skippable frame, which are little-endian.
bool FrameReader::begins_frame(std::string_view bytes) {
  return bytes.starts_with("\x28\xb5\x2f\xfd") ||
         (bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0U) == 0x50U &&
          bytes.substr(1, 3) == "\x2a\x4d\x18");
}

FrameCompressor::FrameCompressor(std::unique_ptr<State> state) : state_(std::move(state)) {}
FrameReader::FrameReader(std::unique_ptr<State> state) : state_(std::move(state)) {}

#if KYMO_HAVE_ZSTD

namespace {

constexpr int kLevel = 1;  // at higher levels a recording waits for zstd and not for the disk

Error no_memory() {
  return Error{Code::resource_exhausted, "no memory for a zstd context", 0};
}

}  // namespace

bool has_zstd() noexcept {
  return true;
}

struct FrameCompressor::State {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
  std::vector<char> frame;
};

Result<FrameCompressor> FrameCompressor::make(std::size_t max_bytes) {
  auto state = std::make_unique<State>();
  if (state->context == nullptr) {
    return no_memory();
  }
  ZSTD_CCtx_setParameter(state->context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(state->context.get(), ZSTD_c_checksumFlag, 1);
  state->frame.resize(ZSTD_compressBound(max_bytes));
  FrameCompressor compressor(std::move(state));
  // The context allocates memory when it gets a larger piece than before. Make it allocate all of
  // it now.
  if (compressor.compress(std::string(max_bytes, '0')).empty()) {
    return no_memory();
  }
  return compressor;
}

std::string_view FrameCompressor::compress(std::string_view text) {
  std::vector<char>& frame = state_->frame;
  if (const std::size_t bound = ZSTD_compressBound(text.size()); frame.size() < bound) {
    frame.resize(bound);
  }
  const std::size_t size =
      ZSTD_compress2(state_->context.get(), frame.data(), frame.size(), text.data(), text.size());
  return {frame.data(), ZSTD_isError(size) != 0U ? 0 : size};
}

struct FrameReader::State {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  std::size_t wanted = 0;  // 0: at the end of a frame
  const char* failure = nullptr;
};

Result<FrameReader> FrameReader::make() {
  auto state = std::make_unique<State>();
  if (state->context == nullptr) {
    return no_memory();
  }
  return FrameReader(std::move(state));
}

Result<FrameReader::Step> FrameReader::read(std::string_view in, char* out, std::size_t out_size) {
  ZSTD_inBuffer input{in.data(), in.size(), 0};
  ZSTD_outBuffer output{out, out_size, 0};
  while (output.pos < output.size && state_->failure == nullptr) {
    const std::size_t in_before = input.pos;
    const std::size_t out_before = output.pos;
    const std::size_t wanted = ZSTD_decompressStream(state_->context.get(), &output, &input);
    if (ZSTD_isError(wanted) != 0U) {
      state_->failure = ZSTD_getErrorName(wanted);
      break;
    }
    // After the end of a frame, a call without input asks for the next frame's header. That does
    // not mean that a frame has begun, so do not note it.
    if (input.pos != in_before || output.pos != out_before) {
      state_->wanted = wanted;
    } else {
      break;
    }
  }
  // Return the data before the damage first. The next call returns the error.
  if (state_->failure != nullptr && output.pos == 0) {
    return Error{Code::data_loss, state_->failure, 0};
  }
  return Step{input.pos, output.pos};
}

bool FrameReader::between_frames() const {
  return state_->wanted == 0;
}

#else

bool has_zstd() noexcept {
  return false;
}

struct FrameCompressor::State {};
struct FrameReader::State {};

Result<FrameCompressor> FrameCompressor::make(std::size_t /*max_bytes*/) {
  return no_zstd("compress");
}
std::string_view FrameCompressor::compress(std::string_view /*text*/) {
  return {};
}
Result<FrameReader> FrameReader::make() {
  return no_zstd("read what is compressed by zstd");
}
Result<FrameReader::Step> FrameReader::read(std::string_view /*in*/, char* /*out*/,
                                            std::size_t /*out_size*/) {
  return no_zstd("read what is compressed by zstd");
}
bool FrameReader::between_frames() const {
  return true;
}

#endif

FrameCompressor::FrameCompressor(FrameCompressor&&) noexcept = default;
FrameCompressor& FrameCompressor::operator=(FrameCompressor&&) noexcept = default;
FrameCompressor::~FrameCompressor() = default;
FrameReader::FrameReader(FrameReader&&) noexcept = default;
FrameReader& FrameReader::operator=(FrameReader&&) noexcept = default;
FrameReader::~FrameReader() = default;

}  // namespace kymo
