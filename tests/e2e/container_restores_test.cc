// Containers that runc dumps and whose restore needs more than their images.

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/runtimes/shared/restore_lock.h"
#include "programs.h"
#include "small_disk.h"
#include "support/breakable_criu.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A bundle of a container that counts, whose root is user 100000 of this machine. runc 1.1 looks at the
// root of the bundle as this user.
std::string make_mapped_bundle(const RuncFolder& runc) {
  std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  json spec = json::parse(read_file(bundle + "/config.json"));
  spec["linux"]["namespaces"].push_back({{"type", "user"}});
  // The kernel mounts neither in a user namespace that does not own the network namespace.
  auto& mounts = spec["mounts"];
  mounts.erase(std::remove_if(mounts.begin(), mounts.end(),
                              [](const json& mount) {
                                return mount["destination"].get<std::string>().starts_with("/sys");
                              }),
               mounts.end());
  const json map = json::array({{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}});
  spec["linux"]["uidMappings"] = spec["linux"]["gidMappings"] = map;
  std::ofstream(bundle + "/config.json") << spec;
  EXPECT_TRUE(shell("chown -R 100000:100000 '" + bundle + "/rootfs'").second);
  for (const std::string& folder : {bundle, runc.folder().path()}) {
    fs::permissions(folder, fs::perms::others_exec, fs::perm_options::add);
  }
  return bundle;
}

// Other users may read the images only during the restore.
void expect_private(const std::string& images) {
  for (const fs::directory_entry& image : fs::directory_iterator(images)) {
    EXPECT_EQ(image.symlink_status().permissions() & fs::perms::others_all, fs::perms::none)
        << image;
  }
  EXPECT_EQ(fs::status(images).permissions(), fs::perms::owner_all);
}

// A restore goes on for a moment after its container runs. A dump in that moment ended with success, and had no images.
TEST(ContainerRestoresTest, ADumpOfOneWhoseRestoreHasNotEndedIsRefused) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const Outcome ran = kymod.kymo({"run", "runc", "--bundle", bundle, "--id", "kymo-web"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  {
    const auto restore = runtime::lock_for_restore({"container runc:kymo-web in " + runc.path()});
    ASSERT_TRUE(restore.ok()) << restore.error().message;
    const Outcome refused = kymod.kymo({"dump", "runc", "kymo-web", "--dir", kymod.path("one")});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("is under way, here or by another kymod"), std::string::npos)
        << refused.err;
    EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  }
  EXPECT_EQ(kymod.kymo({"dump", "runc", "kymo-web", "--dir", kymod.path("one")}).exit_code, 0);
}

TEST(ContainerRestoresTest, AContainerWithAUserNamespaceIsRestored) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_mapped_bundle(runc);
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const Outcome ran = kymod.kymo({"run", "runc", "--bundle", bundle, "--id", "kymo-web"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "runc", "kymo-web", "--dir", dir}));
  const int count = std::stoi(read_file(bundle + "/rootfs/count"));
  EXPECT_EQ(files_for_others(dir), "");

  // Others could enter the folder, and read the images as the container's root.
  fs::permissions(dir, fs::perms::others_exec, fs::perm_options::add);
  const Outcome refused = kymod.kymo({"restore", dir});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(
      refused.err.find(
          "it has a user namespace, whose root must read the images, and kymod gives that right "
          "only in a folder that others cannot enter: chmod 700 " +
          dir),
      std::string::npos)
      << refused.err;
  fs::permissions(dir, fs::perms::owner_all);

  static_cast<void>(kymod.kymo_json({"restore", dir}));
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  EXPECT_GE(std::stoi(read_file(bundle + "/rootfs/count")), count);
  expect_private(dir + "/images");
}

TEST(ContainerRestoresTest, TheNextKymodTakesBackTheRightToReadTheImages) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const BreakableCriu criu;
  const std::string bundle = make_mapped_bundle(runc);
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu.path()});
  kymod.start();
  const Outcome ran = kymod.kymo({"run", "runc", "--bundle", bundle, "--id", "kymo-web"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "runc", "kymo-web", "--dir", dir}));
  criu.break_at("Running pre-restore scripts", SIGSTOP);
  std::thread client([&] { static_cast<void>(kymod.kymo({"restore", dir})); });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << kymod.log();
  kymod.stop(SIGKILL);
  client.join();
  criu.mend();
  EXPECT_NE(fs::status(dir + "/images/inventory.img").permissions() & fs::perms::others_read,
            fs::perms::none);
  if (stopped != 0) kill(stopped, SIGCONT);
  kymod.start();
  expect_private(dir + "/images");
  EXPECT_TRUE(counts_on(bundle + "/rootfs")) << kymod.log();
}

TEST(ContainerRestoresTest, AContainerdContainerWithAUserNamespaceIsRestored) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  fs::permissions(fs::path(containerd.state()).parent_path(), fs::perms::others_exec,
                  fs::perm_options::add);
  const TemporaryDirectory counts;
  EXPECT_TRUE(shell("chown 100000:100000 " + counts.path()).second);
  const std::string said = containerd.ctr(
      "run --detach --null-io --uidmap 0:100000:65536 --gidmap 0:100000:65536 --mount "
      "type=bind,src=" +
      counts.path() + ",dst=/counts,options=rbind:rw " + Containerd::image() +
      " kymo-mapped /bin/sh -c 'i=0; while :; do i=$((i+1)); echo $i 1<>/counts/count; sleep 0.1; "
      "done'");
  ASSERT_EQ(containerd.status("kymo-mapped"), "RUNNING") << said;
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(counts_on(counts.path()));
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "containerd", "kymo-mapped", "--dir", dir}));
  static_cast<void>(kymod.kymo_json({"restore", dir}));
  EXPECT_TRUE(counts_on(counts.path()));
  expect_private(dir + "/images");
}

// Neither podman nor Docker could restore it.
void refuse_user_namespace(const Kymod& kymod, const std::string& runtime, const std::string& name,
                           const std::string& root) {
  ASSERT_TRUE(counts_on(root));
  const Outcome checked = kymod.kymo({"check", runtime, name});
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find("(failure userns-denied)"), std::string::npos) << checked.out;
  const Outcome refused = kymod.kymo({"dump", runtime, name, "--dir", kymod.path("one")});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("the container has a user namespace"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(counts_on(root));
  const Outcome forced = kymod.kymo({"dump", runtime, name, "--dir", kymod.path("one"), "--force"});
  ASSERT_EQ(forced.exit_code, 0) << forced.err;
  const Outcome failed = kymod.kymo({"restore", kymod.path("one")});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  if (runtime != "docker") {  // it keeps no log of CRIU
    EXPECT_NE(failed.err.find("(failure userns-denied"), std::string::npos) << failed.err;
  }
}

// podman 4.3 cannot restore it: CRIU may open neither podman's folder of the images nor podman's files that are mounted.
TEST(ContainerRestoresTest, APodmanContainerWithAUserNamespaceIsRefusedAndRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  std::vector<std::string> run{"run", "podman",   "--name",        "kymo-e2e",
                               "--",  "--uidmap", "0:100000:65536"};
  for (const std::string& word : podman.arguments("kymo-e2e")) run.push_back(word);
  const std::string root = podman.root_of("kymo-e2e");
  EXPECT_TRUE(shell("chown -R 100000:100000 '" + root + "'").second);
  fs::permissions(fs::path(root).parent_path(), fs::perms::others_exec, fs::perm_options::add);
  const Outcome ran = kymod.kymo(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(counts_on(root));
  refuse_user_namespace(kymod, "podman", "kymo-e2e", root);
}

// Docker was not looked at: its containers with --userns-remap were dumped and ended, and could not be restored.
TEST(ContainerRestoresTest, ADockerContainerWithAUserNamespaceIsRefusedAndRunsOn) {
  KYMO_NEEDS_DOCKER();
  const TemporaryDirectory ids;
  ids.file("subid", "daemon:100000:65536\n");
  // Docker takes the ids of its containers from these files, which this process and its children see in place of the
  // machine's.
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
    ASSERT_EQ(::mount((ids.path() + "/subid").c_str(), file, nullptr, MS_BIND, nullptr), 0) << file;
  }
  const Docker docker(fs::path(criu_path()).parent_path(), Docker::Features::user_namespaces);
  Kymod kymod;
  kymod.start();
  std::vector<std::string> run{"run", "docker", "--name", "kymo-mapped", "--"};
  for (const std::string& word : Docker::arguments()) run.push_back(word);
  const Outcome ran = kymod.kymo(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err << docker.log();
  refuse_user_namespace(kymod, "docker", "kymo-mapped", docker.root_of("kymo-mapped"));
}

TEST(ContainerRestoresTest, ADiskThatIsTooFullForATmpfsIsTheCause) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string fill = "head -c 16777216 /dev/urandom >/big/file; " + counting_loop();
  const std::string bundle = make_bundle(runc.folder(), "bundle", {"/bin/sh", "-c", fill});
  json spec = json::parse(read_file(bundle + "/config.json"));
  spec["mounts"].push_back({{"destination", "/big"}, {"type", "tmpfs"}, {"source", "tmpfs"}});
  std::ofstream(bundle + "/config.json") << spec;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const SmallDisk disk(kymod.path("small"), "size=12m");
  const Outcome ran = kymod.kymo({"run", "runc", "--bundle", bundle, "--id", "kymo-web"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(counts_on(bundle + "/rootfs"));
  const std::string dir = kymod.path("small/c");
  const Outcome failed = kymod.kymo({"dump", "runc", "kymo-web", "--dir", dir, "--force"});
  EXPECT_EQ(failed.exit_code, 1) << failed.out;
  EXPECT_NE(failed.err.find("the disk is full (" + dir + "/images.partial: "), std::string::npos)
      << failed.err;
  EXPECT_NE(failed.err.find("(failure disk-full)"), std::string::npos) << failed.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  const Outcome told = kymod.kymo({"explain", dir});
  EXPECT_NE(told.out.find("Failure: disk-full"), std::string::npos) << told.out << told.err;
}

TEST(ContainerRestoresTest, AJobHasTheCommandOfItsContainer) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  json spec = json::parse(read_file(bundle + "/config.json"));
  // runc does not wait for these hooks.
  spec["hooks"]["startContainer"] =
      json::array({{{"path", "/bin/sleep"}, {"args", {"sleep", "0.3"}}}});
  std::ofstream(bundle + "/config.json") << spec;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const json job = kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web"});
  EXPECT_EQ(job["command"], json(counting_command())) << job;
}

// Starts the job kymo-web, a container of containerd that counts.
void run_counting_containerd(const Kymod& kymod) {
  std::vector<std::string> words{"run",      "containerd", "--name",
                                 "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : counting_command()) words.push_back(word);
  static_cast<void>(kymod.kymo_json(words));
}

// The disk of containerd's state failed when the container ended. Nothing said what mends it.
TEST(ContainerRestoresTest, AFolderThatContainerdHasKeptIsExplained) {
  KYMO_NEEDS_CONTAINERD();
  Containerd containerd(fs::path(criu_path()).parent_path());
  Kymod kymod;
  kymod.start();
  run_counting_containerd(kymod);
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "containerd", "kymo-web", "--dir", dir}));
  fs::create_directory(containerd.state() + "/io.containerd.runtime.v2.task/default/kymo-web");
  const Outcome refused = kymod.kymo({"restore", dir});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("restart containerd, which removes it"), std::string::npos)
      << refused.err;
  containerd.restart();
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(containerd.status("kymo-web"), "RUNNING");
}

TEST(ContainerRestoresTest, AShimWhoseTaskWasDeletedIsEnded) {
  KYMO_NEEDS_CONTAINERD();
  Containerd containerd(fs::path(criu_path()).parent_path());
  Kymod kymod;
  kymod.start();
  run_counting_containerd(kymod);
  const std::string dir = kymod.path("one");
  static_cast<void>(
      kymod.kymo_json({"dump", "containerd", "kymo-web", "--dir", dir, "--leave-running"}));
  const std::string killed = containerd.ctr("tasks kill --signal KILL kymo-web");
  ASSERT_TRUE(eventually([&] { return containerd.status("kymo-web") == "STOPPED"; })) << killed;
  const std::string bundle = containerd.state() + "/io.containerd.runtime.v2.task/default/kymo-web";
  const Outcome deleted = run({"python3", DELETE_IN_SHIM, bundle, "kymo-web"});
  ASSERT_EQ(deleted.exit_code, 0) << deleted.err;
  ASSERT_EQ(containerd.status("kymo-web"), "") << deleted.out;
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(containerd.status("kymo-web"), "RUNNING");
}

// The restore was refused, but the dump did not say so.
TEST(ContainerRestoresTest, ARecordThatRuncCouldNotRemoveIsNamedByTheDump) {
  KYMO_NEEDS_RUNC();
  const BreakableCriu criu;
  RuncFolder runc;
  const std::string bundle = runc.start("kymo-kept");
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu.path()});
  kymod.start();
  const std::string state = runc.path() + "/kymo-kept/state.json";
  criu.let_do("chattr +i " + state);
  const std::string dir = kymod.path("one");
  const Outcome dumped = kymod.kymo({"dump", "runc", "kymo-kept", "--dir", dir});
  criu.mend();
  EXPECT_EQ(kymo::test::run({"chattr", "-i", state}).exit_code, 0);
  EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE(dumped.err.find("runc delete kymo-kept before you restore it"), std::string::npos)
      << dumped.err;
  EXPECT_TRUE(runc.runc("delete kymo-kept"));
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

}  // namespace
}  // namespace kymo::test
