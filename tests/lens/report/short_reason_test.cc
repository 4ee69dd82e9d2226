#include "lens/report/short_reason.h"

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

TEST(ShortReason, PlacesAndAsidesAreNotTheReason) {
  EXPECT_EQ(short_reason("dump process 4711 (job web): criu could not dump process 4711: Error "
                         "(criu/sk-unix.c:862): unix: External socket is used. Consider using "
                         "--ext-unix-sk option. (log: /var/lib/kymo/checkpoints/web/dump.log)"),
            "Error: unix: External socket is used. Consider using --ext-unix-sk option.");
  EXPECT_EQ(short_reason("dump process 4711 (job web): it did not end within its deadline of 150 "
                         "ms (criu '/usr/sbin/criu' did not answer within 143 ms and was killed; "
                         "the process runs on)"),
            "dump process 4711: it did not end within its deadline of 150 ms");
}

TEST(ShortReason, OfAnExplainedFailureIsWhatHappenedWithoutItsRemedy) {
  EXPECT_EQ(short_reason("dump process 4711 (job web): criu could not dump process 4711: a process "
                         "has an open TCP connection (process 4711). Pass --tcp-established to "
                         "dump and restore; or close it. (failure tcp-established; CRIU: Error "
                         "(criu/sk-inet.c:190): inet: Connected TCP socket, consider using "
                         "--tcp-established option.) (log: /var/lib/kymo/dump.log)"),
            "criu could not dump process 4711: a process has an open TCP connection");
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
