#include "runtime/container_end.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// A CRIU that has not begun is killed at once. With a link to any text in place of its log, it was
// taken for one that has begun, and kymod waited for its end.
TEST(ContainerEndTest, ALinkInPlaceOfTheLogIsNoSignOfACriuThatHasBegun) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.path() + "/dump.log";
  std::filesystem::create_symlink(folder.file("other", "text"), log);
  // If each were waited for, they would together take longer than a test may.
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
