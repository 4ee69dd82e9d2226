// Uses the client of kymod's API in a program that forks.

#include "client/client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "probe/process.h"
#include "programs.h"
#include "support/real_criu.h"

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

}  // namespace
}  // namespace kymo::test
