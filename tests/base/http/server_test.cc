#include "base/http/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "support/loopback.h"
#include "support/temporary_directory.h"

namespace kymo::http {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
const httplib::Headers kBearer{{"Authorization", std::string("Bearer ") + kToken}};

// A client that can receive only a little before it has to read.
FileDescriptor connect_to(int port) {
  return test::connect_to_loopback(port, 4096);
}

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() = default;
  explicit HttpServerTest(std::chrono::milliseconds patience)
      : server_({.token = kToken, .patience = patience}) {}
  void SetUp() override {
    server_.open("/healthz", [](const Request&) { return Reply{200, "text/plain", "ok\n", {}}; });
    server_.get("/api/echo", [](const Request& request) { return json_reply(request.value("q")); });
    server_.get("/api/throw", [](const Request&) -> Reply { throw std::runtime_error("oops"); });
    server_.post("/api/change", [this](const Request& request) {
      ++changes_;
      return json_reply(request.value("q"));
    });
    server_.page("/", [](const Request&) { return page_reply("<p>in</p>", "n"); });
    server_.stream("/api/live", [this](const Request& request) -> Result<Server::EventSource> {
      if (request.value("q") == "bad") return Error{Code::invalid_argument, "q is bad"};
      return Server::EventSource([this](EventStream& events) {
        ++open_;
        ++opened_;
        const std::string much(65536, 'x');
        while (events.send("much", much) && events.wait(std::chrono::milliseconds(1))) {
        }
        --open_;
      });
    });
    ASSERT_TRUE(server_.start().ok());
  }
  [[nodiscard]] int port() const {
    return std::stoi(server_.address().substr(server_.address().rfind(':') + 1));
  }
  // Opens connections that ask for events and read nothing.
  [[nodiscard]] std::vector<FileDescriptor> stalled_streams(int number) const {
    const std::string request =
        "GET /api/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
        std::string(kToken) + "\r\n\r\n";
    std::vector<FileDescriptor> stalled;
    for (int i = 0; i < number; ++i) {
      stalled.push_back(connect_to(port()));
      std::size_t written = 0;
      EXPECT_EQ(write_all(stalled.back().get(), request, &written), 0);
    }
    return stalled;
  }
  // Returns the status, or 0 if there is no answer.
  [[nodiscard]] int get(const std::string& path, const httplib::Headers& headers = {}) const {
    httplib::Client client("127.0.0.1", port());
    const auto response = client.Get(path, headers);
    return response ? response->status : 0;
  }

  std::atomic<int> changes_{0};
  std::atomic<int> open_{0};    // event streams that are open now
  std::atomic<int> opened_{0};  // event streams that were ever opened
  Server server_{{.token = kToken}};
};

// As many requests wait as docs/security.md says.
TEST(FloodTest, OfManyRequestsAtOnceSomeAreServedSomeWaitAndTheOthersAreClosed) {
  constexpr std::size_t kServedOrWaiting = Server::kMaxThreads + 64;
  constexpr std::size_t kMore = 10;
  std::mutex gate;
  std::unique_lock closed(gate);
  Server server({.token = kToken, .patience = std::chrono::hours(1)});
  server.open("/healthz", [&gate](const Request&) {
    const std::lock_guard passes(gate);
    return Reply{200, "text/plain", "ok\n", {}};
  });
  ASSERT_TRUE(server.start().ok());
  const std::string address = server.address();
  std::vector<FileDescriptor> clients;
  for (std::size_t i = 0; i < kServedOrWaiting + kMore; ++i) {
    clients.push_back(connect_to(std::stoi(address.substr(address.rfind(':') + 1))));
    std::size_t written = 0;
    static_cast<void>(write_all(clients.back().get(),
                                "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", &written));
  }
  std::string text(16, '\0');
  std::size_t refused = 0;
  EXPECT_TRUE(test::eventually([&] {
    const auto ended =
        std::remove_if(clients.begin(), clients.end(), [&](const FileDescriptor& one) {
          const ssize_t got = recv(one.get(), text.data(), text.size(), MSG_DONTWAIT);
          EXPECT_LE(got, 0);
          return got == 0 || errno == ECONNRESET;
        });
    refused += static_cast<std::size_t>(clients.end() - ended);
    clients.erase(ended, clients.end());
    return refused >= kMore;
  }));
  closed.unlock();
  // More connections may have been closed, if the threads were slow to take the waiting ones.
  std::size_t served = 0;
  for (const FileDescriptor& one : clients) {
    if (recv(one.get(), text.data(), 12, MSG_WAITALL) <= 0) continue;
    EXPECT_EQ(text.substr(0, 12), "HTTP/1.1 200");
    ++served;
  }
  EXPECT_GE(served, Server::kMaxThreads);
  EXPECT_LE(served, kServedOrWaiting);
}

// A server that never disconnects a client that reads nothing. So these tests show that other
// clients do not wait for such a one.
class PatientServerTest : public HttpServerTest {
 protected:
  PatientServerTest() : HttpServerTest(std::chrono::hours(1)) {}
};

TEST_F(HttpServerTest, WhatIsOpenIsServedToAnybodyAndTheRestToTheToken) {
  EXPECT_EQ(get("/healthz"), 200);
  EXPECT_EQ(get("/api/echo?q=1"), 401);
  EXPECT_EQ(get("/api/live"), 401);
  EXPECT_EQ(get("/"), 401);
  EXPECT_EQ(get("/api/echo?q=1", kBearer), 200);
  EXPECT_EQ(get(std::string("/?token=") + kToken), 200);
  EXPECT_EQ(get("/api/echo?q=1", {{"Authorization", "Bearer 0123"}}), 401);
}

TEST_F(HttpServerTest, AnyOtherPathAndMethodIs404) {
  for (const char* path :
       {"/metrics/", "/metrics/..", "/healthz/../etc/passwd", "/..", "/%2e%2e/etc/passwd",
        "//etc/passwd", "/favicon.ico", "/api", "/api/echo/"}) {
    EXPECT_EQ(get(path, kBearer), 404) << path;
    EXPECT_EQ(get(path), 404) << path;
  }
  httplib::Client client("127.0.0.1", port());
  for (const auto& response : {client.Post("/healthz"), client.Put("/healthz", "", "text/plain"),
                               client.Delete("/api/change"), client.Get("/api/change")}) {
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 404);
  }
}

TEST_F(HttpServerTest, AOneTimeLinkLeadsToThePageOnce) {
  const std::string url = server_.url_once("/");
  EXPECT_EQ(url.find(kToken), std::string::npos);
  const std::string path = url.substr(url.find("/?"));
  httplib::Client client("127.0.0.1", port());
  const auto there = client.Get(path);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->status, 302);
  EXPECT_EQ(there->get_header_value("Location"), std::string("/?token=") + kToken);
  EXPECT_EQ(get(path), 401) << "once";
  EXPECT_EQ(get("/?ticket="), 401);
  EXPECT_EQ(get("/?ticket=0123456789abcdef"), 401);
  const std::string elsewhere = server_.url_once("/api/echo");
  EXPECT_EQ(get(elsewhere.substr(elsewhere.find("/api"))), 401)
      << "a one-time link opens only a page";
}

TEST_F(HttpServerTest, AHostThatIsNotThisMachinesLoopbackIsRefused) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9418", "[::1]:1"}) {
    EXPECT_EQ(get("/healthz", {{"Host", host}}), 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:9418", "127.0.0.1.evil.example",
                           "localhost.evil.example", "10.0.0.1", "[2001:db8::1]:9418", ":"}) {
    EXPECT_EQ(get("/healthz", {{"Host", host}}), 403) << host;
    EXPECT_EQ(get(std::string("/?token=") + kToken, {{"Host", host}}), 403) << host;
  }
}

TEST(HttpServerHostTest, WhereThePortIsOpenToTheNetworkAnyNameWillDoForWhatIsOpen) {
  Server server({.host = "0.0.0.0", .token = kToken});
  server.open("/healthz", [](const Request&) { return Reply{}; });
  server.page("/", [](const Request&) { return Reply{}; });
  ASSERT_TRUE(server.start().ok());
  const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
  httplib::Client client("127.0.0.1", port);
  EXPECT_EQ(client.Get("/healthz", {{"Host", "node-1.example:9418"}})->status, 200);
  EXPECT_EQ(client.Get(std::string("/?token=") + kToken, {{"Host", "node-1.example"}})->status,
            403);
  EXPECT_EQ(server.url("/"), "http://127.0.0.1:" + std::to_string(port) + "/?token=" + kToken);
}

TEST_F(HttpServerTest, AChangeNeedsTheTokenAndThisOrigin) {
  httplib::Client client("127.0.0.1", port());
  const std::string origin = "http://" + server_.address();
  const auto post = [&](httplib::Headers headers) {
    return client.Post("/api/change", headers, "{}", "application/json")->status;
  };
  const std::string bearer = std::string("Bearer ") + kToken;
  EXPECT_EQ(post({{"Origin", origin}}), 401);
  EXPECT_EQ(post({{"Authorization", bearer}}), 403);
  EXPECT_EQ(post({{"Authorization", bearer}, {"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(post({{"Authorization", bearer}, {"Origin", "null"}}), 403);
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(post({{"Authorization", bearer}, {"Origin", origin}}), 200);
  EXPECT_EQ(changes_, 1);
}

// Sends these bytes, and returns all that the server sends until it closes the connection.
std::string answer_to(int port, const std::string& request) {
  const FileDescriptor fd = connect_to(port);
  std::size_t written = 0;
  EXPECT_EQ(write_all(fd.get(), request, &written), 0);
  std::string answer;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = read(fd.get(), piece.data(), piece.size())) > 0;) {
    answer.append(piece.data(), static_cast<std::size_t>(n));
  }
  return answer;
}

// This is what `curl -X POST` sends without -d.
TEST_F(HttpServerTest, AChangeWithoutABodyIsOneWithAnEmptyBody) {
  const std::string head = "POST /api/change HTTP/1.1\r\nHost: " + server_.address() +
                           "\r\nOrigin: http://" + server_.address() + "\r\n";
  const std::string bearer = "Authorization: Bearer " + std::string(kToken) + "\r\n";
  const std::string done = answer_to(port(), head + bearer + "\r\n");
  EXPECT_EQ(done.substr(0, 12), "HTTP/1.1 200") << done;
  EXPECT_EQ(changes_, 1);
  const std::string refused = answer_to(port(), head + "\r\n");
  EXPECT_EQ(refused.substr(0, 12), "HTTP/1.1 401") << refused;
  EXPECT_EQ(changes_, 1);
}

TEST_F(HttpServerTest, WhatIsRefusedBeforeItIsReadHasAnErrorObjectAsWell) {
  const std::string request = "POST /api/change HTTP/1.1\r\nHost: " + server_.address() +
                              "\r\nOrigin: http://" + server_.address() +
                              "\r\nAuthorization: Bearer " + std::string(kToken) +
                              "\r\nContent-Length: 20000\r\n\r\n" + std::string(20000, 'x');
  const std::string chunked = "POST /api/change HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [bytes, status] :
       {std::pair(request, "413"), std::pair(std::string("nonsense\r\n\r\n"), "400"),
        std::pair(std::string("GET / HTTP/1.0\n\n"), "400"), std::pair(chunked, "411")}) {
    const std::string answer = answer_to(port(), bytes);
    EXPECT_EQ(answer.substr(9, 3), status) << answer;
    EXPECT_NE(answer.find(R"({"error":{"code":"invalid_argument")"), std::string::npos) << answer;
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(HttpServerTest, ErrorsAreOneObject) {
  httplib::Client client("127.0.0.1", port());
  for (const auto& [path, status, code] : {std::tuple("/api/throw", 500, "internal"),
                                           std::tuple("/api/live?q=bad", 400, "invalid_argument"),
                                           std::tuple("/api/none", 404, "not_found")}) {
    const auto response = client.Get(path, kBearer);
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, status) << path;
    const auto json = nlohmann::json::parse(response->body);
    EXPECT_EQ(json["error"]["code"], code);
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty());
  }
}

TEST_F(HttpServerTest, APageRunsItsOwnScriptsAloneAndIsNotFramed) {
  httplib::Client client("127.0.0.1", port());
  for (const std::string& path : {std::string("/"), std::string("/?token=") + kToken}) {
    const auto response = client.Get(path);
    ASSERT_TRUE(response);
    const std::string policy = response->get_header_value("Content-Security-Policy");
    EXPECT_NE(policy.find("default-src 'none'; script-src 'nonce-"), std::string::npos) << policy;
    EXPECT_NE(policy.find("frame-ancestors 'self'"), std::string::npos) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
    EXPECT_EQ(response->get_header_value("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(response->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(response->body.find(kToken), std::string::npos);
  }
}

std::size_t resident_bytes() {
  const Result<std::string> text = read_file("/proc/self/statm");
  return std::stoul(text->substr(text->find(' '))) * static_cast<std::size_t>(getpagesize());
}

TEST_F(HttpServerTest, ARequestWithoutEndIsRefusedBeforeItIsMuch) {
  const std::string piece(1 << 20, 'a');
  for (const std::string& begin : {std::string("GET /"), std::string("GET / HTTP/1.1\r\nX: ")}) {
    const FileDescriptor fd = connect_to(port());
    const std::size_t before = resident_bytes();
    std::size_t written = 0;
    EXPECT_EQ(write_all(fd.get(), begin, &written), 0);
    int error = 0;
    for (int i = 0; i < 64 && error == 0; ++i) {
      const ssize_t sent = send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      error = sent < 0 ? errno : 0;
    }
    EXPECT_NE(error, 0) << "the server must not accept all of it";
    EXPECT_LT(resident_bytes(), before + (16U << 20U));
  }
  const std::string answer = answer_to(
      port(), "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'a') + "\r\n\r\n");
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 431") << answer;
  EXPECT_NE(answer.find(R"({"error":{"code":"invalid_argument")"), std::string::npos) << answer;
  EXPECT_EQ(get("/healthz"), 200);
}

TEST_F(HttpServerTest, ABodyIsNotLookedAt) {
  const std::string head = "POST /api/change?q=1 HTTP/1.1\r\nHost: " + server_.address() +
                           "\r\nOrigin: http://" + server_.address() +
                           "\r\nAuthorization: Bearer " + std::string(kToken) +
                           "\r\nContent-Length: 4\r\n";
  for (const char* kind :
       {"", "Content-Encoding: gzip\r\n", "Content-Type: multipart/form-data; boundary=a\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n"}) {
    const std::string answer = answer_to(port(), head + kind + "\r\nq=23");
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200") << answer;
    EXPECT_EQ(answer.substr(answer.size() - 5), "\r\n\r\n1") << answer;
  }
  EXPECT_EQ(changes_, 4);
}

TEST_F(HttpServerTest, AnswersAreNotCompressed) {
  const std::string answer = answer_to(
      port(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\naccept-Encoding: br, gzip\r\n\r\n");
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200") << answer;
  EXPECT_EQ(answer.find("Content-Encoding"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 7), "\r\n\r\nok\n") << answer;
}

TEST_F(HttpServerTest, RangesAreNotServed) {
  std::string ranges = "bytes=0-0";
  for (int i = 0; i < 2700; ++i) ranges += ",0-";
  const std::string answer = answer_to(
      port(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\nrAnge: " + ranges + "\r\n\r\n");
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200") << answer.substr(0, 400);
  EXPECT_EQ(answer.substr(answer.size() - 7), "\r\n\r\nok\n") << answer.substr(0, 400);
  // The HTTP library ends a line only at LF.
  for (const char* end : {"\n", "\r", "\r\r\n"}) {
    const std::string hidden =
        answer_to(port(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a" + std::string(end) +
                              "Range: " + ranges + "\r\n\r\n");
    EXPECT_EQ(hidden.substr(0, 12), "HTTP/1.1 400") << hidden.substr(0, 400);
  }
}

TEST(HttpServerDescriptorTest, OneBeyondWhatSelectTakesIsServed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit many = before;
  many.rlim_cur = 3000;
  if (before.rlim_max < many.rlim_cur) GTEST_SKIP() << "needs 3,000 descriptors";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
  {
    Server server({.token = kToken});
    server.open("/healthz", [](const Request&) { return Reply{200, "text/plain", "ok\n", {}}; });
    ASSERT_TRUE(server.start().ok());
    const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
    std::vector<FileDescriptor> used;
    while (used.empty() || used.back().get() < FD_SETSIZE) {
      used.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
      ASSERT_TRUE(used.back().valid());
    }
    const std::string answer = answer_to(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200") << answer;
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(HttpServerTest, CallersThatDawdleKeepNobodyOutAndAreLetGoOf) {
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 400; ++i) {
    slow.push_back(connect_to(port()));
    std::size_t written = 0;
    ASSERT_EQ(write_all(slow.back().get(), "GET /", &written), 0);
  }
  // Each of them sends a little more all the time.
  std::size_t gone = 0;
  while (gone < slow.size()) {
    ASSERT_EQ(get("/healthz"), 200);
    gone = 0;
    for (const FileDescriptor& fd : slow) {
      static_cast<void>(send(fd.get(), "x", 1, MSG_NOSIGNAL));
      pollfd end{fd.get(), POLLRDHUP, 0};
      if (poll(&end, 1, 0) == 1) ++gone;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST(HttpServerThreadsTest, WhereTheSystemGivesNoMoreThreadsThoseThatAreThereServe) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become a user without threads";
  const pid_t child = fork();
  if (child == 0) {
    const auto without_threads = [] {
      constexpr rlimit kNone{0, 0};
      return setrlimit(RLIMIT_NPROC, &kNone) == 0 && setuid(65534) == 0;
    };
    Server server({.token = kToken});
    server.open("/healthz", [](const Request&) { return Reply{200, "text/plain", "ok\n", {}}; });
    if (!server.start().ok() || !without_threads()) _exit(1);
    const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
    for (int i = 0; i < 3; ++i) {
      const std::string answer =
          answer_to(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
      if (answer.substr(0, 12) != "HTTP/1.1 200") _exit(2);
    }
    const Result<void> none = Server({.token = kToken}).start();
    _exit(!none.ok() && none.error().message.find("start a thread") != std::string::npos ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HttpServerTest, CallersThatSayNothingDoNotKeepOthersOut) {
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 40; ++i) sockets.push_back(connect_to(port()));
  EXPECT_EQ(get("/healthz"), 200);
}

TEST_F(PatientServerTest, FiftyStalledStreamsLeaveTheRestAnswering) {
  const auto stalled = stalled_streams(50);
  ASSERT_TRUE(test::eventually([&] { return open_ >= static_cast<int>(Server::kMaxStreams); }));
  EXPECT_EQ(get("/api/live", kBearer), 429);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(get("/healthz"), 200);
  EXPECT_EQ(open_, static_cast<int>(Server::kMaxStreams));
}

TEST_F(HttpServerTest, AStreamThatTakesNothingIsLetGoOf) {
  const auto stalled = stalled_streams(1);
  EXPECT_TRUE(test::eventually([&] { return opened_ == 1 && open_ == 0; }));
}

TEST_F(HttpServerTest, AStopEndsStreams) {
  std::thread reader([this] { static_cast<void>(get("/api/live", kBearer)); });
  ASSERT_TRUE(test::eventually([&] { return open_ == 1; }));
  server_.stop();
  EXPECT_EQ(open_, 0);
  reader.join();
}

TEST_F(PatientServerTest, AStopIsNotHeldUpByClientsThatStandStill) {
  const auto stalled = stalled_streams(8);
  ASSERT_TRUE(test::eventually([&] { return open_ == 8; }));
  server_.stop();
  EXPECT_EQ(open_, 0);
}

TEST(HttpServerStartTest, APortInUseIsNamed) {
  Server first({.token = kToken});
  ASSERT_TRUE(first.start().ok());
  const int port = std::stoi(first.address().substr(first.address().rfind(':') + 1));
  Server second({.port = static_cast<std::uint16_t>(port), .token = kToken});
  const Result<void> refused = second.start();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_NE(refused.error().message.find(first.address() + ": the port is in use"),
            std::string::npos)
      << refused.error().message;
}

TEST(HttpServerStartTest, AnAddressOfAnotherMachineIsRefused) {
  Server server({.host = "192.0.2.1", .token = kToken});
  EXPECT_FALSE(server.start().ok());
}

}  // namespace
}  // namespace kymo::http
