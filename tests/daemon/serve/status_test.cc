#include "daemon/serve/status.h"

#include <gtest/gtest.h>

#include "daemon/serve/trailer_text.h"

namespace kymo::daemon {
namespace {

TEST(StatusTest, AnErrorKeepsItsCodeAndText) {
  const grpc::Status status = status_of({Code::unavailable, "the database is locked"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the database is locked");
  EXPECT_EQ(status.error_details(), "\x08\x0e") << "google.rpc.Status{code: 14}";
}

// A caller refuses more than 8 KiB of trailers.
TEST(StatusTest, ALongTextIsCutToWhatCallersAccept) {
  for (const std::string& unit : {std::string("x"), std::string("\n"), std::string("ä")}) {
    std::string text;
    while (text.size() < 20'000) text += unit;
    const std::string sent = status_of({Code::internal, text}).error_message();
    EXPECT_LE(sent_bytes(sent), kMaxMessageBytes);
    EXPECT_GT(sent_bytes(sent), kMaxMessageBytes - 16);
    EXPECT_TRUE(sent.ends_with("... (cut: kymod's log has all of it)")) << sent;
    EXPECT_EQ(sent.substr(0, unit.size()), unit);
    const std::size_t kept = sent.find(" ...");
    EXPECT_EQ(kept % unit.size(), 0U) << "the text must not be cut inside a character";
  }
}

TEST(StatusTest, OneThatJustFitsIsSentWhole) {
  const std::string text(kMaxMessageBytes, 'x');
  EXPECT_EQ(status_of({Code::internal, text}).error_message(), text);
}

}  // namespace
}  // namespace kymo::daemon
