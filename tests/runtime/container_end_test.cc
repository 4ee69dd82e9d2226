#include "runtime/container_end.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

using std::chrono::steady_clock;

// A CRIU that has not begun is killed at once. With a link to any text in place of its log, it was
// taken for one that has begun, and kymod waited for its end.
TEST(ContainerEndTest, ALinkInPlaceOfTheLogIsNoSignOfACriuThatHasBegun) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.path() + "/dump.log";
  std::filesystem::create_symlink(folder.file("other", "text"), log);
  const pid_t session = fork();
  if (session == 0) {
    setsid();
    for (;;) pause();
  }
  ASSERT_TRUE(test::eventually([&] { return getsid(session) == session; }));
  const auto began = steady_clock::now();
  end_container_dump(log, {}, {session});
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(3));
  int status = 0;
  EXPECT_EQ(waitpid(session, &status, 0), session);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace kymo::runtime
