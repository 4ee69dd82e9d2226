#include "checkpoint/runtimes/shared/process_checks.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <pty.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/proc/process.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// A child that only waits, in a session of its own. It is killed at the end.
class Sleeper {
 public:
  explicit Sleeper(uid_t uid = getuid()) : pid_(fork()) {
    if (pid_ == 0) {
      if (setuid(uid) != 0) {
        _exit(1);
      }
      closefrom(0);  // closes the terminal in which the tests may run
      setsid();
      pause();
      _exit(0);
    }
    EXPECT_TRUE(test::eventually([this] { return getsid(pid_) == pid_; }));
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class DumpChecks : public testing::Test {
 protected:
  // The message of the refusal, or empty if the dump is permitted.
  std::string refusal(const DumpSpec& spec) {
    const Result<DumpTarget> target = check_dump(spec);
    return target ? "" : target.error().message;
  }
  DumpSpec spec(pid_t pid, std::uint64_t start_ticks = 0) {
    return {{pid, start_ticks}, folder_.folder("images"), folder_.folder("work"), false};
  }

  test::TemporaryDirectory folder_;
};

TEST_F(DumpChecks, AProcessThatCanBeDumpedPasses) {
  const Sleeper sleeper;
  EXPECT_EQ(refusal(spec(sleeper.pid())), "");
}

TEST_F(DumpChecks, RefusesAPidThatNoProcessHas) {
  constexpr pid_t kNone = 1 << 22;  // Linux gives lower ones only
  const std::string pid = std::to_string(kNone);
  EXPECT_EQ(refusal(spec(kNone)),
            "cannot dump process " + pid + ": there is no process " + pid + "; see ps");
}

TEST_F(DumpChecks, RefusesInvalidPids) {
  for (const pid_t pid : {0, -1}) {
    EXPECT_NE(refusal(spec(pid)).find("a pid is a number above 0"), std::string::npos);
  }
}

TEST_F(DumpChecks, RefusesAKernelThread) {
  const Result<probe::Process> second = probe::read_process(2);
  if (!second || !second->kernel_thread) {
    GTEST_SKIP() << "process 2 is no kernel thread here: this is a container";
  }
  EXPECT_NE(refusal(spec(2)).find("it is the kernel thread [kthreadd]"), std::string::npos)
      << refusal(spec(2));
}

TEST_F(DumpChecks, RefusesAPidThatAnotherProcessHasNow) {
  const Sleeper sleeper;
  const std::uint64_t ticks = probe::read_process(sleeper.pid())->start_ticks;
  EXPECT_EQ(refusal(spec(sleeper.pid(), ticks)), "");
  EXPECT_NE(refusal(spec(sleeper.pid(), ticks + 1)).find("the process that had this pid is gone"),
            std::string::npos);
}

TEST_F(DumpChecks, RefusesAZombie) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_NE(refusal(spec(child)).find("has not reaped it yet"), std::string::npos);
  waitpid(child, nullptr, 0);
}

TEST_F(DumpChecks, RefusesItselfAndWhatStartedIt) {
  EXPECT_NE(refusal(spec(getpid())).find("would freeze it"), std::string::npos);
  if (getppid() > 1) {
    EXPECT_NE(refusal(spec(getppid())).find("would freeze it"), std::string::npos);
  }
}

// CRIU would dump such a process with --shell-job, but no daemon can restore it.
TEST_F(DumpChecks, RefusesAProcessOnATerminalOfAnotherBeforeItIsLost) {
  int master = -1;
  const pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(pid, 0);
  DumpSpec on_terminal = spec(pid);
  for (const bool shell_job : {false, true}) {
    on_terminal.options.shell_job = shell_job;
    std::string said;  // the child needs a moment to open the terminal
    EXPECT_TRUE(test::eventually([&] {
      said = refusal(on_terminal);
      return said.find(": it has the terminal /dev/pts/") != std::string::npos;
    })) << said;
    EXPECT_NE(said.find("kymo run"), std::string::npos) << said;
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(master);
}

// Programs like `script` and terminal multiplexers have both ends of a terminal. Both are dumped
// and restored together.
TEST_F(DumpChecks, AProcessWithATerminalOfItsOwnPasses) {
  const pid_t pid = fork();
  if (pid == 0) {
    closefrom(0);
    setsid();
    int master = -1;
    if (forkpty(&master, nullptr, nullptr, nullptr) == 0) _exit(pause());
    pause();
    _exit(0);
  }
  ASSERT_TRUE(test::eventually([&] { return !probe::children_of(pid).value().empty(); }));
  const pid_t inner = probe::children_of(pid).value().front();
  EXPECT_EQ(refusal(spec(pid)), "");
  EXPECT_TRUE(test::eventually([&] {  // the child needs a moment to open the terminal
    return refusal(spec(inner)).find("it has the terminal") != std::string::npos;
  })) << "without its parent, it has only one end of the terminal: "
      << refusal(spec(inner));
  kill(inner, SIGKILL);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// The session of the process has a leader outside of the pid namespace. This happens if the tests
// run in a container that was entered from outside.
TEST_F(DumpChecks, RefusesASessionThatBeganOutsideOfThePidNamespace) {
  const std::string said = folder_.path() + "/said";
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(1);
    const pid_t init = fork();
    if (init != 0) {
      int status = 1;
      waitpid(init, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("proc", "/proc", "proc", 0, nullptr) != 0) _exit(2);
    const pid_t part = fork();
    if (part == 0) _exit(pause());
    std::ofstream(said) << refusal(spec(part));
    _exit(0);  // also ends the pid namespace
  }
  int status = 0;
  ASSERT_EQ(waitpid(outer, &status, 0), outer);
  ASSERT_EQ(status, 0);
  const Result<std::string> told = read_file(said);
  ASSERT_TRUE(told.ok()) << told.error().message;
  const std::string& text = *told;
  EXPECT_NE(text.find("its session was begun outside of this pid namespace"), std::string::npos)
      << text;
  EXPECT_NE(text.find("kymo run"), std::string::npos) << text;
}

TEST_F(DumpChecks, RefusesWhatCriuCouldNotRestoreWithSoFewDescriptors) {
  const Sleeper sleeper;
  const std::string said = folder_.path() + "/said";
  for (const rlim_t limit : {rlim_t{64}, rlim_t{128}}) {
    const pid_t child = fork();
    if (child == 0) {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3]{};
      syscall(SYS_capget, &header, rights);
      rights[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
      const rlimit both{limit, limit};
      if (syscall(SYS_capset, &header, rights) != 0 || setrlimit(RLIMIT_NOFILE, &both) != 0) {
        _exit(1);
      }
      std::ofstream(said) << refusal(spec(sleeper.pid()));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const std::string text = read_file(said).value();
    if (limit == 64) {
      EXPECT_NE(text.find("CRIU needs 128 file descriptors to restore it, and kymod's limit is 64"),
                text.npos)
          << text;
      EXPECT_NE(text.find("ulimit -n 128"), text.npos) << text;
    } else {
      EXPECT_EQ(text, "");
    }
  }
}

TEST_F(DumpChecks, RefusesInit) {
  EXPECT_NE(refusal(spec(1)).find("it is init"), std::string::npos) << refusal(spec(1));
}

TEST_F(DumpChecks, RefusesImagesDirectoriesThatAreMissingOrNotEmptyOrNoDirectory) {
  const Sleeper sleeper;
  DumpSpec bad = spec(sleeper.pid());
  bad.images_dir = folder_.path() + "/missing";
  EXPECT_NE(refusal(bad).find("the images directory " + bad.images_dir + ": No such file"),
            std::string::npos);
  bad.images_dir = folder_.file("file", "");
  EXPECT_NE(refusal(bad).find("is not a directory"), std::string::npos);
  bad = spec(sleeper.pid());
  folder_.file("images/keep.txt", "mine");
  EXPECT_NE(refusal(bad).find("is not empty (it has keep.txt)"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/images/keep.txt"));
}

// Runs the check in a child with another uid, and returns its refusal.
std::string refusal_as(uid_t uid, const DumpSpec& spec) {
  int ends[2];
  if (pipe(ends) != 0) {
    return "no pipe";
  }
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "cannot change the uid";
    if (setgid(uid) == 0 && setuid(uid) == 0) {
      const Result<DumpTarget> target = check_dump(spec);
      said = target ? "" : target.error().message;
    }
    _exit(write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t n = read(ends[0], said.data(), said.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return said;
}

TEST_F(DumpChecks, AnotherUidLacksPermission) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can become another uid";
  }
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const Sleeper roots;
  DumpSpec target = spec(roots.pid());
  EXPECT_NE(refusal_as(kNobody, target).find("it belongs to uid 0 and this is uid 65534"),
            std::string::npos)
      << refusal_as(kNobody, target);
  const Sleeper nobodys(kNobody);
  target = spec(nobodys.pid());
  ASSERT_TRUE(test::eventually([&] { return probe::read_process(nobodys.pid())->uid == kNobody; }));
  EXPECT_NE(refusal_as(kNobody, target).find("is not writable: Permission denied"),
            std::string::npos)
      << refusal_as(kNobody, target);
}

TEST(RestoreChecks, RefusesDirectoriesWithoutAWholeCheckpoint) {
  const test::TemporaryDirectory folder;
  RestoreSpec spec{folder.path() + "/missing", folder.folder("work")};
  EXPECT_EQ(check_restore(spec).error().code, Code::not_found);
  spec.images_dir = folder.folder("images");
  EXPECT_NE(check_restore(spec).error().message.find("inventory.img is missing"),
            std::string::npos);
  folder.file("images/inventory.img", "x");
  EXPECT_NE(check_restore(spec).error().message.find("pstree.img"), std::string::npos);
  folder.file("images/pstree.img", "not an image");
  EXPECT_NE(check_restore(spec).error().message.find("not a CRIU process tree image"),
            std::string::npos);
}

}  // namespace
}  // namespace kymo::runtime
