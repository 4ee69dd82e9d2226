#include "checkpoint/criu/drive/streamer_requests.h"

#include <gtest/gtest.h>

namespace kymo::criu {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Passes the stream in pieces, as a socket would, and returns the names that are asked for.
Result<std::vector<std::string>> names_in(const std::string& stream, std::size_t piece) {
  StreamerRequests requests;
  std::vector<std::string> names;
  std::span<const std::byte> rest = bytes_of(stream);
  while (!rest.empty()) {
    const std::size_t n = std::min({rest.size(), piece, requests.wanted()});
    const auto name = requests.take(rest.first(n));
    if (!name) return name.error();
    if (*name) names.push_back(**name);
    rest = rest.subspan(n);
  }
  if (!requests.between()) return Error{Code::data_loss, "cut short"};
  return names;
}

TEST(StreamerRequestsTest, NamesComeOutHoweverTheBytesCome) {
  const std::string stream = streamer_request("pages-1.img") + streamer_request("core-7.img");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
    const auto names = names_in(stream, piece);
    ASSERT_TRUE(names.ok()) << names.error().message;
    EXPECT_EQ(*names, (std::vector<std::string>{"pages-1.img", "core-7.img"}));
  }
}

TEST(StreamerRequestsTest, ARequestIsReadToItsLastByteAndNoFurther) {
  StreamerRequests requests;
  const std::string stream = streamer_request("a.img");
  EXPECT_EQ(requests.wanted(), 4U);
  ASSERT_TRUE(requests.take(bytes_of(stream).first(4)).ok());
  EXPECT_EQ(requests.wanted(), stream.size() - 4);
  EXPECT_FALSE(requests.between());
}

TEST(StreamerRequestsTest, AStreamThatIsCutIsSeenToBe) {
  const std::string stream = streamer_request("pages-1.img");
  for (std::size_t size = 1; size < stream.size(); ++size) {
    EXPECT_FALSE(names_in(stream.substr(0, size), 1).ok()) << size;
  }
}

TEST(StreamerRequestsTest, RubbishIsRefused) {
  using std::string_literals::operator""s;
  EXPECT_EQ(names_in("\0\0\0\0"s, 4).error().code, Code::data_loss);          // an empty message
  EXPECT_EQ(names_in("\xff\xff\xff\xff"s, 4).error().code, Code::data_loss);  // a length of 4 GiB
  // Not a protobuf message.
  EXPECT_EQ(names_in("\x03\0\0\0abc"s, 4).error().code, Code::data_loss);
  // A message without a name.
  EXPECT_FALSE(names_in("\x02\0\0\0\x10\x01"s, 4).ok());
}

TEST(StreamerRequestsTest, HostileNamesAreRefused) {
  for (const std::string& name :
       {std::string("../../etc/passwd"), std::string("/etc/passwd"), std::string("a/b"),
        std::string(".."), std::string("."), std::string(".hidden"), std::string(),
        std::string("a\0b", 3), std::string("a\nb"), std::string("a b"), std::string(300, 'x')}) {
    const auto names = names_in(streamer_request(name), 100);
    ASSERT_FALSE(names.ok()) << name;
    EXPECT_EQ(names.error().code, Code::invalid_argument);
    EXPECT_EQ(names.error().message.find('\n'), std::string::npos);
  }
  EXPECT_TRUE(check_image_name("tcp-stream-1a.img").ok());
}

}  // namespace
}  // namespace kymo::criu
