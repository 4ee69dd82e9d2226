#include "daemon/serve/valid_text.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(ValidTextTest, ANulInATextOfARequestWasAccepted) {
  using std::string_literals::operator""s;
  v1::RunRequest run;
  run.set_name("web");
  run.add_command("sleep");
  run.add_command("1000");
  EXPECT_TRUE(check_texts("run", run));
  run.add_command("a\0b"s);
  const Result<void> refused = check_texts("run", run);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_EQ(refused.error().message,
            "cannot run: command has a NUL byte in it; give a text without one");
  v1::FreezeRequest freeze;
  freeze.mutable_target()->mutable_container()->set_name("web\0other"s);
  EXPECT_EQ(check_texts("freeze", freeze).error().message,
            "cannot freeze: name has a NUL byte in it; give a text without one");
}

}  // namespace
}  // namespace kymo::daemon
