#include "daemon/request/stream_choice.h"

#include <string>
#include <string_view>

namespace kymo::daemon {

Result<criu::Compression> compression_of(v1::Compression asked) {
  switch (asked) {
    case v1::NONE:
      return criu::Compression::none;
    case v1::ZSTD:
      return criu::Compression::zstd;
    case v1::LZ4:
      return criu::Compression::lz4;
    default:
      return Error{Code::invalid_argument,
                   "unknown compression " + std::to_string(asked) + ": choose NONE, ZSTD or LZ4"};
  }
}

std::string_view compression_name(criu::Compression compression) {
  return compression == criu::Compression::none ? std::string_view() : criu::name_of(compression);
}

Result<std::optional<criu::Encoding>> encoding_of(const v1::DumpRequest& request) {
  const bool compressed = request.compression() != v1::NONE || request.compression_level() != 0;
  if (request.stream() && request.no_stream()) {
    return Error{Code::invalid_argument, "dump: --stream and --no-stream exclude each other"};
  }
  if (compressed && request.no_stream()) {
    return Error{Code::invalid_argument,
                 "dump: --compression and --no-stream exclude each other: only streamed images can "
                 "be compressed"};
  }
  if (!request.stream() && !compressed) return std::optional<criu::Encoding>();
  criu::Encoding encoding;
  const Result<criu::Compression> asked = compression_of(request.compression());
  if (!asked) return Error{asked.error().code, "dump: " + asked.error().message};
  encoding.compression = *asked;
  encoding.level = request.compression_level();
  if (Result<void> good = criu::check_encoding(encoding); !good) return good.error();
  if (request.pre_dumps() != 0) {
    return Error{Code::unimplemented,
                 std::string("dump: --pre-dump and ") +
                     (request.stream() ? "--stream" : "--compression") +
                     " cannot be combined: CRIU's image streamer does not support parent images"};
  }
  return std::optional(encoding);
}

bool is_compressed(const std::optional<criu::Encoding>& stream) {
  return stream && stream->compression != criu::Compression::none;
}

int level_of(const criu::Encoding& encoding) {
  return encoding.level == 0 ? 1 : encoding.level;
}

std::string codec_of(const std::optional<criu::Encoding>& stream) {
  if (!stream || !is_compressed(stream)) return {};
  return std::string(criu::name_of(stream->compression)) + ", level " +
         std::to_string(level_of(*stream));
}

bool streams_by_default(const v1::DumpRequest& request, runtime::Kind kind) {
  return runtime::row_of(kind).streams && request.pre_dumps() == 0 && !request.no_stream();
}

std::string excludes_compression(const v1::DumpRequest& request) {
  if (request.pre_dumps() != 0) return "--pre-dump";
  return request.no_stream() ? "--no-stream" : "";
}

}  // namespace kymo::daemon
