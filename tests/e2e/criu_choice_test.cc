// Two real CRIUs are installed, 4.2 and 4.1. The tests check which one kymod uses for what, and
// what each can do on the kernel of this machine.
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "programs.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// Whether CRIU 4.1 cannot dump internet sockets on this kernel.
bool kernel_is_new() {
  utsname names{};
  uname(&names);
  int major = 0;
  int minor = 0;
  EXPECT_EQ(std::sscanf(names.release, "%d.%d", &major, &minor), 2);  // NOLINT(cert-err34-c)
  return major > 6 || (major == 6 && minor >= 16);
}

std::string version_of(const std::string& criu) {
  const std::string said = run({criu, "--version"}).out;
  const std::size_t at = said.find(": ");
  return said.substr(at + 2, said.find('\n') - at - 2);
}

std::string made_by(const std::string& directory) {
  return nlohmann::json::parse(read_file(directory + "/checkpoint.json"))["criu"]["version"];
}

const std::vector<std::string> kOldAlone{"--criu", criu_fallback_path()};
const std::vector<std::string> kOldFirst{"--criu", criu_fallback_path(), "--criu-fallback",
                                         criu_path()};

std::vector<std::string> with(std::vector<std::string> flags, const std::string& flag,
                              const std::string& value) {
  flags.insert(flags.end(), {flag, value});
  return flags;
}

void succeed(const Kymod& kymod, const std::vector<std::string>& words) {
  const Outcome outcome = kymod.kymo(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

nlohmann::json listener(const Kymod& kymod) {
  nlohmann::json job = kymod.kymo_json(
      {"run", "process", "--name", "server", "--", "/usr/bin/python3", SUBJECT_PROGRAM, "listen"});
  EXPECT_TRUE(eventually([&] { return !read_file(job["stdout_path"]).empty(); }));
  return job;
}

// The mount options of the root, as the container's process sees them.
std::string root_options(pid_t pid) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/mountinfo");
  std::string options;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string point;
    std::string its;
    words >> id >> parent >> device >> root >> point >> its;
    if (point == "/") options = its;
  }
  return options;
}

// A container of runc with a read-only root that has no folder `tmp`.
std::string start_read_only(const RuncFolder& runc, const std::string& id) {
  std::string bundle = make_bundle(runc.folder(), id, {"/bin/sleep", "1000"});
  nlohmann::json config = nlohmann::json::parse(read_file(bundle + "/config.json"));
  config["root"]["readonly"] = true;
  std::ofstream(bundle + "/config.json") << config.dump(1);
  fs::remove_all(bundle + "/rootfs/tmp");
  EXPECT_TRUE(runc.runc("run -d --bundle '" + bundle + "' " + id));
  return bundle;
}

class CriuChoiceTest : public testing::Test {
 protected:
  void SetUp() override { KYMO_NEEDS_BOTH_CRIUS(); }
};
class ContainerCriuChoiceTest : public CriuChoiceTest {
 protected:
  void SetUp() override {
    CriuChoiceTest::SetUp();
    KYMO_NEEDS_RUNC();
  }
};

TEST_F(CriuChoiceTest, AServerIsDumpedByTheCriuThatCanOnThisKernel) {
  Kymod kymod(kOldFirst);
  kymod.start();
  static_cast<void>(listener(kymod));
  succeed(kymod, {"dump", "process", "server", "--dir", kymod.path("c")});
  EXPECT_EQ(made_by(kymod.path("c")),
            version_of(kernel_is_new() ? criu_path() : criu_fallback_path()));
  // The status showed the first one as the CRIU, also where it cannot dump.
  const Outcome status = kymod.kymo({"status"});
  const std::size_t row = status.out.find("\nCRIU ");
  ASSERT_NE(row, std::string::npos) << status.out;
  EXPECT_NE(status.out.substr(row + 1, status.out.find('\n', row + 1) - row)
                .find(made_by(kymod.path("c")) + " at "),
            std::string::npos)
      << status.out;
  if (kernel_is_new()) {
    EXPECT_NE(status.out.find("\nCRIU, not used  "), std::string::npos) << status.out;
  }
  const Outcome inspected = kymod.kymo({"inspect", kymod.path("c")});
  EXPECT_NE(inspected.out.find("CRIU " + made_by(kymod.path("c"))), std::string::npos)
      << inspected.out;
  EXPECT_GT(kymod.kymo_json({"restore", kymod.path("c")})["pid"].get<int>(), 0);
}

TEST_F(CriuChoiceTest, ACriuTooOldForTheKernelSaysSoAndTheServerRunsOn) {
  if (!kernel_is_new()) GTEST_SKIP() << "this kernel is not too new for any CRIU";
  Kymod kymod(kOldAlone);
  kymod.start();
  EXPECT_TRUE(kymod.logs("is too old for Linux")) << kymod.log();
  const nlohmann::json job = listener(kymod);
  const Outcome dump = kymod.kymo({"dump", "process", "server", "--dir", kymod.path("c")});
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_NE(dump.err.find("CRIU " + version_of(criu_fallback_path()) + " is too old for Linux"),
            std::string::npos)
      << dump.err;
  EXPECT_NE(dump.err.find("use CRIU 4.2 or later"), std::string::npos) << dump.err;
  EXPECT_EQ(kymod.job("server")["state"], "running");
  const std::string status =
      read_file("/proc/" + std::to_string(job["pid"].get<int>()) + "/status");
  EXPECT_EQ(status.find("State:\tT"), std::string::npos) << status;
}

TEST_F(CriuChoiceTest, ImagesOfANewerCriuAreRefusedByAnOlderOneAndRestoredByTheFallback) {
  Kymod maker;
  maker.start();
  static_cast<void>(maker.churn(4, "churn"));
  const std::string checkpoint = maker.path("c");
  succeed(maker, {"dump", "process", "churn", "--dir", checkpoint});
  EXPECT_EQ(made_by(checkpoint), version_of(criu_path()));

  Kymod old(kOldAlone);
  old.start();
  const Outcome refused = old.kymo({"restore", checkpoint});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("CRIU " + version_of(criu_path()) + " made its images"),
            std::string::npos)
      << refused.err;

  Kymod both(kOldFirst);
  both.start();
  EXPECT_GT(both.kymo_json({"restore", checkpoint})["pid"].get<int>(), 0);
}

TEST_F(CriuChoiceTest, ImagesOfAnOlderCriuAreRestoredByTheNewer) {
  Kymod maker(kOldAlone);
  maker.start();
  static_cast<void>(maker.churn(4, "churn"));
  const std::string checkpoint = maker.path("c");
  succeed(maker, {"dump", "process", "churn", "--dir", checkpoint});
  EXPECT_EQ(made_by(checkpoint), version_of(criu_fallback_path()));

  Kymod newer;
  newer.start();
  EXPECT_GT(newer.kymo_json({"restore", checkpoint})["pid"].get<int>(), 0);
}

TEST_F(CriuChoiceTest, ACriuThatDoesNotStartIsReplacedByTheFallback) {
  const TemporaryDirectory folder;
  const std::string broken = folder.file("criu", "#!/bin/sh\nexit 1\n", 0755);
  Kymod kymod({"--criu", broken, "--criu-fallback", criu_path()});
  kymod.start();
  EXPECT_TRUE(kymod.logs("--criu is not used")) << kymod.log();
  static_cast<void>(kymod.churn(4, "churn"));
  succeed(kymod, {"dump", "process", "churn", "--dir", kymod.path("c")});
  EXPECT_EQ(made_by(kymod.path("c")), version_of(criu_path()));
}

TEST_F(CriuChoiceTest, CheckSaysWhatTheCriuAtHandIsTooOldFor) {
  const Outcome old = run({KYMO_PROGRAM, "check", "--criu", criu_fallback_path()});
  if (kernel_is_new()) {
    EXPECT_NE(old.out.find("is too old for Linux"), std::string::npos) << old.out;
  }
  EXPECT_NE(old.out.find("so that it can be written to"), std::string::npos) << old.out;
  const Outcome both =
      run({KYMO_PROGRAM, "check", "--criu", criu_fallback_path(), "--criu-fallback", criu_path()});
  EXPECT_EQ(both.out.find("too old"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find(version_of(criu_path()) + " at " + criu_path()), std::string::npos)
      << both.out;
}

// CRIU 4.1 restores the root without its mount options, so a read-only root becomes writable.
TEST_F(ContainerCriuChoiceTest, AReadOnlyRootIsReadOnlyAfterARestoreByTheCriuThatIsChosen) {
  const RuncFolder runc;
  const std::string bundle = start_read_only(runc, "kymo-ro");
  Kymod kymod(with(kOldFirst, "--runc-root", runc.path()));
  kymod.start();
  succeed(kymod, {"dump", "runc", "kymo-ro", "--dir", kymod.path("c")});
  EXPECT_EQ(made_by(kymod.path("c")), version_of(criu_path()));
  const nlohmann::json restored = kymod.kymo_json({"restore", kymod.path("c")});
  EXPECT_EQ(root_options(restored["pid"]).substr(0, 3), "ro,");
  EXPECT_FALSE(runc.runc("exec kymo-ro /bin/busybox touch /probe"));
  ASSERT_EQ(restored["warnings"].size(), 1U) << restored["warnings"];
  EXPECT_NE(restored["warnings"][0].get<std::string>().find("made the empty folder " + bundle +
                                                            "/rootfs/tmp"),
            std::string::npos)
      << restored["warnings"];
}

TEST_F(ContainerCriuChoiceTest, AnOldCriuThatMakesAReadOnlyRootWritableIsWarnedOf) {
  const RuncFolder runc;
  start_read_only(runc, "kymo-ro");
  Kymod kymod(with(kOldAlone, "--runc-root", runc.path()));
  kymod.start();
  succeed(kymod, {"dump", "runc", "kymo-ro", "--dir", kymod.path("c")});
  const nlohmann::json restored = kymod.kymo_json({"restore", kymod.path("c")});
  EXPECT_EQ(root_options(restored["pid"]).substr(0, 3), "rw,")
      << "this CRIU restores a read-only root correctly: kymod's rule can be removed";
  EXPECT_NE(restored["warnings"].dump().find("can now write to its root"), std::string::npos)
      << restored["warnings"];
}

TEST_F(ContainerCriuChoiceTest, AWritableRootIsDumpedAndRestoredByEitherCriu) {
  for (const std::string& criu : {criu_path(), criu_fallback_path()}) {
    const RuncFolder runc;
    const std::string bundle = runc.start("kymo-rw");
    Kymod kymod({"--criu", criu, "--runc-root", runc.path()});
    kymod.start();
    succeed(kymod, {"dump", "runc", "kymo-rw", "--dir", kymod.path("c")});
    EXPECT_EQ(made_by(kymod.path("c")), version_of(criu));
    const nlohmann::json restored = kymod.kymo_json({"restore", kymod.path("c")});
    EXPECT_EQ(restored["warnings"], nlohmann::json::array());
    EXPECT_EQ(root_options(restored["pid"]).substr(0, 3), "rw,");
    EXPECT_TRUE(counts_on(bundle + "/rootfs")) << criu;
  }
}

TEST_F(ContainerCriuChoiceTest, APodmanContainerIsDumpedAndRestoredByEitherCriu) {
  KYMO_NEEDS_PODMAN();
  for (const std::string& criu : {criu_path(), criu_fallback_path()}) {
    PodmanContainers podman;
    const std::string root = podman.start("kymo-either");
    Kymod kymod({"--criu", criu, "--podman-flags=" + PodmanContainers::flags()});
    kymod.start();
    succeed(kymod, {"dump", "podman", "kymo-either", "--dir", kymod.path("c")});
    EXPECT_EQ(made_by(kymod.path("c")), version_of(criu));
    succeed(kymod, {"restore", kymod.path("c")});
    EXPECT_TRUE(counts_on(root)) << criu;
  }
}

// podman mounts a tmpfs on /tmp of a read-only container, so this folder always exists.
TEST_F(ContainerCriuChoiceTest, AReadOnlyPodmanContainerIsReadOnlyAfterItsRestore) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  std::string words;
  for (const std::string& word : podman.arguments("kymo-ro", {"/bin/sleep", "1000"})) {
    words += " " + word;
  }
  fs::remove_all(podman.root_of("kymo-ro") + "/tmp");
  const std::string said = podman.podman("run -d --read-only --name kymo-ro" + words);
  Kymod kymod(with(kOldFirst, "--podman-flags", PodmanContainers::flags()));
  kymod.start();
  const Outcome dump = kymod.kymo({"dump", "podman", "kymo-ro", "--dir", kymod.path("c")});
  ASSERT_EQ(dump.exit_code, 0) << said << dump.err;
  EXPECT_EQ(made_by(kymod.path("c")), version_of(criu_path()));
  const nlohmann::json restored = kymod.kymo_json({"restore", kymod.path("c")});
  EXPECT_EQ(root_options(restored["pid"]).substr(0, 3), "ro,");
}

}  // namespace
}  // namespace kymo::test
