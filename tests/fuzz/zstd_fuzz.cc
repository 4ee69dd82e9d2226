#include <algorithm>
#include <string_view>

#include "base/zstd_frames.h"
#include "input_file.h"
#include "lens/analysis/tsv_reader.h"
#include "read_rows.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

constexpr std::string_view kMagic("\x28\xb5\x2f\xfd", 4);

RowsRead read_frames(const std::string& content) {
  static InputFile file;
  file.write(content);
  auto reader = analysis::TsvReader::open(file.path());
  if (!reader) {
    require(!reader.error().message.empty(), "an error says something");
    return {};
  }
  return read_rows(*reader);
}

std::string compressed(std::string_view text, std::size_t piece) {
  static FrameCompressor compressor = FrameCompressor::make(4096).value();
  std::string frames;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    frames += compressor.compress(text.substr(0, piece));
  }
  return frames;
}

// Compresses `text` in frames. Undamaged, they must give the same rows. Damaged, any readable part
// is fine.
void read_frames(std::uint8_t piece, std::uint8_t where, std::uint8_t damage,
                 const std::string& text) {
  std::string frames = compressed(text, std::size_t{piece} + 1);
  const RowsRead whole = read_frames(frames);
  auto plain = analysis::TsvReader::from_text(text, "fuzz");
  require(plain.ok(), "it has a header");
  const RowsRead expected = read_rows(*plain);
  require(whole.rows == expected.rows && whole.left_out == expected.left_out &&
              whole.sum == expected.sum,
          "compressed rows are the same rows");
  const std::size_t at = frames.size() * where / 256;
  frames[at] = static_cast<char>(frames[at] ^ damage);
  read_frames(frames);
  read_frames(frames.substr(0, at));
}

}  // namespace

void zstd(Bytes data) {
  const std::string bytes = text_of(data);
  read_frames(std::string(kMagic) + bytes);
  if (data.size() >= 3 && has_zstd()) {
    read_frames(data[0], data[1], data[2], "Time (ns)\ta\n" + bytes.substr(3));
  }
}

}  // namespace kymo::fuzz
