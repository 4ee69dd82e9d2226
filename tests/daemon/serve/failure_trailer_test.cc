#include "daemon/serve/failure_trailer.h"

#include <gtest/gtest.h>

#include "api/kymo/v1/findings.pb.h"

namespace kymo::daemon {
namespace {

v1::Failure failure_of(const Error& error) {
  v1::Failure failure;
  EXPECT_TRUE(failure.ParseFromString(failure_trailer(error)));
  return failure;
}

TEST(FailureTrailerTest, HasTheExplanationThatTheMessageNames) {
  const v1::Failure failure = failure_of(
      {Code::failed_precondition,
       "criu could not dump process 12: a deleted file that is still in use is larger than CRIU "
       "copies (file /tmp/x). Pass it (failure ghost-big; CRIU: Error (x.c:1): Can't dump ghost "
       "file /tmp/x) (log: /c/work/dump.log)"});
  EXPECT_EQ(failure.id(), "ghost-big");
  EXPECT_NE(failure.remedy().find("--ghost-limit"), std::string::npos) << failure.remedy();
  EXPECT_NE(failure.why(), "");
  EXPECT_NE(failure.retry(), "");
  EXPECT_EQ(failure.root(), "Error (x.c:1): Can't dump ghost file /tmp/x");
}

TEST(FailureTrailerTest, AFailureOfKymodItselfHasItsOwnId) {
  EXPECT_EQ(failure_of({Code::deadline_exceeded, "too late"}).id(), "deadline");
  const v1::Failure unknown = failure_of({Code::not_found, "there is no job 'x'"});
  EXPECT_EQ(unknown.id(), "unknown");
  EXPECT_EQ(unknown.what(), "there is no job 'x'");
}

TEST(FailureTrailerTest, LongTextsAreCutBetweenCharactersAndWhatIsNoTextIsReplaced) {
  std::string text;
  while (text.size() < 20'000) text += "\xc3\xa4";
  for (const std::string& message : {text, std::string(20'000, '\xff')}) {
    EXPECT_LE(failure_trailer({Code::internal, message}).size(), kMaxFailureBytes);
    EXPECT_NE(failure_of({Code::internal, message}).what(), "");
  }
}

}  // namespace
}  // namespace kymo::daemon
