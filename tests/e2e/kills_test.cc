// kymod is killed in each phase of dumps and restores, and at random times. The process must be neither
// lost nor left frozen, no incomplete checkpoint may be listed, no process may be left, and the next
// kymod must know what happened.
// KYMO_TEST_LONG=1: a thousand kills instead of fifty.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <random>
#include <span>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "base/sanitizers.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"
#include "support/stop_child.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::steady_clock;

// A text in CRIU's log, and the phase that begins with it.
struct Mark {
  const char* phase;
  const char* text;
};
constexpr Mark kDumpMarks[] = {{"dump: CRIU begins", "Version: "},
                               {"dump: freeze", "Dumping processes (pid"},
                               {"dump: writing pages", "Dumping pages (type"},
                               {"dump: unfreeze", "Unfreezing tasks into"}};
constexpr Mark kRestoreMarks[] = {{"restore: CRIU begins", "Version: "},
                                  {"restore: pre-restore", "Running pre-restore scripts"},
                                  {"restore: post-restore", "Running post-restore scripts"},
                                  {"restore: pre-resume", "Running pre-resume scripts"},
                                  {"restore: post-resume", "Running post-resume scripts"}};

bool long_test() {
  return std::getenv("KYMO_TEST_LONG") != nullptr;
}

int kills_wanted() {
#if KYMO_ADDRESS_SANITIZER  // each takes three times as long
  constexpr int kShort = 6;
#else
  // Enough to hit each phase once; scripts/torture kills hundreds of times.
  constexpr int kShort = 14;
#endif
  return long_test() ? 1000 : kShort;
}

// The random times. The seed is constant, except in the long run, and is printed.
std::mt19937_64 random_instants() {
  const std::uint64_t seed = long_test() ? std::random_device{}() : 1;
  std::cout << "seed " << seed << "\n";
  return std::mt19937_64(seed);
}

// The processes that have a file below `folder` open or run it, with that file.
std::map<pid_t, std::string> users_of(const std::string& folder) {
  std::map<pid_t, std::string> users;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const auto& fd : fs::directory_iterator(entry.path() / "fd", gone)) {
      const std::string target = fs::read_symlink(fd, gone);
      if (target.rfind(folder + "/", 0) == 0) users[std::stoi(name)] = target;
    }
  }
  return users;
}

// Makes this test the parent of orphans. So the test reaps the children of a killed kymod, and not the
// machine's init.
class OrphansComeHere {
 public:
  OrphansComeHere() { EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  ~OrphansComeHere() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
  OrphansComeHere(const OrphansComeHere&) = delete;
  OrphansComeHere& operator=(const OrphansComeHere&) = delete;

  // Reaps all children except the test's own one.
  static void reap(pid_t own) {
    const std::vector<pid_t> children = probe::children_of(getpid()).value();
    for (const pid_t child : children) {
      const Result<probe::Process> seen = probe::read_process(child);
      if (child != own && seen && seen->zombie()) waitpid(child, nullptr, WNOHANG);
    }
  }
};

// One job under a kymod that is killed again and again.
class KillsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    job_ = kymod_.churn(16, "work");
  }
  void TearDown() override {
    if (job_.is_object()) kill(pid(), SIGKILL);
    OrphansComeHere::reap(kymod_.pid());
  }

  [[nodiscard]] pid_t pid() const { return job_["pid"].get<pid_t>(); }
  [[nodiscard]] bool lives() const { return probe::process_lives(pid(), 0); }

  struct Attempt {
    std::vector<std::string> command;
    std::function<std::string()> log;  // returns the text of CRIU's log
    std::string work;                  // where the log is at the end of the request
    std::span<const Mark> marks;
  };
  Attempt dump(bool leave_running) {
    const std::string dir = kymod_.path("checkpoint-" + std::to_string(++dumps_));
    Attempt attempt{{"dump", "process", "work", "--dir", dir},
                    [dir, target = pid()] { return dump_log(dir, target); },
                    dir + "/work",
                    kDumpMarks};
    if (leave_running) attempt.command.emplace_back("--leave-running");
    return attempt;
  }
  Attempt restore() const {
    const std::string dir = kymod_.job("work")["last_checkpoint"];
    const std::string log = fs::path(dir) / "work/restore.log";
    fs::remove(log);
    return {{"restore", "process", dir},
            [log] { return read_file(log); },
            dir + "/work",
            kRestoreMarks};
  }

  // The phase that CRIU's log shows. Before the first text it is "before CRIU", with the name of the
  // request.
  static std::string phase_of(const Attempt& attempt) {
    const std::string log = attempt.log();
    std::string phase = attempt.command.front() + ": before CRIU";
    for (const Mark& mark : attempt.marks) {
      if (log.find(mark.text) != std::string::npos) phase = mark.phase;
    }
    return phase;
  }

  // Makes the request, and kills kymod this long after it got the request. Returns the phase in which it
  // was killed.
  std::string attempt_and_kill_after(const Attempt& attempt, microseconds after) {
    const std::size_t calls = count_calls();
    std::atomic<bool> answered = false;
    std::thread client([&] {
      static_cast<void>(kymod_.kymo(attempt.command));
      answered = true;
    });
    while (count_calls() == calls && !answered) std::this_thread::sleep_for(microseconds(200));
    std::this_thread::sleep_for(after);
    std::string phase = phase_of(attempt);
    if (answered) phase = attempt.command.front() + ": answered";
    EXPECT_EQ(kymod_.stop(SIGKILL), -1);
    client.join();
    return phase;
  }

  // Makes the request, and waits until CRIU is stopped at the beginning of this phase. Then calls `deed`
  // with CRIU's pid.
  void attempt_and_kill_in(const Attempt& attempt, const Mark& phase,
                           const std::function<void(pid_t criu)>& deed) {
    criu_.break_at(phase.text, SIGSTOP);
    std::thread client([&] { static_cast<void>(kymod_.kymo(attempt.command)); });
    const pid_t criu = criu_.stopped();
    EXPECT_NE(criu, 0) << phase.phase << kymod_.log();
    criu_.mend();
    deed(criu);
    client.join();
  }

  // Makes a restore, and in this phase kills kymod and the CRIU that it has started. Returns the killed
  // processes.
  std::vector<pid_t> kill_with_criu(const Attempt& attempt, const Mark& phase) {
    std::vector<pid_t> killed;
    attempt_and_kill_in(attempt, phase, [&](pid_t) { killed = kill_kymod_and_criu(); });
    OrphansComeHere::reap(kymod_.pid());
    return killed;
  }
  std::vector<pid_t> kill_kymod_and_criu() {
    EXPECT_TRUE(stop_child(kymod_.pid()));
    std::vector<pid_t> criu = probe::children_of(kymod_.pid()).value();
    std::erase(criu, pid());
    for (const pid_t one : criu) kill(one, SIGKILL);
    EXPECT_EQ(kymod_.stop(SIGKILL), -1);
    return criu;
  }

  [[nodiscard]] std::size_t count_calls() const {
    const std::string log = kymod_.log();
    std::size_t calls = 0;
    for (std::size_t at = 0; (at = log.find("caller on ", at)) != std::string::npos; ++at) ++calls;
    return calls;
  }

  // How long a request takes, from the call of kymod to its answer.
  microseconds duration_of(const Attempt& attempt) {
    const json answer = kymod_.kymo_json(attempt.command);
    // A dumped process may need some time to end. As a zombie, it would keep its pid, which the restore
    // needs.
    EXPECT_TRUE(eventually([&] {
      OrphansComeHere::reap(kymod_.pid());
      return lives() || !fs::exists("/proc/" + std::to_string(pid()));
    }));
    return microseconds(answer["duration_ns"].get<std::uint64_t>() / 1000);
  }

  void expect_nothing_lost_and_nothing_left();
  void expect_whole_or_failed(const fs::path& dir) const;

  OrphansComeHere orphans_;
  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  json job_;
  int dumps_ = 0;
};

// Expects that the directory of a checkpoint either has complete images under their final name, or says
// that the dump failed.
void KillsTest::expect_whole_or_failed(const fs::path& dir) const {
  if (!fs::exists(dir / "checkpoint.json")) {
    EXPECT_FALSE(fs::exists(dir / "images")) << dir;
    return;
  }
  const json record = json::parse(read_file(dir / "checkpoint.json"));
  EXPECT_EQ(fs::exists(dir / "images"), record["state"] == "complete") << record.dump(2);
  EXPECT_EQ(fs::exists(dir / "images/inventory.img"), record["state"] == "complete");
  EXPECT_FALSE(fs::exists(dir / "images.partial/inventory.img")) << record.dump(2);
}

void KillsTest::expect_nothing_lost_and_nothing_left() {
  const std::string folder = kymod_.folder().path();
  const auto strangers = [&] {
    OrphansComeHere::reap(kymod_.pid());
    std::map<pid_t, std::string> users = users_of(folder);
    users.erase(kymod_.pid());
    users.erase(getpid());
    if (lives()) users.erase(pid());
    return users;
  };
  std::map<pid_t, std::string> left;
  EXPECT_TRUE(eventually([&] { return (left = strangers()).empty(); }))
      << "process " << left.begin()->first << " is left, it has " << left.begin()->second;
  EXPECT_TRUE(eventually([&] { return probe::stopped_threads(pid()).empty(); }));
  const json now = kymod_.job("work");
  if (lives()) {
    EXPECT_EQ(now["state"], "running") << kymod_.log();
    EXPECT_TRUE(kymod_.goes_on(job_)) << read_file(job_["stderr_path"]);
  } else {
    EXPECT_EQ(now["state"], "dumped") << kymod_.log() << read_file(job_["stderr_path"]);
    EXPECT_TRUE(fs::exists(fs::path(now["last_checkpoint"].get<std::string>()) / "images"));
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind("checkpoint-", 0) != 0) continue;
    expect_whole_or_failed(entry);
    if (entry.path() != now.value("last_checkpoint", "")) fs::remove_all(entry);
  }
}

TEST_F(KillsTest, KilledAtAnyInstantNothingIsLostAndNothingIsLeft) {
  const microseconds dump_takes = duration_of(dump(false));
  const microseconds restore_takes = duration_of(restore());
  std::mt19937_64 random = random_instants();
  std::map<std::string, int> hits;
  int turns[] = {0, 0};
  for (int i = 0; i < kills_wanted() && !HasFailure(); ++i) {
    const bool running = i % 2 == 0;  // half of the kills are in dumps, half in restores
    if (lives() != running) duration_of(running ? restore() : dump(false));
    const Attempt attempt = running ? dump(random() % 2 == 0) : restore();
    const auto most = static_cast<std::uint64_t>((running ? dump_takes : restore_takes).count());
    const microseconds after(random() % (most * 5 / 4));
    // First a random time, then each phase, then a random time again.
    int& turn = turns[running ? 0 : 1];
    std::string phase;
    if (turn == 0) {
      phase = attempt_and_kill_after(attempt, after);
    } else {
      const Mark& at = attempt.marks[static_cast<std::size_t>(turn) - 1];
      phase = at.phase;
      attempt_and_kill_in(attempt, at, [&](pid_t criu) {
        EXPECT_EQ(kymod_.stop(SIGKILL), -1);
        if (criu != 0) kill(criu, SIGCONT);  // CRIU goes on without kymod
      });
    }
    turn = (turn + 1) % static_cast<int>(attempt.marks.size() + 1);
    ++hits[phase];
    SCOPED_TRACE("kill " + std::to_string(i) + " in " + phase + " of " +
                 json(attempt.command).dump());
    // Sometimes the next kymod is killed, too, while it examines what happened.
    if (random() % 4 == 0) kymod_.start_and_kill(microseconds(random() % 300'000));
    kymod_.start();
    expect_nothing_lost_and_nothing_left();
  }
  for (const auto& [phase, count] : hits) std::cout << count << "\t" << phase << "\n";
}

// Only the next kymod can end a half restored process here.
TEST_F(KillsTest, KilledWithItsCriuDuringARestoreItLeavesNothingHalfRestored) {
  int halves = 0;
  for (const Mark& phase : kRestoreMarks) {
    if (lives()) duration_of(dump(false));
    const Attempt attempt = restore();
    const std::vector<pid_t> criu = kill_with_criu(attempt, phase);
    SCOPED_TRACE(phase.phase);
    EXPECT_TRUE(eventually([&] {
      return std::none_of(criu.begin(), criu.end(),
                          [](pid_t pid) { return probe::process_lives(pid, 0); });
    }));
    if (users_of(attempt.work).count(pid()) != 0) ++halves;
    kymod_.start();
    expect_nothing_lost_and_nothing_left();
    if (HasFailure()) return;
  }
  EXPECT_GT(halves, 0) << "no kill left a half restored process: nothing was tested";
}

TEST(KilledDaemonTest, TheClientIsToldThatTheDumpMayStillSucceed) {
  KYMO_NEEDS_CRIU();
  const OrphansComeHere orphans;
  const BreakableCriu criu;
  Kymod kymod({"--criu", criu.path()});
  kymod.start();
  static_cast<void>(kymod.churn(4, "work"));
  criu.break_at("Dumping pages (type", SIGSTOP);
  auto dumped = std::async(std::launch::async, [&] {
    return kymod.kymo({"dump", "process", "work"});
  });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0);
  criu.mend();
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  kill(stopped, SIGCONT);
  const Outcome outcome = dumped.get();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("the dump may still go on and end well"), std::string::npos)
      << outcome.err;
  kymod.start();  // cleans up what is left
}

}  // namespace
}  // namespace kymo::test
