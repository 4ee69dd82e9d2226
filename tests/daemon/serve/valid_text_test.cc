#include "daemon/serve/valid_text.h"

#include <gtest/gtest.h>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::daemon {
namespace {

TEST(ValidTextTest, BytesThatAreNoTextAreReplacedAtAnyDepth) {
  v1::ListResponse response;
  v1::Job& job = *response.add_jobs();
  job.set_name("b\x9b\x64");
  job.add_command("sh");
  job.add_command("ä\xff");
  make_valid_utf8(response);
  EXPECT_EQ(response.jobs(0).name(), "b\uFFFDd");
  EXPECT_EQ(response.jobs(0).command(0), "sh");
  EXPECT_EQ(response.jobs(0).command(1), "ä\uFFFD");
}

}  // namespace
}  // namespace kymo::daemon
