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

// Returns NAME of NAME.tsv or NAME.tsv.zst, from which the companion files have their names.
// Returns any other name unchanged.
inline std::string recording_stem(std::string_view path) {
  for (const std::string_view ending : {kPlainEnding, kCompressedEnding}) {
    if (path.ends_with(ending)) {
      return std::string(path.substr(0, path.size() - ending.size()));
    }
  }
  return std::string(path);
}

}  // namespace kymo
