#include "daemon/serve/failure_trailer.h"

#include <gtest/gtest.h>

#include "api/kymo/v1/findings.pb.h"
#include "checkpoint/failures/explain.h"

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
  EXPECT_EQ(failure_of({Code::not_found, "there is no job 'x'"}).id(), "not-found");
  const v1::Failure unknown = failure_of({Code::internal, "something is odd"});
  EXPECT_EQ(unknown.id(), "unknown");
  EXPECT_EQ(unknown.what(), "something is odd");
}

// The remedies of two entries were cut in the middle of a word.
TEST(FailureTrailerTest, NoTextOfTheCatalogueIsCut) {
  const std::string path =
      "/var/lib/containers/storage/overlay/" + std::string(64, 'a') + "/merged/data";
  for (const failures::Entry& entry : failures::catalogue()) {
    if (entry.id == "unknown") continue;  // the message itself is shown
    const failures::Explanation why{
        entry.id,    entry.what + " (file " + path + ", process 4194304)",
        entry.why,   entry.remedy,
        entry.retry, {},
        {}};
    const v1::Failure failure = failure_of({Code::internal, failures::one_line(why)});
    EXPECT_EQ(failure.id(), entry.id);
    EXPECT_EQ(failure.why(), entry.why);
    EXPECT_EQ(failure.remedy(), entry.remedy);
    EXPECT_EQ(failure.retry(), entry.retry);
    EXPECT_EQ(failure.what(), why.what);
  }
}

TEST(FailureTrailerTest, ALongTextEndsAfterAWordAndSaysThatThereIsMore) {
  std::string text = "there is no job";
  while (text.size() < 1000) text += " elephants";
  const std::string what = failure_of({Code::not_found, text}).what();
  EXPECT_TRUE(what.ends_with(" elephants…")) << what;
  EXPECT_GT(what.size(), 200U);
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
