#include "recorder/sampling/files/contents.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/text_file.h"

namespace kymo {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

}  // namespace

Result<Contents> contents_of(const std::string& tsv,
                             const std::function<void(std::uint64_t)>& take) {
  Result<TextFile> file = TextFile::open_regular(tsv);
  if (!file) {
    return file.error();
  }
  Contents contents;
  std::vector<char> piece(kPieceBytes);
  std::string line;  // the beginning of a line whose end is in the next piece
  for (std::uint64_t lines = 0;;) {
    const Result<std::size_t> size = file->read(piece.data(), piece.size());
    if (!size) {
      return size.error();
    }
    std::string_view text(piece.data(), *size);
    for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      line.append(text.substr(0, end));
      if (lines++ != 0) {  // the first is the header
        contents.last_ns = std::strtoull(line.c_str(), nullptr, 10);
        ++contents.rows;
        if (take) take(contents.last_ns);
      }
      line.clear();
    }
    line.append(text);
    if (*size == 0) {
      return contents;
    }
  }
}

}  // namespace kymo
