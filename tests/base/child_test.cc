#include "base/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "base/pipe.h"
#include "base/reap.h"
#include "base/text_file.h"

namespace kymo {
namespace {

std::string all_from(int fd) {
  std::string text;
  char one = 0;
  while (::read(fd, &one, 1) == 1) text += one;
  return text;
}

TEST(ForkChild, ItsExitCodeIsThatOfItsWorkOrOneIfThatThrows) {
  const auto code_of = [](const std::function<int()>& work) {
    const Result<pid_t> child = fork_child({}, work);
    return child ? how_it_ended(reap(*child)) : child.error().message;
  };
  EXPECT_EQ(code_of([] { return 7; }), "exited with status 7");
  EXPECT_EQ(code_of([]() -> int { throw std::runtime_error("no memory"); }),
            "exited with status 1");
}

TEST(ForkChild, ASilentOneHasOnlyWhatItKeeps) {
  Result<Pipe> kept = make_pipe();
  Result<Pipe> other = make_pipe();
  ASSERT_TRUE(kept.ok() && other.ok());
  const int to = kept->to.get();
  const Result<pid_t> child =
      fork_child({.silent = true, .keeps = {to}}, [to, closed = other->to.get()] {
        struct stat seen {};
        struct stat nothing {};
        const bool quiet = ::stat("/dev/null", &nothing) == 0 && ::fstat(1, &seen) == 0 &&
                           seen.st_rdev == nothing.st_rdev;
        const bool is_closed = ::fstat(closed, &seen) != 0;
        return quiet && is_closed && ::write(to, "kept", 4) == 4 ? 0 : 2;
      });
  ASSERT_TRUE(child.ok());
  kept->to.reset();
  EXPECT_EQ(all_from(kept->from.get()), "kept");
  EXPECT_EQ(how_it_ended(reap(*child)), "exited with status 0");
}

TEST(ForkChild, ItIsKilledWhenTheThreadThatStartedItEndsOrLivesOn) {
  for (const auto ends : {ChildLife::Ends::with_parent, ChildLife::Ends::by_itself}) {
    Result<Pipe> gate = make_pipe();
    Result<Pipe> ready = make_pipe();
    ASSERT_TRUE(gate.ok() && ready.ok());
    pid_t pid = 0;
    std::thread([&] {
      const Result<pid_t> child = fork_child({.ends = ends}, [&] {
        gate->to.reset();
        if (::write(ready->to.get(), "r", 1) != 1) return 5;
        return all_from(gate->from.get()).empty() ? 3 : 4;
      });
      pid = child ? *child : 0;
      char begun = 0;
      EXPECT_EQ(::read(ready->from.get(), &begun, 1), 1) << "it must have asked for the signal";
    }).join();
    ASSERT_GT(pid, 0);
    if (ends == ChildLife::Ends::by_itself) gate->to.reset();
    EXPECT_EQ(how_it_ended(reap(pid)), ends == ChildLife::Ends::by_itself
                                           ? "exited with status 3"
                                           : "was ended by signal 9 (SIGKILL)");
  }
}

TEST(ForkChild, OneOnDutyIgnoresTheSignalsOfATerminalAndHasItsName) {
  const Result<pid_t> child = fork_child({.name = "a-child", .on_duty = true}, [] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::raise(signal);
    const Result<std::string> name = read_file("/proc/self/comm");
    return name && *name == "a-child\n" ? 0 : 2;
  });
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(how_it_ended(reap(*child)), "exited with status 0");
}

}  // namespace
}  // namespace kymo
