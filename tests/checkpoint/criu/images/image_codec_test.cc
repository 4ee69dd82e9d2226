#include "checkpoint/criu/images/image_codec.h"

#include <gtest/gtest.h>

#include <random>

namespace kymo::criu {
namespace {

std::vector<char> sample(std::size_t bytes) {
  std::mt19937 random(7);
  std::vector<char> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = i % 4096 < 2048 ? 'x' : static_cast<char>(random());
  }
  return out;
}

std::vector<char> packed(const Encoding& encoding, std::span<const char> bytes, std::size_t piece) {
  auto encoder = Encoder::make(encoding).value();
  std::vector<char> out;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    EXPECT_TRUE(encoder->write(bytes.subspan(at, std::min(piece, bytes.size() - at)), out).ok());
    if (at == 0) {
      EXPECT_TRUE(encoder->flush(out).ok());
    }
  }
  EXPECT_TRUE(encoder->finish(out).ok());
  return out;
}

class CodecTest : public testing::TestWithParam<Compression> {};

TEST_P(CodecTest, WhatGoesInComesOut) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3'000'001}}) {
    const std::vector<char> in = sample(bytes);
    for (const int level : {0, 1, 5}) {
      const std::vector<char> frame = packed({GetParam(), level}, in, 700'000);
      const auto out = decode_all(GetParam(), std::as_bytes(std::span(frame)), bytes, "frame");
      ASSERT_TRUE(out.ok()) << out.error().message;
      EXPECT_TRUE(std::ranges::equal(*out, std::as_bytes(std::span(in))));
      if (bytes > 1000) {
        EXPECT_LT(frame.size(), bytes * 3 / 5);
      }
    }
  }
}

TEST_P(CodecTest, AFrameCutAnywhereOrDamagedIsNoFrame) {
  const std::vector<char> in = sample(50'000);
  const std::vector<char> frame = packed({GetParam(), 0}, in, 20'000);
  for (std::size_t size = 0; size < frame.size(); size += 97) {
    const auto out =
        decode_all(GetParam(), std::as_bytes(std::span(frame).first(size)), 1 << 20, "frame.zst");
    ASSERT_FALSE(out.ok()) << size;
    EXPECT_EQ(out.error().code, Code::data_loss);
    EXPECT_NE(out.error().message.find("frame.zst"), std::string::npos);
  }
  std::vector<char> damaged = frame;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_FALSE(decode_all(GetParam(), std::as_bytes(std::span(damaged)), 1 << 20, "x").ok());
}

TEST_P(CodecTest, MoreThanIsAllowedIsRefused) {
  const std::vector<char> frame = packed({GetParam(), 0}, sample(2'000'000), 1'000'000);
  const auto out = decode_all(GetParam(), std::as_bytes(std::span(frame)), 1'999'999, "bomb");
  EXPECT_EQ(out.error().code, Code::out_of_range);
}

INSTANTIATE_TEST_SUITE_P(Both, CodecTest, testing::Values(Compression::zstd, Compression::lz4),
                         [](const auto& chosen) { return std::string(name_of(chosen.param)); });

TEST(CodecNamesTest, SuffixesAndLevels) {
  std::string_view name = "pages-1.img.zst";
  EXPECT_EQ(take_suffix(name), Compression::zstd);
  EXPECT_EQ(name, "pages-1.img");
  EXPECT_EQ(take_suffix(name), Compression::none);
  EXPECT_TRUE(check_encoding({Compression::zstd, 19}).ok());
  EXPECT_EQ(check_encoding({Compression::zstd, 20}).error().message,
            "compression level 20: zstd has 1 to 19");
  EXPECT_FALSE(check_encoding({Compression::lz4, 13}).ok());
  EXPECT_FALSE(check_encoding({Compression::lz4, -1}).ok());
  EXPECT_FALSE(check_encoding({Compression::none, 1}).ok());
}

}  // namespace
}  // namespace kymo::criu
