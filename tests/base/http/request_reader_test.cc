#include "base/http/request_reader.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/http/connection.h"
#include "support/loopback.h"
#include "support/temporary_directory.h"

namespace kymo::http {
namespace {

Framing framing_of(std::string_view text) {
  Framing framing;
  framing.read(text);
  return framing;
}

TEST(FramingTest, TheLengthIsThatOfTheHeadAndOfTheBodyThatItNames) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(framing_of("").length(), 0U);
  EXPECT_EQ(framing_of(head).length(), 0U);
  EXPECT_EQ(framing_of(head).refused(), 0);
  EXPECT_EQ(framing_of(head + "\r\n").length(), head.size() + 2);
  EXPECT_EQ(framing_of(head + "content-LENGTH: 7 \r\n\r\nabc").length(), head.size() + 18 + 4 + 7);
  EXPECT_EQ(framing_of(head + "Content-Length:7\r\n\r\n").length(), head.size() + 16 + 4 + 7);
  for (const char* none : {"X-Content-Length: 7", "Content-Length"}) {
    const std::string text = head + none + "\r\n\r\n";
    EXPECT_EQ(framing_of(text).length(), text.size()) << none;
  }
}

TEST(FramingTest, ARequestIsReadAlikeInWhateverPiecesItComes) {
  const std::string text = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\nb";
  Framing framing;
  for (std::size_t n = 1; n <= text.size(); ++n) framing.read(text.substr(0, n));
  EXPECT_EQ(framing.length(), text.size());
  EXPECT_EQ(framing.refused(), 0) << "the body must not be parsed";
}

// The HTTP library ends a line only at LF.
TEST(FramingTest, AHeadThatCanBeReadInTwoWaysIsRefused) {
  using namespace std::string_literals;
  for (const std::string& line :
       {"X: a\nRange: bytes=0-0"s, "X: a\rRange: bytes=0-0"s, "X: a\r\r"s, "\n"s, "X: \0"s,
        "Content-Length: x"s, "Content-Length:"s, "Content-Length: -1"s, "Content-Length: +1"s,
        "Content-Length: 0x1"s, "Content-Length: 1, 1"s, "Content-Length: 1 1"s,
        "Content-Length: 1\r\ncontent-length: 1"s}) {
    const Framing framing = framing_of("POST / HTTP/1.1\r\n" + line + "\r\n\r\n");
    EXPECT_EQ(framing.refused(), 400) << line;
    EXPECT_EQ(framing.length(), 0U) << line;
  }
  EXPECT_EQ(framing_of("GET / HTTP/1.0\n").refused(), 400) << "refused before its end";
  EXPECT_EQ(framing_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").refused(), 411);
}

TEST(FramingTest, AHostThatCanBeReadInTwoWaysWasTaken) {
  for (const std::string line :
       {"Host: localhost\r\nHost: evil.example", "Host: localhost\r\nhOST:localhost",
        "Host: localhost\r\n evil.example", "X: a\r\n\tHost: evil.example", " Host: localhost",
        "Host : localhost", "X\t: a", "Host: localhost:9418@evil.example", "Host: [::1]evil",
        "Host: localhost:99999999", "Host: localhost:65536", "Host: localhost:+1",
        "Host: localhost:1:1", "Host: localhost evil.example", "Host: http://localhost/",
        "Host: [::1", "Host: localhost]", "Host: [localhost]", "Host: localhost, localhost"}) {
    const Framing framing = framing_of("GET / HTTP/1.1\r\n" + line + "\r\n\r\n");
    EXPECT_EQ(framing.refused(), 400) << line;
  }
  for (const std::string line :
       {"Host: localhost", "Host:\tlocalhost:65535 ", "Host: [::1]:1",
        "Host:", "Host: localhost:", "X-Host: a@b\r\nHost: node_1.example"}) {
    const Framing framing = framing_of("GET / HTTP/1.1\r\n" + line + "\r\n\r\n");
    EXPECT_EQ(framing.refused(), 0) << line;
    EXPECT_NE(framing.length(), 0U) << line;
  }
}

TEST(FramingTest, AHeaderThatDecidesSomethingCouldOccurTwice) {
  for (const std::string line : {"Origin: http://a\r\nOrigin: http://localhost",
                                 "Authorization: Bearer a\r\nX: y\r\nauthorization: Bearer b",
                                 "Content-Length: 0\r\nContent-Length: 0"}) {
    EXPECT_EQ(framing_of("GET / HTTP/1.1\r\n" + line + "\r\n\r\n").refused(), 400) << line;
  }
  EXPECT_EQ(framing_of("GET / HTTP/1.1\r\nOrigin: a\r\nX-Origin: b\r\n\r\n").refused(), 0);
}

TEST(FramingTest, WhatIsTooLongIsRefused) {
  for (const char* length : {"16385", "18446744073709551615", "99999999999999999999999"}) {
    const std::string text = "POST / HTTP/1.1\r\nContent-Length: " + std::string(length);
    EXPECT_EQ(framing_of(text + "\r\n\r\n").refused(), 413) << length;
  }
  const std::string begin = "GET / HTTP/1.1\r\nX: ";
  const std::string whole =
      begin + std::string(RequestReader::kMaxHead - begin.size() - 4, 'a') + "\r\n\r\n";
  EXPECT_EQ(framing_of(whole).length(), RequestReader::kMaxHead);
  EXPECT_EQ(framing_of(begin + whole).refused(), 431);
  EXPECT_EQ(framing_of(begin + whole).length(), 0U);
}

TEST(RequestReaderTest, WhatThrowsCostsItsOwnConnectionAlone) {
  Result<FileDescriptor> listener = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener) << listener.error().message;
  const std::uint16_t port = *port_of(listener->get());
  RequestReader door;
  int taken = 0;
  ASSERT_TRUE(door.open(std::move(listener).value(),
                        [&taken](Incoming) {
                          ++taken;
                          throw std::bad_alloc();
                        })
                  .ok());
  for (int i = 0; i < 3; ++i) {
    const FileDescriptor client = test::connect_to_loopback(port);
    std::size_t written = 0;
    EXPECT_EQ(write_all(client.get(), "GET / HTTP/1.1\r\n\r\n", &written), 0);
    char none = 0;
    EXPECT_EQ(recv(client.get(), &none, 1, 0), 0) << "the server must close the connection";
  }
  door.close();
  EXPECT_EQ(taken, 3);
}

// Finishes `count` refused connections at once, and returns how many were closed with unread data.
// Their clients see a reset.
int resets_among(std::size_t count) {
  std::vector<FileDescriptor> clients;
  std::vector<std::unique_ptr<Connection>> connections;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    clients.emplace_back(ends[1]);
    connections.push_back(
        std::make_unique<Connection>(Incoming{FileDescriptor(ends[0]), "GET /", 431}));
    std::size_t written = 0;
    EXPECT_EQ(write_all(clients.back().get(), "more", &written), 0);
  }
  std::vector<std::thread> threads;
  for (auto& connection : connections) {
    threads.emplace_back([&connection] {
      connection->finish();
      connection.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  int resets = 0;
  for (const FileDescriptor& client : clients) {
    char none = 0;
    if (recv(client.get(), &none, 1, 0) < 0 && errno == ECONNRESET) ++resets;
  }
  return resets;
}

TEST(ConnectionTest, FewThreadsReadOnAfterARefusal) {
  constexpr std::size_t kMax = static_cast<std::size_t>(Connection::kMaxLingering);
  EXPECT_EQ(resets_among(kMax), 0);
  // On a busy machine, the connections may finish one after the other.
  EXPECT_TRUE(test::eventually([] { return resets_among(3 * kMax) > 0; }));
}

// A client can pretend to read by taking a byte now and then.
TEST(ConnectionTest, AClientThatTakesNextToNothingIsLetGoOf) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  const FileDescriptor client(ends[1]);
  Connection connection({FileDescriptor(ends[0]), "GET / HTTP/1.1\r\n\r\n", 0});
  std::atomic<bool> over{false};
  std::thread reader([&] {
    std::array<char, 4096> piece{};
    while (!over) {
      static_cast<void>(recv(client.get(), piece.data(), piece.size(), 0));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  // 8 MiB, which such a client would take longer to read than the patience.
  const std::string much(8 << 20, 'x');
  EXPECT_FALSE(connection.write(much));
  EXPECT_FALSE(connection.write("x")) << "the connection must stay closed";
  over = true;
  reader.join();
}

}  // namespace
}  // namespace kymo::http
