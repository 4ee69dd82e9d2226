#include "base/zstd_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace kymo {
namespace {

TEST(ZstdFrames, ABuildWithoutZstdSaysSo) {
  if (has_zstd()) {
    GTEST_SKIP() << "built with zstd";
  }
  EXPECT_EQ(FrameCompressor::make(10).error().code, Code::unimplemented);
  EXPECT_NE(no_zstd("record to x").message.find("KYMO_ZSTD"), std::string::npos);
}

TEST(ZstdFrames, EachFrameIsReadBackInPiecesOfAnySize) {
  if (!has_zstd()) {
    GTEST_SKIP() << "built without zstd";
  }
  FrameCompressor compressor = FrameCompressor::make(100).value();
  std::string bytes;
  std::string text;
  for (int i = 0; i < 50; ++i) {  // later frames are longer than the first one announced
    const std::string piece(static_cast<std::size_t>(i * 10 + 1), static_cast<char>('a' + i % 26));
    text += piece;
    bytes += compressor.compress(piece);
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    FrameReader reader = FrameReader::make().value();
    std::string read;
    std::size_t used = 0;
    const std::string_view all = bytes;
    char out[13];
    for (;;) {
      const auto done = reader.read(all.substr(used, step), out, sizeof out).value();
      used += done.used;
      read.append(out, done.produced);
      if (done.used == 0 && done.produced == 0) {
        break;
      }
    }
    EXPECT_EQ(read, text);
    EXPECT_TRUE(reader.between_frames());
  }
}

TEST(ZstdFrames, KnowsAFrameByItsBegin) {
  EXPECT_TRUE(FrameReader::begins_frame(std::string("\x28\xb5\x2f\xfd\0", 5)));
  EXPECT_TRUE(FrameReader::begins_frame("\x5f\x2a\x4d\x18"));
  EXPECT_FALSE(FrameReader::begins_frame("Time (ns)"));
  EXPECT_FALSE(FrameReader::begins_frame(""));
}

}  // namespace
}  // namespace kymo
