// What an operator does with a container beside kymod.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// A link to a folder, which a container has mounted.
class LinkedVolume {
 public:
  LinkedVolume() {
    folder_.folder("volume");
    fs::create_directory_symlink(folder_.path() + "/volume", path());
  }
  [[nodiscard]] std::string path() const { return folder_.path() + "/link"; }
  void replace_link() const {
    fs::remove(path());
    fs::rename(folder_.path() + "/volume", path());
  }

 private:
  TemporaryDirectory folder_;
};

// As words of a shell.
std::string in_quotes(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += " '";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

// A container of Docker, and one of podman, that counts and has a path of this machine mounted (PATH:INSIDE).
void start_with(const Docker& docker, const std::string& volume) {
  const std::string said = docker.docker("run --detach --name kymo-linked -v " + volume +
                                         in_quotes(Docker::arguments()));
  ASSERT_EQ(docker.status("kymo-linked"), "running") << said;
}
void start_with(const Kymod& kymod, PodmanContainers& podman, const std::string& volume) {
  std::vector<std::string> words{"run", "podman", "--name", "kymo-linked", "--", "-v", volume};
  for (const std::string& word : podman.arguments("kymo-linked")) words.push_back(word);
  const Outcome ran = kymod.kymo(words);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
}

void refuse_link_and_dump_without(const Kymod& kymod, const std::string& runtime,
                                  const LinkedVolume& volume, const std::string& root) {
  ASSERT_TRUE(counts_on(root));
  const std::string dir = kymod.path("one");
  const Outcome refused = kymod.kymo({"dump", runtime, "kymo-linked", "--dir", dir});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("is a symbolic link"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find(volume.path() + ", mounted at /data"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(counts_on(root)) << kymod.log();

  volume.replace_link();
  const Outcome dumped = kymod.kymo({"dump", runtime, "kymo-linked", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(root));
}

TEST(ContainerWithALinkTest, OfDockerIsRefusedAndTheContainerRunsOn) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  const LinkedVolume volume;
  ASSERT_NO_FATAL_FAILURE(start_with(docker, volume.path() + ":/data"));
  Kymod kymod;
  kymod.start();
  refuse_link_and_dump_without(kymod, "docker", volume, docker.root_of("kymo-linked"));
}

TEST(ContainerWithALinkTest, OfContainerdIsRefusedAndTheContainerRunsOn) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  const LinkedVolume volume;
  const TemporaryDirectory counts;
  const std::string mounts = " --mount type=bind,src=" + volume.path() +
                             ",dst=/data,options=rbind:rw --mount type=bind,src=" + counts.path() +
                             ",dst=/counts,options=rbind:rw ";
  const std::string said =
      containerd.ctr("run --detach --null-io" + mounts + Containerd::image() + " kymo-linked" +
                     in_quotes({"/bin/sh", "-c",
                                "i=0; while :; do i=$((i+1)); echo $i >/counts/count; "
                                "sleep 0.05; done"}));
  ASSERT_EQ(containerd.status("kymo-linked"), "RUNNING") << said;
  Kymod kymod;
  kymod.start();
  refuse_link_and_dump_without(kymod, "containerd", volume, counts.path());
}

// containerd gives CRIU no options at a restore. A lock was lost without a word, and a container with connections was
// ended and could never be restored.
TEST(ContainerdOptionsTest, OneThatARestoreWouldNotGetIsRefusedUnlessTheContainerNamesIt) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  const TemporaryDirectory counts;
  const auto run = [&](const std::string& name, const std::string& more) {
    static_cast<void>(containerd.ctr(
        "run --detach --null-io " + more + " --mount type=bind,src=" + counts.path() +
        ",dst=/counts,options=rbind:rw " + Containerd::image() + " " + name +
        in_quotes({"/bin/sh", "-c",
                   "i=0; while :; do i=$((i+1)); echo $i >/counts/count; sleep 0.05; done"})));
    return containerd.status(name);
  };
  Kymod kymod;
  kymod.start();
  ASSERT_EQ(run("kymo-plain", ""), "RUNNING");
  for (const char* option : {"--file-locks", "--tcp-established", "--ext-unix-sk"}) {
    const Outcome refused =
        kymod.kymo({"dump", "containerd", "kymo-plain", "--dir", kymod.path("plain"), option});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("does not pass it on to CRIU at a restore"), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(containerd.status("kymo-plain"), "RUNNING");
  static_cast<void>(containerd.ctr("tasks kill --signal KILL kymo-plain"));

  const std::string config = counts.file("criu.conf", "file-locks\n");
  ASSERT_EQ(run("kymo-named", "--annotation org.criu.config=" + config), "RUNNING");
  const Outcome dumped = kymod.kymo(
      {"dump", "containerd", "kymo-named", "--dir", kymod.path("named"), "--file-locks"});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = kymod.kymo({"restore", kymod.path("named")});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(counts.path()));
}

TEST(ContainerWithALinkTest, OfPodmanIsRefusedAndTheContainerRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const LinkedVolume volume;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  ASSERT_NO_FATAL_FAILURE(start_with(kymod, podman, volume.path() + ":/data"));
  refuse_link_and_dump_without(kymod, "podman", volume, podman.root_of("kymo-linked"));
}

// A file that a container has mounted, until another one of its name takes its place, as editors save files.
class ReplacedFile {
 public:
  ReplacedFile() { folder_.file("settings", "old"); }
  [[nodiscard]] std::string path() const { return folder_.path() + "/settings"; }
  void replace() const {
    folder_.file("new", "new");
    fs::rename(folder_.path() + "/new", path());
  }

 private:
  TemporaryDirectory folder_;
};

// Such a container was dumped and ended, and no restore of it could succeed: "Can't re-create deleted file".
void refuse_replaced(const Kymod& kymod, const std::string& runtime, const ReplacedFile& file,
                     const std::string& root) {
  ASSERT_TRUE(counts_on(root));
  const Outcome before = kymod.kymo({"check", runtime, "kymo-linked"});
  EXPECT_EQ(before.out.find("mnt-removed"), std::string::npos) << before.out;
  file.replace();
  const Outcome checked = kymod.kymo({"check", runtime, "kymo-linked"});
  EXPECT_EQ(checked.exit_code, 1) << checked.out;
  EXPECT_NE(checked.out.find("mnt-removed"), std::string::npos) << checked.out;
  const Outcome refused = kymod.kymo({"dump", runtime, "kymo-linked", "--dir", kymod.path("one")});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("settings mounted at /settings"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("restart the container"), std::string::npos) << refused.err;
  EXPECT_TRUE(counts_on(root)) << kymod.log();
}

TEST(ContainerWithAReplacedSourceTest, OfDockerIsRefusedAndRunsOn) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  const ReplacedFile file;
  ASSERT_NO_FATAL_FAILURE(start_with(docker, file.path() + ":/settings"));
  Kymod kymod;
  kymod.start();
  refuse_replaced(kymod, "docker", file, docker.root_of("kymo-linked"));
}

TEST(ContainerWithAReplacedSourceTest, OfPodmanIsRefusedAndRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const ReplacedFile file;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  ASSERT_NO_FATAL_FAILURE(start_with(kymod, podman, file.path() + ":/settings"));
  refuse_replaced(kymod, "podman", file, podman.root_of("kymo-linked"));
}

// An overlay of the machine, until it goes.
class HostOverlay {
 public:
  HostOverlay() {
    for (const char* name : {"below", "above", "work", "volume"}) folder_.folder(name);
    const std::string at = folder_.path();
    shell("mount -t overlay host -o lowerdir=" + at + "/below,upperdir=" + at +
          "/above,workdir=" + at + "/work " + path());
  }
  ~HostOverlay() { shell("umount " + path()); }
  HostOverlay(const HostOverlay&) = delete;
  HostOverlay& operator=(const HostOverlay&) = delete;
  [[nodiscard]] std::string path() const { return folder_.path() + "/volume"; }

 private:
  TemporaryDirectory folder_;
};

std::vector<std::string> run_of_podman(PodmanContainers& podman, const std::string& name,
                                       const std::vector<std::string>& flags,
                                       const std::vector<std::string>& command) {
  std::vector<std::string> words{"run", "podman", "--name", name, "--"};
  words.insert(words.end(), flags.begin(), flags.end());
  for (const std::string& word : podman.arguments(name, command)) words.push_back(word);
  return words;
}

// Refused, also with --leave-running, and a checkpoint that was made all the same is not restored.
TEST(ContainerWithAnOverlayTest, OfPodmanIsRefusedAndGetsNoFolderOfTheHost) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const std::string mount =
      "/bin/busybox mkdir /m; /bin/busybox mount -t overlay o -o lowerdir=/etc:/bin /m || exit 1; ";
  const Outcome ran = kymod.kymo(run_of_podman(podman, "kymo-overlay", {"--cap-add", "SYS_ADMIN"},
                                               {"/bin/sh", "-c", mount + counting_loop()}));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string root = podman.root_of("kymo-overlay");
  ASSERT_TRUE(counts_on(root));
  for (const std::vector<std::string>& further :
       {std::vector<std::string>{}, std::vector<std::string>{"--leave-running"}}) {
    std::vector<std::string> words{"dump", "podman", "kymo-overlay", "--dir", kymod.path("one")};
    words.insert(words.end(), further.begin(), further.end());
    const Outcome refused = kymod.kymo(words);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("overlay mounted at /m"), std::string::npos) << refused.err;
    EXPECT_TRUE(counts_on(root)) << kymod.log();
  }
  const std::string dir = kymod.path("forced");
  const Outcome dumped = kymod.kymo({"dump", "podman", "kymo-overlay", "--force", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE(kymod.kymo({"check", dir}).out.find("mnt-overlay"), std::string::npos);
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 1) << restored.out;
  EXPECT_NE(restored.err.find("overlay mounted at /m"), std::string::npos) << restored.err;
  EXPECT_EQ(podman.status("kymo-overlay"), "exited");
}

// podman mounts it with the options of an overlay.
TEST(ContainerWithAnOverlayTest, OfPodmansVolumeIsRefused) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const TemporaryDirectory volume;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome ran = kymod.kymo(run_of_podman(
      podman, "kymo-overlay", {"-v", volume.path() + ":/data:O"}, counting_command()));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Outcome refused =
      kymod.kymo({"dump", "podman", "kymo-overlay", "--dir", kymod.path("one")});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("overlay mounted at /data"), std::string::npos) << refused.err;
  EXPECT_TRUE(counts_on(podman.root_of("kymo-overlay"))) << kymod.log();
}

// The runtime names it to CRIU, which does not mount it.
TEST(ContainerWithAnOverlayTest, OneOfTheHostIsDumpedAndRestored) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const HostOverlay volume;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome ran = kymod.kymo(
      run_of_podman(podman, "kymo-overlay", {"-v", volume.path() + ":/data"}, counting_command()));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string dir = kymod.path("one");
  const Outcome dumped = kymod.kymo({"dump", "podman", "kymo-overlay", "--dir", dir});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(podman.root_of("kymo-overlay")));
}

// Its bundle is found by its shim.
TEST(ContainerWithAnOverlayTest, OneOfTheHostIsNoFindingOfDocker) {
  KYMO_NEEDS_DOCKER();
  const Docker docker(fs::path(criu_path()).parent_path());
  const HostOverlay volume;
  ASSERT_NO_FATAL_FAILURE(start_with(docker, volume.path() + ":/data"));
  Kymod kymod;
  kymod.start();
  const Outcome checked = kymod.kymo({"check", "docker", "kymo-linked"});
  EXPECT_EQ(checked.out.find("mnt-overlay"), std::string::npos) << checked.out;
  const Outcome dry =
      kymod.kymo({"dump", "docker", "kymo-linked", "--dry-run", "--dir", kymod.path("none")});
  EXPECT_EQ(dry.out.find("refuses: "), std::string::npos) << dry.out;
}

// Its files are an overlay as well.
TEST(ContainerWithAnOverlayTest, OfAnImageIsRefusedAndRunsOn) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string image = "localhost/kymo-mounted";
  const TemporaryDirectory folder;
  folder.file("file", "text");
  static_cast<void>(shell("tar -C " + folder.path() + " -cf " + folder.path() + ".tar ."));
  const std::string said = podman.podman("import " + folder.path() + ".tar " + image);
  fs::remove(folder.path() + ".tar");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  std::vector<std::string> words{"run",
                                 "podman",
                                 "--name",
                                 "kymo-linked",
                                 "--",
                                 "--mount",
                                 "type=image,source=" + image + ",destination=/data"};
  for (const std::string& word : podman.arguments("kymo-linked")) words.push_back(word);
  const Outcome ran = kymod.kymo(words);
  ASSERT_EQ(ran.exit_code, 0) << ran.err << said;
  const std::string root = podman.root_of("kymo-linked");
  ASSERT_TRUE(counts_on(root));
  const Outcome refused = kymod.kymo({"dump", "podman", "kymo-linked"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("overlay mounted at /data"), std::string::npos) << refused.err;
  EXPECT_TRUE(counts_on(root));
  static_cast<void>(podman.podman("rm -f -t 0 kymo-linked"));
  static_cast<void>(podman.podman("rmi " + image));
}

TEST(ContainerCompanionsTest, OneThatWasStartedFromOutsideIsNotLostInADump) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  ASSERT_TRUE(runc.runc("exec --detach --pid-file " + bundle + "/pid kymo-web /bin/sleep 4711"));
  const pid_t companion = std::stoi(read_file(bundle + "/pid"));
  const auto lives = [&] {  // a zombie has no program
    std::error_code error;
    static_cast<void>(fs::read_symlink("/proc/" + std::to_string(companion) + "/exe", error));
    return !error;
  };
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string dir = kymod.path("one");
  const Outcome refused = kymod.kymo({"dump", "runc", "kymo-web", "--dir", dir});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("process " + std::to_string(companion) +
                             " (sleep) was started in it from outside"),
            std::string::npos)
      << refused.err;
  EXPECT_TRUE(lives());
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));

  const Outcome left = kymod.kymo({"dump", "runc", "kymo-web", "--leave-running"});
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_TRUE(lives());

  const Outcome forced = kymod.kymo({"dump", "runc", "kymo-web", "--dir", dir, "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_TRUE(eventually([&] { return !lives(); }));
  const Outcome restored = kymod.kymo({"restore", dir});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainerRootTest, IsKeptIfContainerdIsRestartedDuringARestore) {
  KYMO_NEEDS_CONTAINERD();
  const BreakableCriu criu;
  Containerd containerd(criu.folder());
  Kymod kymod;
  kymod.start();
  std::vector<std::string> words{"run",      "containerd", "--name",
                                 "kymo-web", "--",         Containerd::image()};
  for (const std::string& word : counting_command()) words.push_back(word);
  static_cast<void>(kymod.kymo_json(words));
  const std::string dir = kymod.path("one");
  static_cast<void>(kymod.kymo_json({"dump", "containerd", "kymo-web", "--dir", dir}));
  criu.break_at("Running pre-resume scripts", SIGSTOP);  // runc has written its state
  Outcome cut_short;
  std::thread client([&] { cut_short = kymod.kymo({"restore", dir}); });
  EXPECT_NE(criu.stopped(), 0) << kymod.log();
  criu.mend();
  containerd.restart();
  client.join();
  EXPECT_EQ(cut_short.exit_code, 1) << cut_short.out;
  Outcome restored;
  // kymod connects again up to a second later.
  ASSERT_TRUE(eventually([&] {
    restored = kymod.kymo({"restore", dir});
    return restored.err.find("no program listens") == std::string::npos;
  }));
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(containerd.status("kymo-web"), "RUNNING");
}

}  // namespace
}  // namespace kymo::test
