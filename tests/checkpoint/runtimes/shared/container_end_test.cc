#include "checkpoint/runtimes/shared/container_end.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// A CRIU that has not started its work is killed at once.
TEST(ContainerEndTest, ALinkInPlaceOfTheLogIsNoSignOfACriuThatHasBegun) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.path() + "/dump.log";
  std::filesystem::create_symlink(folder.file("other", "text"), log);
  // If kymod waited each time, all calls would take longer than the limit of a test.
  for (int i = 0; i < 20; ++i) {
    const pid_t session = fork();
    if (session == 0) {
      setsid();
      for (;;) pause();
    }
    ASSERT_TRUE(test::eventually([&] { return getsid(session) == session; }));
    end_container_dump(log, {}, {session});
    int status = 0;
    EXPECT_EQ(waitpid(session, &status, 0), session);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
}

}  // namespace
}  // namespace kymo::runtime
