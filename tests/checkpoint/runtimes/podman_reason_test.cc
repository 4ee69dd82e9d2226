#include "checkpoint/runtimes/podman/podman_reason.h"

#include <gtest/gtest.h>

namespace kymo::runtime {
namespace {

TEST(PodmanReason, IsTheLastLineOfItsErrors) {
  EXPECT_EQ(podman_reason("time=1 level=warning\nError: no such container web\n"),
            "no such container web");
  EXPECT_EQ(podman_reason(""), "");
}

// podman names only the number of a limit.
TEST(PodmanReason, SaysWhatToDoAboutALimit) {
  const std::string begin =
      "OCI runtime error: runc: runc create failed: unable to start container process: ";
  const std::string reason =
      podman_reason("Error: " + begin + "error setting rlimit type 7: operation not permitted");
  EXPECT_EQ(reason.find(begin), 0U) << reason;
  EXPECT_NE(reason.find("--ulimit nofile=20000:20000"), std::string::npos) << reason;
  EXPECT_NE(podman_reason("Error: crun: setrlimit `RLIMIT_NPROC`: Operation not permitted")
                .find("--ulimit"),
            std::string::npos);
}

TEST(PodmanReason, HasWhatItsRuncSaysOfACriuThatDied) {
  EXPECT_EQ(podman_reason("time=1 level=error msg=\"read unixpacket @->@: EOF\"\n"
                          "Error: `/usr/bin/runc checkpoint web` failed: exit status 1\n"),
            "`/usr/bin/runc checkpoint web` failed: exit status 1 (read unixpacket @->@: EOF)");
}

}  // namespace
}  // namespace kymo::runtime
