#include "base/confine/run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/sanitizers.h"
#include "support/temporary_directory.h"

namespace kymo::confine {
namespace {

constexpr bool kNoFilter = KYMO_SANITIZER;

int threads_started() {
  int started = 0;
  try {
    std::vector<std::jthread> threads;
    for (int i = 0; i != 4; ++i) {
      threads.emplace_back([] {});
      ++started;
    }
  } catch (const std::system_error&) {  // no thread can be started
  }
  return started;
}

TEST(RunTest, TheAnswerAndTheExitCodeOfTheChildAreReturned) {
  const std::string large(3'000'000, 'x');
  const Result<Answer> answer = ask_confined({}, [&](std::string& text) {
    text = large;
    return 3;
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->exit_code, 3);
  EXPECT_EQ(answer->text, large);
  Bounds few;
  few.answer_bytes = 1000;
  const Result<Answer> refused = ask_confined(few, [&](std::string& text) {
    text = large;
    return 0;
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::resource_exhausted);
}

TEST(RunTest, WritesOnlyToWhatIsOpen) {
  if (kNoFilter) GTEST_SKIP() << "a build with a sanitizer has no filter of system calls";
  const test::TemporaryDirectory folder;
  const std::string open_file = folder.file("open", "");
  const std::string other = folder.file("other", "precious");
  const FileDescriptor fd(::open(open_file.c_str(), O_WRONLY | O_CLOEXEC));
  Bounds bounds;
  bounds.readable = {folder.path()};
  bounds.descriptors = {fd.get()};
  const Result<int> code = run_confined(bounds, [&] {
    const bool written = ::write(fd.get(), "text", 4) == 4 && ::pwrite(fd.get(), "T", 1, 0) == 1;
    const bool refused = ::open(other.c_str(), O_WRONLY) < 0 && ::unlink(other.c_str()) != 0;
    return written && refused ? 0 : 1;
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(read_file(open_file).value(), "Text");
  EXPECT_EQ(read_file(other).value(), "precious");
}

TEST(RunTest, StartsThreadsOnlyIfItMayAndNeverAProcess) {
  if (kNoFilter) GTEST_SKIP() << "a build with a sanitizer has no filter of system calls";
  Bounds bounds;
  EXPECT_EQ(run_confined(bounds, threads_started).value(), 0);
  bounds.threads = true;
  EXPECT_EQ(run_confined(bounds, threads_started).value(), 4);
  const Result<int> forked = run_confined(bounds, [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    return child < 0 ? 0 : 1;
  });
  EXPECT_EQ(forked.value(), 0);
}

// A path that does not exist, or that leads to a pipe without a name, must not keep the process
// from starting.
TEST(RunTest, APathThatCannotBeOpenedIsNoError) {
  const test::TemporaryDirectory folder;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor from(ends[0]);
  const FileDescriptor to(ends[1]);
  Bounds bounds;
  bounds.readable = {folder.path() + "/none", folder.file("file", "") + "/in a file",
                     "/dev/fd/" + std::to_string(from.get())};
  const Result<int> code = run_confined(bounds, [] { return 7; });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 7);
}

// Otherwise this process would keep the lock of an export after its kymo was killed.
TEST(RunTest, EndsWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Bounds bounds;
    bounds.descriptors = {to.get()};
    static_cast<void>(run_confined(bounds, [&] {
      static_cast<void>(::write(to.get(), "x", 1));
      std::this_thread::sleep_for(std::chrono::seconds(60));
      return 0;
    }));
    ::_exit(0);
  }
  to.reset();
  char begun = 0;
  ASSERT_EQ(::read(from.get(), &begun, 1), 1);
  ASSERT_EQ(::kill(parent, SIGKILL), 0);
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  EXPECT_EQ(::read(from.get(), &begun, 1), 0)
      << "end of file: no process has the pipe open any more";
}

}  // namespace
}  // namespace kymo::confine
