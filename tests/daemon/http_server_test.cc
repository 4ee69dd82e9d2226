#include "daemon/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include "base/file.h"
#include "kymo/prometheus.h"
#include "kymo/registry.h"

namespace kymo::daemon {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.counter({.name = "requests", .help = "Requests served"}).ok());
    server_ = std::make_unique<HttpServer>(make_prometheus_collectable(registry_));
    ASSERT_TRUE(server_->start({"127.0.0.1", 0}).ok());
  }
  [[nodiscard]] int port() const {
    return std::stoi(server_->address().substr(server_->address().rfind(':') + 1));
  }
  // The status; 0: no answer.
  [[nodiscard]] int get(const std::string& path, const std::string& host = "") const {
    httplib::Client client("127.0.0.1", port());
    httplib::Headers headers;
    if (!host.empty()) headers.emplace("Host", host);
    const auto response = client.Get(path, headers);
    return response ? response->status : 0;
  }

  Registry registry_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesMetricsAndHealth) {
  httplib::Client client("127.0.0.1", port());
  const auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_NE(metrics->body.find("kymo_requests_total 0\n"), std::string::npos) << metrics->body;
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->body, "ok\n");
}

TEST_F(HttpServerTest, EveryOtherPathIs404) {
  for (const char* path : {"/", "/metrics/", "/metrics/..", "/healthz/../etc/passwd", "/..",
                           "/%2e%2e/etc/passwd", "//etc/passwd", "/favicon.ico"}) {
    EXPECT_EQ(get(path), 404) << path;
  }
  httplib::Client client("127.0.0.1", port());
  for (const auto& response : {client.Post("/metrics"), client.Put("/healthz", "", "text/plain"),
                               client.Delete("/metrics")}) {
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 404);
  }
}

// A site's page once could have read the metrics by giving its name the address 127.0.0.1.
TEST_F(HttpServerTest, AHostThatIsNotThisMachinesLoopbackIsRefused) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9418", "[::1]:1"}) {
    EXPECT_EQ(get("/metrics", host), 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:9418", "127.0.0.1.evil.example",
                           "localhost.evil.example", "10.0.0.1", "[2001:db8::1]:9418", ":"}) {
    EXPECT_EQ(get("/metrics", host), 403) << host;
    EXPECT_EQ(get("/healthz", host), 403) << host;
  }
}

TEST(HttpServerHostTest, WhereThePortIsOpenToTheNetworkAnyNameWillDo) {
  Registry registry;
  HttpServer server(make_prometheus_collectable(registry));
  ASSERT_TRUE(server.start({"0.0.0.0", 0}).ok());
  const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
  httplib::Client client("127.0.0.1", port);
  const auto response = client.Get("/healthz", {{"Host", "node-1.example:9418"}});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
}

TEST_F(HttpServerTest, CallersThatSayNothingDoNotKeepOthersOut) {
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 2; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        connect(fd.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)),
        0);
    sockets.push_back(std::move(fd));
  }
  EXPECT_EQ(get("/healthz"), 200);
}

TEST(HttpServerStartTest, APortInUseIsNamed) {
  Registry registry;
  HttpServer first(make_prometheus_collectable(registry));
  ASSERT_TRUE(first.start({"127.0.0.1", 0}).ok());
  const int port = std::stoi(first.address().substr(first.address().rfind(':') + 1));
  HttpServer second(make_prometheus_collectable(registry));
  const Result<void> refused = second.start({"127.0.0.1", static_cast<std::uint16_t>(port)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_NE(refused.error().message.find(first.address() + ": the port is in use"),
            std::string::npos)
      << refused.error().message;
}

TEST(HttpServerStartTest, AnAddressOfAnotherMachineIsRefused) {
  Registry registry;
  HttpServer server(make_prometheus_collectable(registry));
  EXPECT_FALSE(server.start({"192.0.2.1", 0}).ok());
}

}  // namespace
}  // namespace kymo::daemon
