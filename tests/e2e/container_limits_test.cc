// Containers whose restore needs more of a limit than they themselves do.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/proc/cgroup.h"
#include "programs.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr char kId[] = "kymo-limited";

// A container that holds some memory and counts, and sets its limits while it runs and for a restore.
class Limited {
 public:
  explicit Limited(const Kymod& kymod) : kymod_(kymod) {}
  virtual ~Limited() = default;
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

  [[nodiscard]] virtual std::string runtime() const = 0;
  [[nodiscard]] virtual std::string root() const = 0;
  virtual void set_memory(std::uint64_t bytes) const = 0;
  virtual void set_pids(std::uint64_t tasks) const = 0;

  [[nodiscard]] Outcome check() const { return kymod_.kymo({"check", runtime(), kId}); }
  [[nodiscard]] Outcome dump(const std::string& more = {}) const {
    std::vector<std::string> words{"dump", runtime(), kId, "--dir", dir()};
    if (!more.empty()) words.push_back(more);
    return kymod_.kymo(words);
  }
  [[nodiscard]] Outcome restore() const { return kymod_.kymo({"restore", dir()}); }
  // How much of a limit of the cgroup of its first process is used.
  [[nodiscard]] std::uint64_t used(const std::string& file) const {
    const json seen = json::parse(kymod_.kymo({"check", runtime(), kId, "--json"}).out);
    const auto pid = seen.value("pid", 0);
    const std::string controller = file.substr(0, file.find('.'));
    const auto path = probe::cgroup_path(pid, controller);
    EXPECT_TRUE(path) << "no cgroup of version 1";
    const std::string folder = "/sys/fs/cgroup/" + controller + path.value_or("");
    return std::stoull(read_file(folder + "/" + file));
  }
  static std::vector<std::string> command() {
    return {"/bin/sh", "-c",
            "x=$(/bin/busybox head -c 8000000 /dev/zero | /bin/busybox tr '\\0' x); " +
                counting_loop()};
  }

 protected:
  [[nodiscard]] std::string dir() const { return kymod_.path("one"); }
  const Kymod& kymod_;
};

class LimitedByRunc : public Limited {
 public:
  LimitedByRunc(const Kymod& kymod, const RuncFolder& runc)
      : Limited(kymod), runc_(runc), bundle_(make_bundle(runc.folder(), kId, command())) {
    EXPECT_TRUE(runc_.runc("run -d --bundle '" + bundle_ + "' " + kId));
  }
  [[nodiscard]] std::string runtime() const override { return "runc"; }
  [[nodiscard]] std::string root() const override { return bundle_ + "/rootfs"; }
  void set_memory(std::uint64_t bytes) const override {
    set("memory", {{"limit", bytes}, {"swap", bytes}}, "--memory " + std::to_string(bytes));
  }
  void set_pids(std::uint64_t tasks) const override {
    set("pids", {{"limit", tasks}}, "--pids-limit " + std::to_string(tasks));
  }

 private:
  void set(const char* what, const json& value, const std::string& flag) const {
    json spec = json::parse(read_file(bundle_ + "/config.json"));
    spec["linux"]["resources"][what] = value;
    std::ofstream(bundle_ + "/config.json") << spec;
    if (runc_.status(kId).empty()) return;
    EXPECT_TRUE(runc_.runc("update " + flag + " " + kId));
  }
  const RuncFolder& runc_;
  const std::string bundle_;
};

class LimitedByDocker : public Limited {
 public:
  LimitedByDocker(const Kymod& kymod, const Docker& docker) : Limited(kymod), docker_(docker) {
    std::vector<std::string> words{"run", "docker", "--name", kId, "--"};
    for (const std::string& word : Docker::arguments(command())) words.push_back(word);
    const Outcome ran = kymod.kymo(words);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }
  [[nodiscard]] std::string runtime() const override { return "docker"; }
  [[nodiscard]] std::string root() const override { return docker_.root_of(kId); }
  void set_memory(std::uint64_t bytes) const override {
    const std::string limit = std::to_string(bytes);
    set("--memory " + limit + " --memory-swap " + limit);
  }
  void set_pids(std::uint64_t tasks) const override {
    set("--pids-limit " + std::to_string(tasks));
  }

 private:
  void set(const std::string& flags) const {
    const std::string said = docker_.docker("update " + flags + " " + kId);
    EXPECT_NE(said.find(kId), std::string::npos) << said;
  }
  const Docker& docker_;
};

void with_runc(void (*test)(const Limited& container)) {
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  test(LimitedByRunc(kymod, runc));
}

void with_docker(void (*test)(const Limited& container)) {
  const Docker docker(fs::path(criu_path()).parent_path());
  Kymod kymod;
  kymod.start();
  test(LimitedByDocker(kymod, docker));
}

// A restore takes about 2 MiB more than this container has. Each was killed: "a step failed, and CRIU gave no reason".
void warn_and_name_memory(const Limited& container) {
  ASSERT_TRUE(counts_on(container.root()));
  const std::uint64_t used = container.used("memory.usage_in_bytes");
  container.set_memory(used + 8 * kMiB);
  const Outcome enough = container.check();
  EXPECT_EQ(enough.out.find("memory-limit"), std::string::npos) << enough.out;
  container.set_memory(used + kMiB);
  const Outcome checked = container.check();
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
  EXPECT_NE(checked.out.find("(failure memory-limit)"), std::string::npos) << checked.out;
  const Outcome dumped = container.dump();
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE(dumped.err.find("the memory limit leaves less than a restore"), std::string::npos)
      << dumped.err;

  const Outcome killed = container.restore();
  EXPECT_EQ(killed.exit_code, 1) << killed.out;
  EXPECT_NE(killed.err.find("memory ran out during the restore"), std::string::npos) << killed.err;
  EXPECT_NE(killed.err.find("Raise the memory limit"), std::string::npos) << killed.err;
  container.set_memory(used + 8 * kMiB);
  const Outcome restored = container.restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(container.root()));
  const std::uint64_t most = container.used("memory.max_usage_in_bytes");
  std::printf("a restore needed %.2f MiB more than the container had\n",
              (static_cast<double>(most) - static_cast<double>(used)) / kMiB);
}

TEST(ContainerAtItsMemoryLimitTest, OfRuncIsWarnedOfAndRestoredAfterTheLimitIsRaised) {
  KYMO_NEEDS_RUNC();
  with_runc(warn_and_name_memory);
}

TEST(ContainerAtItsMemoryLimitTest, OfDockerIsWarnedOfAndRestoredAfterTheLimitIsRaised) {
  KYMO_NEEDS_DOCKER();
  with_docker(warn_and_name_memory);
}

// A restore of this container has up to six processes at once. Each failed as "pid-taken", although no pid was.
void refuse_and_name_pids(const Limited& container) {
  ASSERT_TRUE(counts_on(container.root()));
  container.set_pids(6);
  const Outcome enough = container.check();
  EXPECT_EQ(enough.out.find("pids-limit"), std::string::npos) << enough.out;
  container.set_pids(5);
  const Outcome checked = container.check();
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find("(failure pids-limit)"), std::string::npos) << checked.out;
  const Outcome refused = container.dump();
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("(failure pids-limit)"), std::string::npos) << refused.err;
  ASSERT_TRUE(counts_on(container.root()));

  const Outcome forced = container.dump("--force");
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  const Outcome failed = container.restore();
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  if (container.runtime() != "docker") {  // it keeps no log of CRIU
    EXPECT_NE(failed.err.find("a limit of processes and threads was reached"), std::string::npos)
        << failed.err;
    EXPECT_NE(failed.err.find("Raise the limit"), std::string::npos) << failed.err;
  }
  container.set_pids(6);
  const Outcome restored = container.restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(container.root()));
}

TEST(ContainerAtItsPidsLimitTest, OfRuncIsRefusedAndRestoredAfterTheLimitIsRaised) {
  KYMO_NEEDS_RUNC();
  with_runc(refuse_and_name_pids);
}

TEST(ContainerAtItsPidsLimitTest, OfDockerIsRefusedAndRestoredAfterTheLimitIsRaised) {
  KYMO_NEEDS_DOCKER();
  with_docker(refuse_and_name_pids);
}

}  // namespace
}  // namespace kymo::test
