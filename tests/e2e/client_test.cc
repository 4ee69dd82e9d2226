// Uses the client of kymod's API in a program that forks.

#include "client/client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "probe/process.h"
#include "programs.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

TEST(ClientTest, ItsThreadsCanBeEnded) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const std::size_t before = probe::threads_of(getpid()).size();
  {
    Result<client::Client> client = client::Client::connect(kymod.socket());
    ASSERT_TRUE(client.ok()) << client.error().message;
    ASSERT_TRUE(client->list().ok());
    EXPECT_GT(probe::threads_of(getpid()).size(), before);
  }
  client::end_threads();
  EXPECT_EQ(probe::threads_of(getpid()).size(), before);
}

// What gRPC answers to a call that comes while its server stops.
class StoppingServer final : public v1::Kymo::Service {
 public:
  grpc::Status Watch(grpc::ServerContext* /*context*/, const v1::WatchRequest* /*request*/,
                     grpc::ServerWriter<v1::Progress>* /*writer*/) override {
    return grpc::Status::CANCELLED;
  }
  grpc::Status List(grpc::ServerContext* /*context*/, const v1::ListRequest* /*request*/,
                    v1::ListResponse* /*response*/) override {
    return grpc::Status::CANCELLED;
  }
};

// Before the fix, a watcher whose call came while kymod stopped was told that no dump runs, and `kymo progress` ended
// with the exit code 0.
TEST(ClientTest, ACallThatTheStoppingDaemonCancelsIsNoSuccess) {
  const TemporaryDirectory folder;
  const std::string socket = folder.path() + "/kymod.sock";
  StoppingServer service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  Result<client::Client> client = client::Client::connect(socket);
  ASSERT_TRUE(client.ok()) << client.error().message;
  grpc::ClientContext call;
  const auto watched = client->watch(
      {}, [](const v1::Progress&) { return true; }, call);
  ASSERT_FALSE(watched.ok());
  EXPECT_EQ(watched.error().code, Code::unavailable);
  EXPECT_NE(watched.error().message.find("the connection was closed"), std::string::npos)
      << watched.error().message;
  EXPECT_EQ(client->list().error().code, Code::unavailable);
}

}  // namespace
}  // namespace kymo::test
