// What every runtime has to promise: a container that was restored can be dumped again, and again.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// As counting_loop(). As soon as there is a file /print, it also prints 32 KiB each time, which is more after two
// times than a pipe holds.
std::vector<std::string> printing_command() {
  return {"/bin/sh", "-c",
          "x=$(busybox head -c 32768 /dev/zero | busybox tr '\\0' x); i=1000000; while true; do "
          "i=$((i+1)); echo $i 1<>/count; [ -e /print ] && echo $x && echo $x >&2; sleep 0.1; "
          "done"};
}

std::string in_shell(const std::vector<std::string>& command) {
  std::string words;
  for (const std::string& word : command) {
    words += " '";
    for (const char c : word) words += c == '\'' ? std::string("'\\''") : std::string(1, c);
    words += "'";
  }
  return words;
}

// The runtime under test, with what it needs.
struct Runtimes {
  std::unique_ptr<RuncFolder> runc;
  std::unique_ptr<PodmanContainers> podman;
  std::unique_ptr<Containerd> containerd;
  std::unique_ptr<Docker> docker;
};

struct Start {
  std::string name;
  std::string runtime;
  // Why it cannot be tested here.
  const std::string& (*why_not)();
  // Starts the container "kymo-web", whose program is printing_command().
  std::function<void(Runtimes&)> start;
};

std::string criu_folder() {
  return fs::path(criu_path()).parent_path();
}

void start_runc(Runtimes& all, const std::string& redirections) {
  const std::string bundle = make_bundle(all.runc->folder(), "bundle", printing_command());
  // Not by shell(), which waits until the last writer of its pipe has ended.
  const std::string command = "runc --root '" + all.runc->path() + "' run -d --bundle '" + bundle +
                              "' kymo-web " + redirections;
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(eventually([&] { return all.runc->status("kymo-web") == "running"; }));
}

void start_podman(Runtimes& all, const std::string& flags) {
  const std::string said =
      all.podman->podman("run -d --replace " + flags + " --name kymo-web" +
                         in_shell(all.podman->arguments("kymo-web", printing_command())));
  EXPECT_EQ(all.podman->status("kymo-web"), "running") << said;
}

void start_containerd(Runtimes& all, const std::string& flags) {
  const std::string said = all.containerd->ctr("run -d " + flags + " " + Containerd::image() +
                                               " kymo-web" + in_shell(printing_command()));
  EXPECT_EQ(all.containerd->status("kymo-web"), "RUNNING") << said;
}

void start_docker(Runtimes& all, const std::string& flags) {
  const std::string said = all.docker->docker("run -d " + flags + " --name kymo-web" +
                                              in_shell(Docker::arguments(printing_command())));
  EXPECT_EQ(all.docker->status("kymo-web"), "running") << said;
}

const std::vector<Start>& starts() {
  static const std::vector<Start> kStarts{
      {"Runc", "runc", why_no_runc,
       [](Runtimes& all) { start_runc(all, "</dev/null >/dev/null 2>&1"); }},
      {"Podman", "podman", why_no_podman, [](Runtimes& all) { start_podman(all, ""); }},
      {"PodmanWithInput", "podman", why_no_podman, [](Runtimes& all) { start_podman(all, "-i"); }},
      {"Containerd", "containerd", why_no_containerd,
       [](Runtimes& all) { start_containerd(all, ""); }},
      {"ContainerdWithoutOutput", "containerd", why_no_containerd,
       [](Runtimes& all) { start_containerd(all, "--null-io"); }},
      {"ContainerdWithALog", "containerd", why_no_containerd,
       [](Runtimes& all) {
         start_containerd(all, "--log-uri file://" + all.containerd->temporary() + "/log");
       }},
      {"Docker", "docker", why_no_docker, [](Runtimes& all) { start_docker(all, ""); }},
      {"DockerWithInput", "docker", why_no_docker, [](Runtimes& all) { start_docker(all, "-i"); }},
  };
  return kStarts;
}

class ContainerRepeatedRestoresTest : public testing::TestWithParam<Start> {};

TEST_P(ContainerRepeatedRestoresTest, CanBeDumpedAndRestoredAgainAndAgain) {
  const Start& how = GetParam();
  if (!how.why_not().empty()) GTEST_SKIP() << how.why_not();
  Runtimes all;
  std::vector<std::string> flags;
  if (how.runtime == "runc") {
    all.runc = std::make_unique<RuncFolder>();
    flags = {"--runc-root", all.runc->path()};
  } else if (how.runtime == "podman") {
    all.podman = std::make_unique<PodmanContainers>();
    flags = {"--podman-flags=" + PodmanContainers::flags()};
  } else if (how.runtime == "containerd") {
    all.containerd = std::make_unique<Containerd>(criu_folder());
  } else {
    all.docker = std::make_unique<Docker>(criu_folder());
  }
  Kymod kymod(flags);
  kymod.start();
  how.start(all);
  for (const char* const round : {"one", "two", "three"}) {
    SCOPED_TRACE(round);
    const std::string dir = kymod.path(round);
    const Outcome dumped = kymod.kymo({"dump", how.runtime, "kymo-web", "--dir", dir});
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    const std::string root =
        "/proc/" + std::to_string(kymod.kymo_json({"restore", dir})["pid"].get<int>()) + "/root";
    ASSERT_TRUE(counts_on(root));
    // It would not go on if nobody took its output, or if that were closed.
    std::ofstream(root + "/print") << "now";
    const int before = std::stoi(read_file(root + "/count"));
    ASSERT_TRUE(eventually([&] {
      const std::string now = read_file(root + "/count");
      return !now.empty() && std::stoi(now) > before + 10;
    })) << "it stopped at "
        << read_file(root + "/count");
    fs::remove(root + "/print");
  }
}

// containerd's shim keeps the input of a container open, also if nobody writes to it. If a restored shell read the end of
// its input, it would end.
TEST(ContainerInputTest, AShellOfContainerdThatWaitsForInputWaitsOn) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(criu_folder());
  Kymod kymod;
  kymod.start();
  const std::string said = containerd.ctr("run -d " + Containerd::image() + " kymo-web sh");
  ASSERT_EQ(containerd.status("kymo-web"), "RUNNING") << said;
  for (const char* const round : {"one", "two"}) {
    SCOPED_TRACE(round);
    const std::string dir = kymod.path(round);
    const Outcome dumped = kymod.kymo({"dump", "containerd", "kymo-web", "--dir", dir});
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    const std::string process =
        "/proc/" + std::to_string(kymod.kymo_json({"restore", dir})["pid"].get<int>());
    // read() of descriptor 0, in which it waits.
    ASSERT_TRUE(eventually([&] { return read_file(process + "/syscall").starts_with("0 0x0 "); }))
        << containerd.status("kymo-web");
    for (const fs::directory_entry& entry : fs::directory_iterator(dir + "/work")) {
      EXPECT_FALSE(fs::is_fifo(entry.symlink_status())) << entry;
    }
  }
}

// runc has no process that could read from new pipes.
TEST(ContainerPipesTest, OfRuncAreLostByARestoreAndTheDumpSaysSo) {
  KYMO_NEEDS_RUNC();
  Runtimes all;
  all.runc = std::make_unique<RuncFolder>();
  Kymod kymod({"--runc-root", all.runc->path()});
  kymod.start();
  start_runc(all, "</dev/null 2>&1 | cat >/dev/null 2>&1 &");
  const nlohmann::json dumped =
      kymod.kymo_json({"dump", "runc", "kymo-web", "--dir", kymod.path("one")});
  ASSERT_EQ(dumped["warnings"].size(), 1U) << dumped;
  EXPECT_NE(dumped["warnings"][0].get<std::string>().find("CRIU cannot dump the container again"),
            std::string::npos)
      << dumped;
}

INSTANTIATE_TEST_SUITE_P(Each, ContainerRepeatedRestoresTest, testing::ValuesIn(starts()),
                         [](const auto& start) { return start.param.name; });

}  // namespace
}  // namespace kymo::test
