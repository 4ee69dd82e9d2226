#include "recorder/sampling/files/output_file.h"

#include <cerrno>
#include <utility>

#include "base/recording_name.h"

namespace kymo {

Result<std::optional<FrameCompressor>> OutputFile::compressor_for(const std::string& path,
                                                                  std::size_t max_append) {
  if (!is_compressed_name(path)) {
    return std::optional<FrameCompressor>();
  }
  if (!has_zstd()) {
    return no_zstd("record to " + path);
  }
  Result<FrameCompressor> compressor = FrameCompressor::make(max_append);
  if (!compressor) {
    return compressor.error();
  }
  return std::optional<FrameCompressor>(*std::move(compressor));
}

Result<OutputFile> OutputFile::create(const std::string& path, std::size_t max_append) {
  Result<std::optional<FrameCompressor>> compressor = compressor_for(path, max_append);
  if (!compressor) {
    return compressor.error();
  }
  Result<AppendFile> file = AppendFile::create(path);
  if (!file) {
    return file.error();
  }
  return OutputFile(*std::move(file), *std::move(compressor));
}

int OutputFile::append(std::string_view text) {
  if (!compressor_) {
    return file_.append(text);
  }
  const std::string_view frame = compressor_->compress(text);
  return frame.empty() ? ENOMEM : file_.append(frame);
}

}  // namespace kymo
