// What an attacker can do who controls the process that reads the names of functions, through a
// program file.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/confine/run.h"
#include "base/sanitizers.h"
#include "profiler/stacks/confined_pprof.h"
#include "support/temporary_folder.h"

namespace kymo::stacks {
namespace {

// Tries to do harm. Returns the attempts that succeeded.
std::string do_harm(const std::string& folder, int given) {
  std::string done;
  const auto tried = [&](const char* what, bool succeeded) {
    if (succeeded) done += std::string(what) + ' ';
  };
  tried("reads-passwd", ::open("/etc/passwd", O_RDONLY) >= 0);
  tried("reads-beside", ::open((folder + "/beside").c_str(), O_RDONLY) >= 0);
  tried("makes-a-file", ::open((folder + "/made").c_str(), O_WRONLY | O_CREAT, 0644) >= 0);
  tried("removes-a-file", ::unlink((folder + "/beside").c_str()) == 0);
  tried("writes-the-module", ::pwrite(given, "x", 1, 0) == 1);
  tried("cuts-the-module", ::ftruncate(given, 0) == 0);
  tried("opens-a-socket", ::socket(AF_INET, SOCK_STREAM, 0) >= 0);
  tried("kills", ::kill(::getppid(), 0) == 0);
  tried("traces", ::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr) == 0);
  tried("runs-a-program", ::execl("/bin/true", "true", nullptr) == 0);
  tried("starts-a-process", ::fork() >= 0);
  return done;
}

class NamingTest : public TemporaryFolderTest {};

TEST_F(NamingTest, WhoeverTakesOverTheReaderOfNamesCanOnlyReadTheModules) {
  if (KYMO_SANITIZER) GTEST_SKIP() << "a build with a sanitizer has no filter of system calls";
  std::ofstream(in_folder("module")) << "text of the module";
  std::ofstream(in_folder("beside")) << "a secret";
  Module module;
  module.path = in_folder("module");
  module.file = FileDescriptor(::open(module.path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(module.file.valid());
  Profile profile;
  Trace trace;
  trace.frames = {{&module, 1}};
  profile.traces[trace] = {1, 1};
  const int given = module.file.get();
  const NamingPlan plan(profile);
  const Result<std::string> done =
      confine::read_confined(naming_bounds(plan), [&]() -> Result<std::string> {
        std::string text(4, '\0');
        const bool reads = ::pread(given, text.data(), text.size(), 0) == 4 && text == "text";
        return do_harm(in_folder(""), given) + (reads ? "reads the module" : "");
      });
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(*done, "reads the module");
}

// A module makes the process that reads it end, with or without its debugging information.
TEST_F(NamingTest, AModuleThatEndsItsReaderLosesItsNamesAlone) {
  Module good;
  good.path = "/proc/self/exe";
  good.file = FileDescriptor(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  Module bad;
  bad.path = in_folder("bad");
  Profile profile;
  Trace trace;
  trace.frames = {{&good, 1}, {&bad, 1}};
  profile.traces[trace] = {1, 1};
  NamingPlan plan(profile);
  EXPECT_EQ(plan.files(), std::vector<int>{good.file.get()});
  int tries = 0;
  const auto read = [&](bool says_what_it_reads) {
    ++tries;
    return confine::read_confined(naming_bounds(plan), [&]() -> Result<std::string> {
      if (says_what_it_reads) plan.reads(&good);
      if (says_what_it_reads) plan.reads(&bad);
      if (plan.of(bad) != NamingPlan::Detail::nothing) __builtin_trap();
      return std::string("named");
    });
  };
  Result<std::string> named = read(true);
  while (!named && plan.read_less()) named = read(true);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(plan.of(good), NamingPlan::Detail::all);
  EXPECT_EQ(plan.left_out(),
            "the symbols of " + bad.path + " could not be read: its functions have no names");

  // If it is not known which module ended the process, none is read.
  NamingPlan blind(profile);
  const Module other;
  blind.reads(&other);
  EXPECT_TRUE(blind.read_less());
  EXPECT_EQ(blind.of(good), NamingPlan::Detail::nothing);
  EXPECT_FALSE(blind.read_less()) << "the reading must not be tried without end";
}

}  // namespace
}  // namespace kymo::stacks
