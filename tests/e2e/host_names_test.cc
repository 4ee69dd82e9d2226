// What a container's config.json names of this machine, and what is there when the container is dumped and restored.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kNamed[] = "kymo-named";

std::string namespace_of(const std::string& pid, const std::string& kind) {
  return fs::read_symlink("/proc/" + pid + "/ns/" + kind);
}

void expect_check_finds(const Kymod& kymod, const std::vector<std::string>& what,
                        const std::string& failure) {
  std::vector<std::string> words{"check"};
  words.insert(words.end(), what.begin(), what.end());
  const Outcome checked = kymod.kymo(words);
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find(failure), std::string::npos) << checked.out;
}

void expect_refused(const Outcome& refused, const std::string& path, const std::string& failure) {
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find(path), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("(failure " + failure + ")"), std::string::npos) << refused.err;
}

// A process with an ipc namespace of its own.
class Holder {
 public:
  Holder() : pid_(fork()) {
    if (pid_ != 0) {
      const std::string here = namespace_of("self", "ipc");
      EXPECT_TRUE(eventually([&] { return namespace_of(std::to_string(pid_), "ipc") != here; }));
      return;
    }
    _exit(unshare(CLONE_NEWIPC) == 0 ? sleep_long() : 1);
  }
  ~Holder() { end(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/" + std::to_string(pid_) + "/ns/ipc"; }
  void end() const {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // Ends it. Another process, with the namespace of this test, gets its pid.
  [[nodiscard]] bool replace() const {
    end();
    constexpr int kTries = 1000;  // others start processes, too
    for (int i = 0; i < kTries; ++i) {
      std::ofstream("/proc/sys/kernel/ns_last_pid") << pid_ - 1 << std::flush;
      const pid_t other = fork();
      if (other == 0) _exit(sleep_long());
      if (other == pid_) return true;
      kill(other, SIGKILL);
      waitpid(other, nullptr, 0);
    }
    return false;
  }

 private:
  static int sleep_long() {
    execl("/bin/sleep", "sleep", "1000", nullptr);
    return 1;
  }
  pid_t pid_;
};

// A bundle of runc that names something of this machine.
class NamedByRunc : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_RUNC();
    kymod_.start();
  }
  [[nodiscard]] std::string dir() const { return kymod_.path("one"); }
  [[nodiscard]] std::string root() const { return bundle_ + "/rootfs"; }
  void make() { bundle_ = make_bundle(runc_.folder(), kNamed, counting_command()); }
  template <class Change>
  void change(Change&& change) const {
    json spec = json::parse(read_file(bundle_ + "/config.json"));
    change(spec);
    std::ofstream(bundle_ + "/config.json") << spec;
  }
  void start() const {
    ASSERT_TRUE(runc_.runc("run -d --bundle '" + bundle_ + "' " + kNamed));
    ASSERT_TRUE(counts_on(root()));
  }
  void join(const std::string& path) const {
    change([&](json& spec) {
      for (json& each : spec["linux"]["namespaces"]) {
        if (each["type"] == "ipc") each["path"] = path;
      }
    });
  }
  [[nodiscard]] Outcome dump() const {
    return kymod_.kymo({"dump", "runc", kNamed, "--dir", dir()});
  }
  [[nodiscard]] Outcome restore() const { return kymod_.kymo({"restore", dir()}); }
  // The container runs. `path` is moved away before the dump, and before the restore.
  void expect_needed(const std::string& path, const std::string& failure) const;

  RuncFolder runc_;
  Kymod kymod_{{"--runc-root", runc_.path()}};
  std::string bundle_;
};

void NamedByRunc::expect_needed(const std::string& path, const std::string& failure) const {
  const std::string away = path + "-away";
  EXPECT_EQ(kymod_.kymo({"check", "runc", kNamed}).out.find(failure), std::string::npos);
  fs::rename(path, away);
  expect_check_finds(kymod_, {"runc", kNamed}, failure);
  expect_refused(dump(), path, failure);
  EXPECT_TRUE(counts_on(fs::exists(root()) ? root() : away)) << kymod_.log();
  fs::rename(away, path);
  const Outcome dumped = dump();
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  fs::rename(path, away);
  expect_check_finds(kymod_, {dir()}, failure);
  expect_refused(restore(), path, failure);
  fs::rename(away, path);
  const Outcome restored = restore();
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(root()));
}

using ContainerNamesTest = NamedByRunc;

TEST_F(ContainerNamesTest, TheRootIsNeeded) {
  make();
  start();
  expect_needed(root(), "host-name-gone");
}

TEST_F(ContainerNamesTest, AHookIsNeeded) {
  make();
  const std::string hook = runc_.folder().file("hook", "#!/bin/sh\nexec cat >/dev/null\n", 0755);
  change([&](json& spec) { spec["hooks"]["createRuntime"] = {{{"path", hook}}}; });
  start();
  expect_needed(hook, "host-name-gone");
}

TEST_F(ContainerNamesTest, TheSourceOfAMountIsNeeded) {
  make();
  const std::string volume = runc_.folder().folder("volume");
  change([&](json& spec) {
    spec["mounts"].push_back(
        {{"destination", "/data"}, {"type", "bind"}, {"source", volume}, {"options", {"rbind"}}});
  });
  start();
  expect_needed(volume, "mnt-restore");
}

TEST_F(ContainerNamesTest, ANamespaceThatIsGoneIsNoLongerThatOfTheContainer) {
  const Holder holder;
  make();
  join(holder.path());
  start();
  ASSERT_TRUE(holder.replace());
  expect_check_finds(kymod_, {"runc", kNamed}, "namespace-gone");
  expect_refused(dump(), holder.path(), "namespace-gone");
  EXPECT_TRUE(counts_on(root())) << kymod_.log();
}

TEST_F(ContainerNamesTest, ARestoreJoinsNoNamespaceOfAForeignProcess) {
  const Holder holder;
  make();
  join(holder.path());
  start();
  const Outcome dumped = dump();
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  ASSERT_TRUE(holder.replace());
  expect_check_finds(kymod_, {dir()}, "namespace-gone");
  expect_refused(restore(), holder.path(), "namespace-gone");
  EXPECT_EQ(runc_.status(kNamed), "");
  const Holder meant;
  join(meant.path());
  const Outcome restored = restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(root()));
}

class NamedByPodman : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_PODMAN();
    kymod_.start();
    ASSERT_NO_FATAL_FAILURE(run("kymo-first", {"--ipc", "shareable"}));
    ASSERT_NO_FATAL_FAILURE(run(kNamed, {"--network", "container:kymo-first", "--ipc",
                                         "container:kymo-first", "--uts", "container:kymo-first"}));
    ASSERT_TRUE(counts_on(podman_.root_of(kNamed)));
  }
  void run(const std::string& name, const std::vector<std::string>& flags) {
    std::vector<std::string> words{"run", "podman", "--name", name, "--"};
    words.insert(words.end(), flags.begin(), flags.end());
    const std::vector<std::string> usual = podman_.arguments(name);
    words.insert(words.end(), usual.begin() + (flags.front() == "--network" ? 2 : 0), usual.end());
    const Outcome ran = kymod_.kymo(words);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  [[nodiscard]] std::string dir() const { return kymod_.path("one"); }
  [[nodiscard]] std::string pid_of(const std::string& name) const {
    const std::string said = podman_.podman("container inspect --format '{{.State.Pid}}' " + name);
    return said.substr(0, said.find('\n'));
  }

  PodmanContainers podman_;
  Kymod kymod_{{"--podman-flags=" + PodmanContainers::flags()}};
};

using ContainerWithNamespacesOfAnotherTest = NamedByPodman;

TEST_F(ContainerWithNamespacesOfAnotherTest, IsRestoredOnlyUntilTheOtherIsStartedAgain) {
  const Outcome checked = kymod_.kymo({"check", "podman", kNamed});
  EXPECT_NE(checked.out.find("must run on until the restore"), std::string::npos) << checked.out;
  const Outcome dumped = kymod_.kymo({"dump", "podman", kNamed, "--dir", dir()});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = kymod_.kymo({"restore", dir()});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  for (const char* kind : {"net", "ipc", "uts"}) {
    EXPECT_EQ(namespace_of(pid_of(kNamed), kind), namespace_of(pid_of("kymo-first"), kind)) << kind;
  }
  EXPECT_TRUE(counts_on(podman_.root_of(kNamed)));
  static_cast<void>(podman_.podman("stop -t 0 " + std::string(kNamed)));
  static_cast<void>(podman_.podman("restart -t 0 kymo-first"));
  expect_refused(kymod_.kymo({"restore", dir()}), "namespace", "namespace-gone");
}

TEST_F(ContainerWithNamespacesOfAnotherTest, RunsOnIfTheOtherHasEnded) {
  static_cast<void>(podman_.podman("stop -t 0 kymo-first"));
  expect_check_finds(kymod_, {"podman", kNamed}, "namespace-gone");
  expect_refused(kymod_.kymo({"dump", "podman", kNamed, "--dir", dir()}), "namespace",
                 "namespace-gone");
  EXPECT_TRUE(counts_on(podman_.root_of(kNamed))) << kymod_.log();
}

// Serves on an address that the container has given itself, or on all of them.
std::vector<std::string> serving_on(const std::string& address) {
  return {"/bin/sh", "-c",
          "/bin/busybox ip addr add 10.9.9.9/32 dev lo; /bin/busybox httpd -p " + address +
              ":8080 || exit 1; " + counting_loop()};
}

Outcome run_server(const Kymod& kymod, PodmanContainers& podman, const std::string& address) {
  std::vector<std::string> words{"run",       "podman", "--name",    kNamed,     "--",
                                 "--network", "bridge", "--cap-add", "NET_ADMIN"};
  const std::vector<std::string> usual = podman.arguments(kNamed, serving_on(address));
  words.insert(words.end(), usual.begin() + 2, usual.end());
  return kymod.kymo(words);
}

TEST(ContainerWithAnAddressOfItsOwnTest, OfPodmanIsRefusedIfItListensThere) {
  KYMO_NEEDS_CRIU();
  KYMO_NEEDS_PODMAN();
  for (const char* address : {"10.9.9.9", "0.0.0.0"}) {
    PodmanContainers podman;
    Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
    kymod.start();
    if (!shell("ls /usr/lib/cni/bridge /usr/lib/podman/netavark 2>/dev/null | grep -q .").second) {
      GTEST_SKIP() << "podman has no bridges here";
    }
    const Outcome ran = run_server(kymod, podman, address);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    ASSERT_TRUE(counts_on(podman.root_of(kNamed)));
    const Outcome dumped = kymod.kymo({"dump", "podman", kNamed, "--dir", kymod.path("one")});
    if (std::string(address) == "10.9.9.9") {
      expect_refused(dumped, "10.9.9.9:8080", "inet-address");
      EXPECT_TRUE(counts_on(podman.root_of(kNamed))) << kymod.log();
      continue;
    }
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    const Outcome restored = kymod.kymo({"restore", kymod.path("one")});
    EXPECT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(counts_on(podman.root_of(kNamed)));
  }
}

// A bridge of Docker, which would outlive its dockerd, for one container.
class DockerNetwork {
 public:
  explicit DockerNetwork(const Docker& docker) : docker_(docker) {
    static_cast<void>(docker_.docker("network create --internal kymo-named"));
  }
  ~DockerNetwork() {
    static_cast<void>(docker_.docker("rm --force " + std::string(kNamed)));
    static_cast<void>(docker_.docker("network rm kymo-named"));
  }
  DockerNetwork(const DockerNetwork&) = delete;
  DockerNetwork& operator=(const DockerNetwork&) = delete;

 private:
  const Docker& docker_;
};

TEST(ContainerWithAnAddressOfItsOwnTest, OfDockerIsRefusedIfItListensThere) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  const DockerNetwork network(docker);
  std::string words =
      "run --detach --name " + std::string(kNamed) + " --network kymo-named --cap-add NET_ADMIN";
  const std::vector<std::string> usual = Docker::arguments(serving_on("10.9.9.9"));
  for (std::size_t i = 2; i < usual.size(); ++i) words += " '" + usual[i] + "'";
  const std::string said = docker.docker(words);
  ASSERT_EQ(docker.status(kNamed), "running") << said;
  ASSERT_TRUE(counts_on(docker.root_of(kNamed)));
  Kymod kymod;
  kymod.start();
  expect_refused(kymod.kymo({"dump", "docker", kNamed, "--dir", kymod.path("one")}),
                 "10.9.9.9:8080", "inet-address");
  EXPECT_TRUE(counts_on(docker.root_of(kNamed))) << kymod.log();
}

// An ipc namespace that has a name in the file system.
class NamedNamespace {
 public:
  NamedNamespace() { EXPECT_TRUE(make()); }
  ~NamedNamespace() { remove(); }
  NamedNamespace(const NamedNamespace&) = delete;
  NamedNamespace& operator=(const NamedNamespace&) = delete;

  [[nodiscard]] std::string path() const { return folder_.path() + "/ipc"; }
  [[nodiscard]] bool make() const {
    return shell("unshare --ipc='" + folder_.file("ipc", "") + "' true").second;
  }
  void remove() const {
    static_cast<void>(shell("umount '" + path() + "'"));
    fs::remove(path());
  }

 private:
  TemporaryDirectory folder_;
};

// A namespace that is named by a file is the one that is there.
TEST(ContainerNamesOfContainerdTest, ANamespaceMayBeMadeAgainAtItsPath) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  const TemporaryDirectory counts;
  const NamedNamespace space;
  const std::string said = containerd.ctr(
      "run --detach --null-io --with-ns ipc:" + space.path() + " --mount type=bind,src=" +
      counts.path() + ",dst=/counts,options=rbind:rw " + Containerd::image() + " " + kNamed +
      " /bin/sh -c 'i=0; while :; do i=$((i+1)); echo $i >/counts/count; sleep 0.05; done'");
  ASSERT_EQ(containerd.status(kNamed), "RUNNING") << said;
  Kymod kymod;
  kymod.start();
  const std::string dir = kymod.path("one");
  const Outcome dumped = kymod.kymo({"dump", "containerd", kNamed, "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  space.remove();
  expect_check_finds(kymod, {dir}, "namespace-gone");
  expect_refused(kymod.kymo({"restore", dir}), space.path(), "namespace-gone");
  ASSERT_TRUE(space.make());
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(counts.path()));
}

TEST(ContainerNamesOfDockerTest, TheSourceOfAMountIsNeeded) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  const TemporaryDirectory folder;
  const std::string volume = folder.folder("volume");
  std::string words = "run --detach --name " + std::string(kNamed) + " -v " + volume + ":/data";
  for (const std::string& word : Docker::arguments()) words += " '" + word + "'";
  const std::string said = docker.docker(words);
  ASSERT_EQ(docker.status(kNamed), "running") << said;
  Kymod kymod;
  kymod.start();
  EXPECT_EQ(kymod.kymo({"check", "docker", kNamed}).out.find("mnt-restore"), std::string::npos);
  fs::rename(volume, volume + "-away");
  expect_check_finds(kymod, {"docker", kNamed}, "mnt-restore");
  expect_refused(kymod.kymo({"dump", "docker", kNamed, "--dir", kymod.path("one")}), volume,
                 "mnt-restore");
  EXPECT_TRUE(counts_on(docker.root_of(kNamed))) << kymod.log();
}

}  // namespace
}  // namespace kymo::test
