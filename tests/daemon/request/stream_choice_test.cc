#include "daemon/request/stream_choice.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace kymo::daemon {
namespace {

TEST(StreamChoiceTest, EachCompressionOfTheApiHasItsName) {
  const google::protobuf::EnumDescriptor& all = *v1::Compression_descriptor();
  for (int i = 0; i < all.value_count(); ++i) {
    const auto asked = static_cast<v1::Compression>(all.value(i)->number());
    const Result<criu::Compression> compression = compression_of(asked);
    ASSERT_TRUE(compression.ok()) << all.value(i)->name();
    std::string name(compression_name(*compression));
    for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
    EXPECT_EQ(name, asked == v1::NONE ? "" : all.value(i)->name());
  }
}

TEST(StreamChoiceTest, AnUnknownCompressionIsRefused) {
  const auto unknown = static_cast<v1::Compression>(99);
  EXPECT_EQ(compression_of(unknown).error().code, Code::invalid_argument);
  v1::DumpRequest request;
  request.set_compression(unknown);
  EXPECT_EQ(encoding_of(request).error().message,
            "dump: unknown compression 99: choose NONE, ZSTD or LZ4");
}

}  // namespace
}  // namespace kymo::daemon
