#include "http/front_door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "http/connection.h"

namespace kymo::http {
namespace {

TEST(RequestLength, IsThatOfTheHeadAndOfTheBodyThatItNames) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(request_length(""), 0U);
  EXPECT_EQ(request_length(head), 0U);
  EXPECT_EQ(request_length(head + "\r\n"), head.size() + 2);
  EXPECT_EQ(request_length(head + "content-LENGTH: 7\r\n\r\nabc"), head.size() + 17 + 4 + 7);
  EXPECT_EQ(request_length(head + "Content-Length:7\r\n\r\n"), head.size() + 16 + 4 + 7);
  for (const char* none :
       {"Content-Length: x", "Content-Length:", "X-Content-Length: 7", "Content-Length"}) {
    const std::string text = head + none + "\r\n\r\n";
    EXPECT_EQ(request_length(text), text.size()) << none;
  }
}

TEST(RequestLength, OfMoreThanIsReadIsMoreThanIsRead) {
  for (const char* length : {"999999", "18446744073709551615"}) {
    EXPECT_GT(
        request_length("POST / HTTP/1.1\r\nContent-Length: " + std::string(length) + "\r\n\r\n"),
        FrontDoor::kLongestHead + FrontDoor::kLongestBody)
        << length;
  }
}

// It may pretend to read: a byte now and then.
TEST(ConnectionTest, AClientThatTakesNextToNothingIsLetGoOf) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  const FileDescriptor client(ends[1]);
  Connection connection({FileDescriptor(ends[0]), "GET / HTTP/1.1\r\n\r\n", false});
  std::atomic<bool> over{false};
  std::thread reader([&] {
    std::array<char, 4096> piece{};
    while (!over) {
      static_cast<void>(recv(client.get(), piece.data(), piece.size(), 0));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto began = std::chrono::steady_clock::now();
  const std::string much(8 << 20, 'x');
  EXPECT_EQ(connection.write(much.data(), much.size()), -1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  EXPECT_FALSE(connection.is_writable());
  over = true;
  reader.join();
}

}  // namespace
}  // namespace kymo::http
