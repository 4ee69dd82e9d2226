// kymod is killed at random times of dumps and restores (faults/ kills it at each step). The
// process must be neither lost nor left frozen, no incomplete checkpoint may be listed, no process
// may be left, and the next kymod must know what happened. KYMO_TEST_LONG=1: a thousand kills.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/proc/process.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::microseconds;

bool long_test() {
  return std::getenv("KYMO_TEST_LONG") != nullptr;
}

int kills_wanted() {
  return long_test() ? 1000 : 6;
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

// Makes this test the parent of orphans. So the test reaps the children of a killed kymod, and not
// the machine's init.
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

  using Words = std::vector<std::string>;
  Words dump(bool leave_running) {
    const std::string dir = kymod_.path("checkpoint-" + std::to_string(++dumps_));
    Words words{"dump", "process", "work", "--dir", dir};
    if (leave_running) words.emplace_back("--leave-running");
    return words;
  }
  [[nodiscard]] Words restore() const {
    return {"restore", "process", kymod_.job("work")["last_checkpoint"]};
  }

  // Makes the request, and kills kymod this long after it got the request.
  void attempt_and_kill_after(const Words& words, microseconds after) {
    const std::size_t calls = count_calls();
    std::atomic<bool> answered = false;
    std::thread client([&] {
      static_cast<void>(kymod_.kymo(words));
      answered = true;
    });
    while (count_calls() == calls && !answered) std::this_thread::sleep_for(microseconds(200));
    std::this_thread::sleep_for(after);
    EXPECT_EQ(kymod_.stop(SIGKILL), -1);
    client.join();
  }

  [[nodiscard]] std::size_t count_calls() const {
    const std::string log = kymod_.log();
    std::size_t calls = 0;
    for (std::size_t at = 0; (at = log.find("caller on ", at)) != std::string::npos; ++at) ++calls;
    return calls;
  }

  // How long a request takes, from the call of kymod to its answer.
  microseconds duration_of(const Words& words) {
    const json answer = kymod_.kymo_json(words);
    // A dumped process may need some time to end. As a zombie, it would keep its pid, which the
    // restore needs.
    EXPECT_TRUE(eventually([&] {
      OrphansComeHere::reap(kymod_.pid());
      return lives() || !fs::exists("/proc/" + std::to_string(pid()));
    }));
    return microseconds(answer["duration_ns"].get<std::uint64_t>() / 1000);
  }

  void expect_nothing_lost_and_nothing_left();
  void expect_whole_or_failed(const fs::path& dir) const;

  OrphansComeHere orphans_;
  Kymod kymod_;
  json job_;
  int dumps_ = 0;
};

// Expects that the directory of a checkpoint either has complete images under their final name, or
// says that the dump failed.
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
  for (int i = 0; i < kills_wanted() && !HasFailure(); ++i) {
    const bool running = i % 2 == 0;  // half of the kills are in dumps, half in restores
    if (lives() != running) duration_of(running ? restore() : dump(false));
    const Words words = running ? dump(random() % 2 == 0) : restore();
    const auto most = static_cast<std::uint64_t>((running ? dump_takes : restore_takes).count());
    const microseconds after(random() % (most * 5 / 4));
    SCOPED_TRACE("kill " + std::to_string(i) + " of " + json(words).dump());
    attempt_and_kill_after(words, after);
    // Sometimes the next kymod is killed, too, while it examines what happened.
    if (random() % 4 == 0) kymod_.start_and_kill(microseconds(random() % 300'000));
    kymod_.start();
    expect_nothing_lost_and_nothing_left();
  }
}

}  // namespace
}  // namespace kymo::test
