// kymo check of containers, which kymod carries out, and the check that kymod makes before each
// dump of a container.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "programs.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

void expect_nothing_refuses(const Outcome& looked) {
  EXPECT_TRUE(looked.exit_code == 0 || looked.exit_code == 3) << looked.out << looked.err;
  EXPECT_EQ(looked.out.find("refuses: "), std::string::npos) << looked.out;
  EXPECT_NE(looked.out.find("nothing found that makes a dump fail"), std::string::npos)
      << looked.out;
}

// The mounts that a runtime gives to its container, and its cgroups, were a warning.
void expect_no_mount_is_found(const Outcome& looked) {
  expect_nothing_refuses(looked);
  EXPECT_EQ(looked.out.find("(failure mnt-"), std::string::npos) << looked.out;
}

TEST(ContainerCheckTest, ARuncContainerIsCheckedByItsNameAndAsAJob) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-check");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  expect_no_mount_is_found(kymod.kymo({"check", "runc", "kymo-check"}));
  expect_nothing_refuses(
      kymod.kymo({"dump", "runc", "kymo-check", "--dry-run", "--dir", kymod.path("none")}));
  EXPECT_NE(access(kymod.path("none").c_str(), F_OK), 0);
  EXPECT_EQ(kymod.kymo({"adopt", "runc", "kymo-check"}).exit_code, 0);
  const Outcome as_job = kymod.kymo({"check", "process", "kymo-check", "--json"});
  const nlohmann::json report = nlohmann::json::parse(as_job.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << as_job.out << as_job.err;
  EXPECT_EQ(report["refusing"], 0);
  EXPECT_EQ(report["pid"], kymod.job("kymo-check")["pid"]);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainerCheckTest, ADumpOfARuncContainerThatIsSureToFailIsRefused) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle =
      make_bundle(runc.folder(), "kymo-ghost",
                  {"/bin/sh", "-c",
                   "exec 3>/ghost; dd if=/dev/zero bs=1M count=3 >&3 2>/dev/null; rm /ghost; " +
                       counting_loop()});
  ASSERT_TRUE(runc.runc("run -d --bundle '" + bundle + "' kymo-ghost"));
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const Outcome looked = kymod.kymo({"check", "runc", "kymo-ghost"});
  EXPECT_EQ(looked.exit_code, 1) << looked.out << looked.err;
  EXPECT_NE(looked.out.find("(failure ghost-big)"), std::string::npos) << looked.out;
  const Outcome refused = kymod.kymo({"dump", "runc", "kymo-ghost", "--dir", kymod.path("one")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("dump runc container kymo-ghost: it would fail: "), std::string::npos)
      << refused.err;
  EXPECT_NE(access(kymod.path("one").c_str(), F_OK), 0);
  const Outcome forced =
      kymod.kymo({"dump", "runc", "kymo-ghost", "--force", "--dir", kymod.path("one")});
  EXPECT_NE(forced.err.find("(failure ghost-big; CRIU: "), std::string::npos) << forced.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

// A bundle whose shell holds a lock of the file /lock. Python takes the lock, because busybox has no
// program for it.
std::string locking_bundle(const TemporaryDirectory& parent, const std::string& name) {
  std::string bundle = make_bundle(
      parent, name,
      {"/bin/sh", "-c",
       "exec 3>/lock; /usr/bin/python3 -c 'import fcntl; fcntl.flock(3, fcntl.LOCK_EX)'; " +
           counting_loop()});
  for (const std::string folder : {"lib", "lib64"}) {
    std::filesystem::create_symlink("usr/" + folder, bundle + "/rootfs/" + folder);
  }
  nlohmann::json spec = nlohmann::json::parse(read_file(bundle + "/config.json"));
  spec["mounts"].push_back({{"destination", "/usr"},
                            {"source", "/usr"},
                            {"type", "bind"},
                            {"options", nlohmann::json::array({"rbind", "ro"})}});
  std::ofstream(bundle + "/config.json") << spec.dump(1);
  return bundle;
}

TEST(ContainerCheckTest, ALockOfARuncContainerIsForeseenAndSavedOnRequest) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = locking_bundle(runc.folder(), "kymo-locks");
  ASSERT_TRUE(runc.runc("run -d --bundle '" + bundle + "' kymo-locks"));
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const FileDescriptor lock(::open((bundle + "/rootfs/lock").c_str(), O_RDWR | O_CLOEXEC));
  const auto is_held = [&] {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
    ::flock(lock.get(), LOCK_UN);
    return false;
  };
  ASSERT_TRUE(is_held());
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const auto dump = [&](const std::string& flag) {
    return kymod.kymo({"dump", "runc", "kymo-locks", flag, "--dir", kymod.path(flag)});
  };
  const Outcome refused = dump("--checksums");  // this flag changes nothing here
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("(failure file-locks)"), std::string::npos) << refused.err;
  const Outcome forced = dump("--force");
  EXPECT_EQ(forced.exit_code, 1);
  EXPECT_NE(forced.err.find("(failure file-locks; CRIU: "), std::string::npos) << forced.err;
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const Outcome dumped = dump("--file-locks");
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_FALSE(is_held());
  const Outcome restored = kymod.kymo({"restore", kymod.path("--file-locks")});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(is_held());
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

// podman says nothing of the cause.
TEST(ContainerCheckTest, AFailedDumpOfAPodmanContainerIsExplained) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start(
      "kymo-ghost", {"/bin/sh", "-c",
                     "exec 3>/ghost; /bin/busybox dd if=/dev/zero bs=1M count=3 >&3 2>/dev/null; "
                     "/bin/busybox rm /ghost; " +
                         counting_loop()});
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome forced =
      kymod.kymo({"dump", "podman", "kymo-ghost", "--force", "--dir", kymod.path("one")});
  EXPECT_EQ(forced.exit_code, 1);
  EXPECT_NE(forced.err.find("(failure ghost-big; CRIU: "), std::string::npos) << forced.err;
  EXPECT_TRUE(counts_on(root));
}

TEST(ContainerCheckTest, APodmanContainerIsChecked) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-check");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  expect_no_mount_is_found(kymod.kymo({"check", "podman", "kymo-check"}));
  EXPECT_TRUE(counts_on(root));
  const Outcome none = kymod.kymo({"check", "podman", "kymo-none"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("kymo-none"), std::string::npos) << none.err;
}

void expect_that_removal_is_foreseen(const Kymod& kymod, const std::string& runtime) {
  for (const std::vector<std::string>& way :
       {std::vector<std::string>{"check", runtime, "kymo-gone"},
        {"dump", runtime, "kymo-gone", "--dry-run"}}) {
    const Outcome looked = kymod.kymo(way);
    EXPECT_EQ(looked.exit_code, 1) << looked.out << looked.err;
    EXPECT_NE(looked.out.find("refuses: it was started with --rm, so "), std::string::npos)
        << looked.out;
    EXPECT_NE(looked.out.find("would remove it and it could not be restored (" + runtime +
                              " container kymo-gone). Use --leave-running, or start it without "
                              "--rm. (failure not-now)"),
              std::string::npos)
        << looked.out;
    std::vector<std::string> with = way;
    with.emplace_back("--leave-running");
    expect_nothing_refuses(kymod.kymo(with));
  }
  const Outcome refused = kymod.kymo({"dump", runtime, "kymo-gone"});
  EXPECT_NE(refused.err.find(": it was started with --rm, so "), std::string::npos) << refused.err;
}

TEST(ContainerCheckTest, APodmanContainerThatPodmanWouldRemoveIsForeseen) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  std::string words = "run --rm -d --replace --name kymo-gone";
  for (const std::string& word : podman.arguments("kymo-gone")) words += " '" + word + "'";
  static_cast<void>(podman.podman(words));
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  expect_that_removal_is_foreseen(kymod, "podman");
}

TEST(ContainerCheckTest, ADockerContainerThatDockerWouldRemoveIsForeseen) {
  KYMO_NEEDS_DOCKER();
  const BreakableCriu criu;
  const Docker docker(criu.folder());
  std::string words = "run -d --rm --name kymo-gone";
  for (const std::string& word : Docker::arguments()) words += " '" + word + "'";
  static_cast<void>(docker.docker(words));
  Kymod kymod;
  kymod.start();
  expect_that_removal_is_foreseen(kymod, "docker");
  expect_no_mount_is_found(kymod.kymo({"check", "docker", "kymo-gone", "--leave-running"}));
}

}  // namespace
}  // namespace kymo::test
