#include "checkpoint/runtimes/shared/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "checkpoint/runtimes/process/reaper.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

class LaunchTest : public testing::Test {
 protected:
  RunSpec spec(std::vector<std::string> command) {
    return {std::move(command),
            {"PATH=/usr/bin:/bin", "COLOUR=blue"},
            folder_.path(),
            folder_.path() + "/out",
            folder_.path() + "/err"};
  }
  // Runs the program to its end, and returns its wait status.
  int run(const RunSpec& what) {
    const Result<pid_t> pid = launch(what);
    EXPECT_TRUE(pid.ok()) << pid.error().message;
    int status = -1;
    if (pid) {
      EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
    }
    return status;
  }
  std::string text(const std::string& name) {
    std::ifstream file(folder_.path() + "/" + name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  test::TemporaryDirectory folder_;
};

TEST_F(LaunchTest, RunsInASessionOfItsOwnWithNothingElseOpen) {
  const int leak = open("/dev/null", O_RDONLY);  // deliberately without O_CLOEXEC
  ASSERT_GE(leak, 0);
  EXPECT_EQ(
      run(spec({"sh", "-c",
                "cd /proc/self && ls fd; pwd -P; readlink /proc/$$/fd/0; echo $COLOUR; env | wc -l;"
                "cut -d' ' -f6 /proc/$$/stat; echo $$; echo warning >&2"})),
      0);
  close(leak);
  std::ifstream out(folder_.path() + "/out");
  std::vector<std::string> lines;
  for (std::string line; std::getline(out, line);) {
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 9U) << text("out");
  EXPECT_EQ(lines[0] + lines[1] + lines[2], "012");
  EXPECT_EQ(lines[4], "/dev/null");
  EXPECT_EQ(lines[5], "blue");
  EXPECT_EQ(lines[7], lines[8]) << "the process must lead its session";
  EXPECT_EQ(text("err"), "warning\n");
}

TEST_F(LaunchTest, OutputIsAppendedTo) {
  EXPECT_EQ(run(spec({"echo", "one"})), 0);
  EXPECT_EQ(run(spec({"echo", "two"})), 0);
  EXPECT_EQ(text("out"), "one\ntwo\n");
}

TEST_F(LaunchTest, AJobOutlivesTheProcessThatStartedIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    const Result<pid_t> job = launch(spec({"sh", "-c", "while :; do echo on; sleep 0.01; done"}));
    const pid_t pid = job ? *job : 0;
    static_cast<void>(!write(ends[1], &pid, sizeof pid));
    kill(getpid(), SIGKILL);
  }
  pid_t job = 0;
  ASSERT_EQ(read(ends[0], &job, sizeof job), static_cast<ssize_t>(sizeof job));
  close(ends[0]);
  close(ends[1]);
  ASSERT_EQ(waitpid(daemon, nullptr, 0), daemon);
  ASSERT_GT(job, 0);
  const std::size_t written = text("out").size();
  EXPECT_TRUE(test::eventually([&] { return text("out").size() > written + 20; }));
  kill(job, SIGKILL);
}

TEST_F(LaunchTest, NamesAProgramThatIsNotThere) {
  const Result<pid_t> unknown = launch(spec({"no-such-program"}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message,
            "cannot run 'no-such-program': no such program on PATH (/usr/bin:/bin)");
  EXPECT_EQ(launch(spec({"./missing"})).error().code, Code::not_found);
  EXPECT_EQ(launch(spec({})).error().code, Code::invalid_argument);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

TEST_F(LaunchTest, ReportsAnExecThatFails) {
  const std::string program = folder_.file("broken", "#!/no/such/interpreter\n", 0755);
  const Result<pid_t> broken = launch(spec({program}));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message, "cannot run " + program + ": No such file or directory");
  const std::string data = folder_.file("data", "text", 0644);
  EXPECT_EQ(launch(spec({data})).error().code, Code::permission_denied);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

TEST_F(LaunchTest, NamesAnOutputThatCannotBeOpenedAndAFolderThatIsNotThere) {
  RunSpec bad = spec({"true"});
  bad.stdout_path = folder_.path() + "/missing/out";
  EXPECT_NE(launch(bad).error().message.find("cannot open " + bad.stdout_path), std::string::npos);
  bad = spec({"true"});
  bad.directory = folder_.path() + "/missing";
  EXPECT_NE(launch(bad).error().message.find("cannot run 'true' in " + bad.directory),
            std::string::npos);
}

TEST_F(LaunchTest, TheReaperTellsHowAChildEndedAndLeavesOthersAlone) {
  std::atomic<int> status{-1};
  Result<std::unique_ptr<Reaper>> reaper =
      Reaper::start([&](const ProcessId&, int how) { status.store(how); });
  ASSERT_TRUE(reaper.ok());
  const pid_t other = fork();
  if (other == 0) {
    _exit(3);
  }
  const Result<pid_t> pid = launch(spec({"sh", "-c", "exit 7"}));
  ASSERT_TRUE(pid.ok());
  ASSERT_TRUE((*reaper)->watch({*pid, 0}).ok());
  EXPECT_TRUE((*reaper)->wait_reaped(*pid, std::chrono::seconds(10)));
  EXPECT_TRUE(test::eventually([&] { return status.load() >= 0; }));
  EXPECT_EQ(WEXITSTATUS(status.load()), 7);
  int others = 0;
  EXPECT_EQ(waitpid(other, &others, 0), other);
  EXPECT_EQ(WEXITSTATUS(others), 3);
}

TEST_F(LaunchTest, AnOutputThatIsALinkIsNotFollowed) {
  const std::string precious = folder_.file("precious", "precious");
  RunSpec what = spec({"echo", "more"});
  ASSERT_EQ(symlink(precious.c_str(), what.stdout_path.c_str()), 0);
  const Result<pid_t> refused = launch(what);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("it is a link, which is not followed"), std::string::npos);
  EXPECT_EQ(text("precious"), "precious");
  what.stdout_path = what.stderr_path = "/dev/null";
  EXPECT_EQ(run(what), 0);
}

TEST_F(LaunchTest, AnOutputThatIsAFifoIsRefused) {
  RunSpec what = spec({"true"});
  ASSERT_EQ(::mkfifo(what.stdout_path.c_str(), 0600), 0);
  EXPECT_FALSE(launch(what).ok());
  const FileDescriptor reader(::open(what.stdout_path.c_str(), O_RDWR | O_CLOEXEC));
  const Result<pid_t> refused = launch(what);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("it is not a regular file (a FIFO)"), std::string::npos)
      << refused.error().message;
}

TEST_F(LaunchTest, AnOutputWaitsForItsDisk) {
  EXPECT_EQ(run(spec({"sh", "-c", "grep ^flags /proc/self/fdinfo/1"})), 0);
  const std::string flags = text("out");
  EXPECT_EQ(std::stoul(flags.substr(flags.find('0')), nullptr, 8) & O_NONBLOCK, 0U) << flags;
}

}  // namespace
}  // namespace kymo::runtime
