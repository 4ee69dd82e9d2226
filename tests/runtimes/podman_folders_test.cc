#include "runtimes/podman/podman_folders.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

const Error kSilent{Code::deadline_exceeded, "podman does not answer"};

// Before the fix, the containers of a podman that did not answer when kymod started were never found.
TEST(PodmanFolders, PodmanIsAskedUntilItAnswers) {
  std::atomic<int> asked = 0;
  PodmanFolders folders([&](std::chrono::milliseconds, const Cancellation*) -> Result<PodmanStore> {
    if (++asked == 1) return kSilent;
    return PodmanStore{"/containers", "/run/containers"};
  });
  EXPECT_FALSE(folders.known());
  ASSERT_TRUE(test::eventually([&] { return folders.known().has_value(); }));
  EXPECT_EQ(folders.known()->containers, "/containers");
  EXPECT_EQ(folders.store()->run_containers, "/run/containers");
  EXPECT_EQ(asked, 2);
}

TEST(PodmanFolders, NobodyWaitsForASecondQuestionAndItEndsWithTheObject) {
  std::atomic<int> asked = 0;
  PodmanFolders folders(
      [&](std::chrono::milliseconds, const Cancellation* over) -> Result<PodmanStore> {
        if (++asked == 1) return kSilent;
        pollfd ended{over->fd(), POLLIN, 0};
        poll(&ended, 1, -1);
        return kSilent;
      });
  EXPECT_FALSE(folders.known());
  ASSERT_TRUE(test::eventually([&] {
    EXPECT_FALSE(folders.known());
    return asked == 2;
  }));
}

}  // namespace
}  // namespace kymo::runtime
