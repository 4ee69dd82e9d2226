#include "base/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/file_limit.h"

namespace kymo {
namespace {

using Leads = Program::Leads;

std::string text_in(const FileDescriptor& file) {
  std::array<char, 4096> text{};
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

FileDescriptor memory_file() {
  return FileDescriptor(memfd_create("spawn-test", MFD_CLOEXEC));
}

// Runs the program to its end and returns its wait status.
int run(const Program& program) {
  const Result<pid_t> pid = spawn(program);
  EXPECT_TRUE(pid.ok()) << pid.error().message;
  int status = -1;
  if (pid) {
    EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  }
  return status;
}

// Runs the program to its end and returns what it printed.
std::string output_of(Program program) {
  const FileDescriptor out = memory_file();
  program.descriptors = {kDevNull, out.get(), kDevNull};
  EXPECT_EQ(run(program), 0);
  return text_in(out);
}

// The program counts, and has asked for a signal when its parent ends.
TEST(Spawn, AProgramOfALastingParentOutlivesTheThreadThatCalled) {
  const FileDescriptor out = memory_file();
  pid_t pid = 0;
  pid_t caller = 0;
  const auto lines = [&] {
    struct stat seen {};
    ::fstat(out.get(), &seen);
    return seen.st_size;
  };
  std::thread([&] {
    caller = ::gettid();
    const Result<pid_t> started = spawn(
        {.file = "setpriv",
         .words = {"setpriv", "--pdeathsig", "KILL", "sh", "-c", "while echo; do sleep 0.01; done"},
         .descriptors = {kDevNull, out.get(), kDevNull},
         .parent_lasts = true});
    ASSERT_TRUE(started) << started.error().message;
    pid = *started;
    while (lines() == 0) ::usleep(1000);
  }).join();
  ASSERT_GT(pid, 0);
  // The kernel sends the signal before the thread leaves this folder.
  const std::string folder = "/proc/self/task/" + std::to_string(caller);
  while (::access(folder.c_str(), F_OK) == 0) ::usleep(1000);
  const off_t before = lines();
  while (lines() == before && ::waitpid(pid, nullptr, WNOHANG) == 0) ::usleep(1000);
  ASSERT_GT(lines(), before) << "the signal ended it";
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// Writing to a pipe without a reader ends a program with SIGPIPE, unless the signal is blocked.
TEST(Spawn, AClosedPipeIsAnErrorWhereSigpipeIsBlocked) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  close(pipe[0]);
  const FileDescriptor closed(pipe[1]);
  Program writes{.file = "cat", .words = {"cat", "/proc/self/stat"}};
  writes.descriptors = {kDevNull, closed.get(), kDevNull};
  EXPECT_EQ(run(writes), SIGPIPE);
  writes.blocked = {SIGPIPE};
  const int status = run(writes);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST(Spawn, GivesTheDescriptorsAndNoOther) {
  const FileDescriptor leak(open("/dev/null", O_RDONLY));  // deliberately without O_CLOEXEC
  const FileDescriptor out = memory_file();
  const FileDescriptor extra = memory_file();
  EXPECT_EQ(
      run({.file = "sh",
           .words = {"sh", "-c", "cd /proc/self && ls fd; readlink /proc/$$/fd/0; echo extra >&3"},
           .descriptors = {kDevNull, out.get(), kDevNull, extra.get()}}),
      0);
  EXPECT_EQ(text_in(out), "0\n1\n2\n3\n/dev/null\n");
  EXPECT_EQ(text_in(extra), "extra\n");
}

TEST(Spawn, DescriptorsMayTradeTheirPlaces) {
  const FileDescriptor one = memory_file();
  const FileDescriptor two = memory_file();
  ASSERT_LT(one.get(), two.get());
  Program program{.file = "sh", .words = {"sh", "-c"}};
  program.words.push_back("echo in the place of one >/proc/self/fd/" + std::to_string(one.get()) +
                          "; echo in the place of two >/proc/self/fd/" + std::to_string(two.get()));
  program.descriptors.assign(static_cast<std::size_t>(two.get()) + 1, kDevNull);
  program.descriptors[static_cast<std::size_t>(one.get())] = two.get();
  program.descriptors[static_cast<std::size_t>(two.get())] = one.get();
  EXPECT_EQ(run(program), 0);
  EXPECT_EQ(text_in(one), "in the place of two\n");
  EXPECT_EQ(text_in(two), "in the place of one\n");
}

TEST(Spawn, WithoutDescriptorsThoseThatAreNotClosedOnExecAreInherited) {
  const FileDescriptor kept(open("/dev/null", O_RDONLY));
  const FileDescriptor closed(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto has = [](const FileDescriptor& file) {
    return run(
        {.file = "test", .words = {"test", "-e", "/proc/self/fd/" + std::to_string(file.get())}});
  };
  EXPECT_EQ(WEXITSTATUS(has(kept)), 0);
  EXPECT_EQ(WEXITSTATUS(has(closed)), 1);
}

TEST(Spawn, TheProgramHasNoBlockedAndNoIgnoredSignals) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_before = signal(SIGPIPE, SIG_IGN);
  const int by_blocked = run({.file = "sh", .words = {"sh", "-c", "kill -TERM $$"}});
  const int by_ignored = run({.file = "sh", .words = {"sh", "-c", "kill -PIPE $$"}});
  signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(by_blocked, SIGTERM);
  EXPECT_EQ(by_ignored, SIGPIPE);
}

TEST(Spawn, LeadsAGroupOrASessionIfAsked) {
  struct Standing {
    pid_t pid = 0;
    pid_t group = 0;
    pid_t session = 0;
  };
  const auto standing = [](Leads leads) {
    Standing seen;
    std::istringstream(output_of(
        {.file = "cut", .words = {"cut", "-d ", "-f1,5,6", "/proc/self/stat"}, .leads = leads})) >>
        seen.pid >> seen.group >> seen.session;
    EXPECT_GT(seen.pid, 0);
    return seen;
  };
  const Standing none = standing(Leads::nothing);
  EXPECT_EQ(none.group, getpgrp());
  EXPECT_EQ(none.session, getsid(0));
  const Standing group = standing(Leads::group);
  EXPECT_EQ(group.group, group.pid);
  EXPECT_EQ(group.session, getsid(0));
  const Standing session = standing(Leads::session);
  EXPECT_EQ(session.group, session.pid);
  EXPECT_EQ(session.session, session.pid);
}

// runc had a session of its own, so -20 in the group of kymod's session made no dump of a container faster.
TEST(Spawn, ANewSessionHasThePriorityThatIsAskedFor) {
  if (access("/proc/self/autogroup", F_OK) != 0) GTEST_SKIP() << "the kernel has no autogroups";
  const auto group = [](const std::string& nice) {
    return output_of({.file = "cat",
                      .words = {"cat", "/proc/self/autogroup"},
                      .leads = Leads::session,
                      .autogroup_nice = nice});
  };
  EXPECT_TRUE(group("").ends_with(" nice 0\n")) << group("");
  EXPECT_TRUE(group("3").ends_with(" nice 3\n")) << group("3");
}

TEST(Spawn, GivesTheEnvironmentAndTheDirectory) {
  EXPECT_EQ(output_of({.file = "/bin/sh",
                       .words = {"renamed", "-c", "echo $0; pwd; echo $COLOUR$HOME"},
                       .environment = std::vector<std::string>{"COLOUR=blue"},
                       .directory = "/proc"}),
            "renamed\n/proc\nblue\n");
  EXPECT_EQ(
      output_of(
          {.file = "/usr/bin/env", .words = {"env"}, .environment = std::vector<std::string>()}),
      "");
  EXPECT_NE(output_of({.file = "env", .words = {"env"}}), "")
      << "it inherits the environment of this program";
}

// A program that uses select(2) can fail if it has a descriptor above 1023. So it gets the limit
// that was in force before kymod raised its own.
TEST(Spawn, AProgramGetsTheFormerLimitForOpenFiles) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max <= 600) GTEST_SKIP() << "needs a higher hard limit";
  rlimit few = before;
  few.rlim_cur = 600;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  raise_file_limit();
  rlimit now{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  const Program asks{.file = "sh", .words = {"sh", "-c", "ulimit -Sn"}};
  EXPECT_EQ(output_of(asks), "600\n");
  Program keeps = asks;
  keeps.keeps_file_limit = true;
  EXPECT_NE(output_of(keeps), "600\n");
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Spawn, WhatCannotBeRunIsNamedAndLeavesNoZombie) {
  const Result<pid_t> unknown = spawn({.file = "no-such-program", .words = {"no-such-program"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "cannot run no-such-program: No such file or directory");
  EXPECT_EQ(unknown.error().code, Code::not_found);
  EXPECT_EQ(unknown.error().errno_value, ENOENT);
  EXPECT_EQ(spawn({.file = "/etc/passwd", .words = {"passwd"}}).error().errno_value, EACCES);
  EXPECT_EQ(spawn({.file = "true", .words = {"true"}, .descriptors = {kDevNull, 1'000'000}})
                .error()
                .errno_value,
            EBADF);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

}  // namespace
}  // namespace kymo
