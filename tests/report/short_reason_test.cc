#include "report/short_reason.h"

#include <gtest/gtest.h>

namespace kymo::report {
namespace {

TEST(ShortReason, AShortErrorStaysWhole) {
  EXPECT_EQ(short_reason(""), "");
  EXPECT_EQ(short_reason("cut short: kymod ended during the dump"),
            "cut short: kymod ended during the dump");
}

TEST(ShortReason, TheCauseIsKeptAndWhatWasTriedAndWhatToDoAreNot) {
  EXPECT_EQ(short_reason("cannot dump process 4711 (job web-1) into "
                         "/var/lib/kymo/checkpoints/web-1-0001: criu dump failed: sockets: Can't "
                         "get 1:16 opt: Operation not supported; see /var/lib/kymo/dump.log"),
            "criu dump failed: sockets: Can't get 1:16 opt: Operation not supported");
}

TEST(ShortReason, WhatHasNoPartsIsCutAndNothingATerminalObeysGetsThrough) {
  const std::string cut = short_reason(std::string(400, 'x'));
  EXPECT_EQ(cut.size(), 80U);
  EXPECT_TRUE(cut.ends_with("xx.."));
  EXPECT_EQ(short_reason("red \x1b[31m and \xE2\x80\xAE turned\nsecond line"),
            "red ?[31m and ? turned");
}

}  // namespace
}  // namespace kymo::report
