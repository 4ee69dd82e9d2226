// Uses the client of kymod's API in a program that forks.

#include "client/client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/proc/process.h"
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

TEST(ClientTest, ANulInANameOrACommandIsRefused) {
  using std::string_literals::operator""s;
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  Result<client::Client> client = client::Client::connect(kymod.socket());
  ASSERT_TRUE(client.ok()) << client.error().message;
  v1::RunRequest run;
  run.set_name("work");
  run.add_command("sleep");
  run.add_command("1\0000"s);
  const auto cut = client->run(run);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, Code::invalid_argument);
  EXPECT_NE(cut.error().message.find("command has a NUL byte in it"), std::string::npos)
      << cut.error().message;
  run.set_command(1, "1000");
  run.set_name("work\0other"s);
  EXPECT_EQ(client->run(run).error().code, Code::invalid_argument);
  EXPECT_EQ(client->list()->jobs_size(), 0);
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
