#pragma once

#include <string>
#include <string_view>

namespace kymo {

inline constexpr std::string_view kPlainEnding = ".tsv";
inline constexpr std::string_view kCompressedEnding = ".tsv.zst";

// Whether a recording of this name is compressed.
inline bool is_compressed_name(std::string_view path) {
  return path.ends_with(kCompressedEnding);
}

// Whether this is the name of a recording, NAME.tsv or NAME.tsv.zst.
inline bool is_recording_name(std::string_view path) {
  return path.ends_with(kPlainEnding) || is_compressed_name(path);
}

// NAME of NAME.tsv or NAME.tsv.zst: what the files beside it are named after. Another name is its
// own.
inline std::string recording_stem(std::string_view path) {
  for (const std::string_view ending : {kPlainEnding, kCompressedEnding}) {
    if (path.ends_with(ending)) {
      return std::string(path.substr(0, path.size() - ending.size()));
    }
  }
  return std::string(path);
}

}  // namespace kymo
