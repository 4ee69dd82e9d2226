#include "daemon/request/stream_choice.h"

#include <string>

namespace kymo::daemon {

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
  switch (request.compression()) {
    case v1::NONE:
      break;
    case v1::ZSTD:
      encoding.compression = criu::Compression::zstd;
      break;
    case v1::LZ4:
      encoding.compression = criu::Compression::lz4;
      break;
    default:
      return Error{Code::invalid_argument, "dump: unknown compression " +
                                               std::to_string(request.compression()) +
                                               ": choose NONE, ZSTD or LZ4"};
  }
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
  return kind == runtime::Kind::process && request.pre_dumps() == 0 && !request.no_stream();
}

}  // namespace kymo::daemon
