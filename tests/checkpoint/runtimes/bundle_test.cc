#include "checkpoint/runtimes/runc/bundle.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "checkpoint/runtimes/runc/runc_runtime.h"
#include "support/containers.h"
#include "support/real_criu.h"
#include "support/shell.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;

TEST(BundleTest, AFolderForTheOldRootIsMadeInAReadOnlyRootThatLacksIt) {
  const test::TemporaryDirectory folder;
  folder.folder("rootfs");
  folder.file("config.json", R"({"root": {"path": "rootfs", "readonly": true}})");
  const auto root = prepare_root("restore x", folder.path());
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_TRUE(root->read_only);
  EXPECT_NE(root->made.find(folder.path() + "/rootfs/tmp"), std::string::npos) << root->made;
  EXPECT_TRUE(fs::is_directory(folder.path() + "/rootfs/tmp"));
  EXPECT_EQ(prepare_root("restore x", folder.path())->made, "")
      << "the folder already exists at the second call";
}

TEST(BundleTest, AWritableRootIsLeftAlone) {
  const test::TemporaryDirectory folder;
  folder.folder("rootfs");
  for (const char* config :
       {R"({"root": {"path": "rootfs"}})", R"({"root": {"path": "rootfs", "readonly": false}})",
        R"({"root": {"path": 7, "readonly": true}})", R"({"root": []})", "[]", "{", ""}) {
    folder.file("config.json", config);
    const auto root = prepare_root("restore x", folder.path());
    ASSERT_TRUE(root) << config;
    EXPECT_FALSE(root->read_only) << config;
    EXPECT_FALSE(fs::exists(folder.path() + "/rootfs/tmp")) << config;
  }
}

TEST(BundleTest, APathOfAContainerIsInItsRootOrInABindMount) {
  const test::TemporaryDirectory folder;
  folder.file("config.json", R"({"root": {"path": "rootfs"}, "mounts": [
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
    {"destination": "/data", "source": "/srv/data", "options": ["ro", "rbind"]},
    {"destination": "/data/own", "type": "bind", "source": "own"}]})");
  const criu::PlaceOfGhost place_of = places_in_bundle(folder.path());
  const auto place = [&](const std::string& path) {
    const auto at = place_of(path);
    return at ? at->folder + ":" + at->name : "nowhere";
  };
  EXPECT_EQ(place("/var/a"), folder.path() + "/rootfs:var/a");
  EXPECT_EQ(place("/tmp/a"), "nowhere");
  EXPECT_EQ(place("/data/b/a"), "/srv/data:b/a");
  EXPECT_EQ(place("/data/own/a"), folder.path() + "/own:a");
  folder.file("config.json", "{");
  EXPECT_FALSE(places_in_bundle(folder.path())("/a").has_value());
}

TEST(RuncMemoryTest, ANewRuntimeRemovesWhatTheLastOneCouldNot) {
  const test::TemporaryDirectory folder;
  folder.file("config.json", "{}");
  const std::string left = folder.folder("root") + "/web";
  RuncRuntimeOptions options;
  options.root = folder.path() + "/root";
  options.memory = folder.path() + "/left";
  options.timeout = std::chrono::seconds(10);
  // This runc makes the folder and fails. It deletes the folder only if the file "may" exists.
  options.program = folder.file("runc",
                                "#!/bin/sh\ncd '" + folder.path() +
                                    "'\ncase \"$*\" in *delete*) [ ! -e may ] || rmdir '" + left +
                                    "';; *) mkdir '" + left + "'; exit 1;; esac\n",
                                0755);
  RunSpec spec;
  spec.container = "web";
  spec.bundle = folder.path();
  spec.work_dir = folder.path();
  EXPECT_FALSE(make_runc_runtime(options)->run(spec).ok());
  EXPECT_TRUE(fs::exists(left));
  folder.file("may", "");
  static_cast<void>(make_runc_runtime(options));
  EXPECT_FALSE(fs::exists(left));
  // A container of another user with this name must stay.
  fs::create_directory(left);
  static_cast<void>(make_runc_runtime(options));
  EXPECT_TRUE(fs::exists(left));
}

TEST(BundleTest, ALinkInPlaceOfTheRootWasFollowed) {
  const test::TemporaryDirectory folder;
  const std::string precious = folder.folder("precious");
  const std::string bundle = folder.folder("bundle");
  folder.folder("precious/inner");
  fs::create_directory_symlink(precious, bundle + "/rootfs");
  for (const std::string& path : {std::string("rootfs"), std::string("rootfs/"), bundle + "/rootfs",
                                  std::string("../bundle/rootfs"), std::string("rootfs/inner")}) {
    folder.file("bundle/config.json", R"({"root": {"readonly": true, "path": ")" + path + R"("}})");
    const auto root = prepare_root("restore x", bundle);
    ASSERT_FALSE(root) << path;
    EXPECT_NE(root.error().message.find("is a link or lies behind one"), std::string::npos)
        << root.error().message;
    EXPECT_FALSE(fs::exists(precious + "/tmp")) << path;
    EXPECT_FALSE(fs::exists(precious + "/inner/tmp")) << path;
  }
}

TEST(BundleTest, TheBundleMayBeReachedThroughALinkAndTheRootMayLieBesideIt) {
  const test::TemporaryDirectory folder;
  const std::string bundle = folder.folder("bundle");
  fs::create_directory_symlink(bundle, folder.path() + "/link");
  const std::string real = fs::canonical(folder.path());
  for (const std::string& path : {std::string("rootfs"), std::string("./deeper//rootfs/"),
                                  std::string("../beside"), real + "/absolute"}) {
    fs::create_directories(fs::path(real + "/bundle") / path);
    folder.file("bundle/config.json", R"({"root": {"readonly": true, "path": ")" + path + R"("}})");
    const auto root = prepare_root("restore x", folder.path() + "/link");
    ASSERT_TRUE(root) << root.error().message;
    const fs::path tmp = fs::path(real + "/bundle") / path / "tmp";
    EXPECT_EQ(fs::status(tmp).permissions(), fs::perms(01777)) << tmp;
  }
}

TEST(BundleTest, ATmpThatIsALinkIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string precious = folder.folder("precious");
  folder.folder("rootfs");
  folder.file("config.json", R"({"root": {"path": "rootfs", "readonly": true}})");
  fs::create_directory_symlink(precious + "/new", folder.path() + "/rootfs/tmp");
  EXPECT_FALSE(prepare_root("restore x", folder.path()));
  EXPECT_TRUE(fs::is_empty(precious));
}

TEST(BundleTest, AFolderThatCannotBeMadeIsNamed) {
  const test::TemporaryDirectory folder;
  folder.file("config.json", R"({"root": {"path": "/nowhere/rootfs", "readonly": true}})");
  const auto root = prepare_root("restore x", folder.path());
  ASSERT_FALSE(root);
  EXPECT_NE(root.error().message.find("make /nowhere/rootfs/tmp"), std::string::npos)
      << root.error().message;
}

TEST(BundleTest, WhatARestoreWouldRefuseIsRefusedBeforeTheDump) {
  const test::TemporaryDirectory folder;
  const std::string rootfs = folder.folder("rootfs");
  folder.file("config.json", R"({"process": {"terminal": true}, "root": {"path": "rootfs"}})");
  const auto terminal = check_restorable("dump x", folder.path());
  ASSERT_FALSE(terminal);
  EXPECT_NE(terminal.error().message.find("dump x: it has a terminal"), std::string::npos);

  folder.file("config.json", R"({"root": {"path": "rootfs", "readonly": true}})");
  EXPECT_TRUE(check_restorable("dump x", folder.path()));
  EXPECT_TRUE(fs::is_empty(rootfs)) << "the check must not make the folder, the restore does";
  ASSERT_EQ(mount("none", rootfs.c_str(), "tmpfs", MS_RDONLY, nullptr), 0);
  const auto root = check_restorable("dump x", folder.path());
  umount2(rootfs.c_str(), MNT_DETACH);
  ASSERT_FALSE(root);
  EXPECT_NE(root.error().message.find("make " + rootfs + "/tmp"), std::string::npos)
      << root.error().message;
  EXPECT_NE(root.error().message.find("Read-only file system"), std::string::npos)
      << root.error().message;
}

TEST(BundleTest, ABundleThatCannotBeReadStopsNoDump) {
  const test::TemporaryDirectory folder;
  EXPECT_TRUE(check_restorable("dump x", folder.path() + "/nowhere"));
  for (const char* config : {"", "[]", R"({"process": []})", R"({"process": {"terminal": 1}})"}) {
    folder.file("config.json", config);
    EXPECT_TRUE(check_restorable("dump x", folder.path())) << config;
  }
}

TEST(RuncTerminalTest, ADumpIsRefusedAndTheContainerRunsOn) {
  KYMO_NEEDS_RUNC();
  const test::RuncFolder runc;
  const std::string bundle = test::make_bundle(runc.folder(), "web", test::counting_command());
  std::string config = read_file(bundle + "/config.json").value();
  const std::string none = R"("terminal": false)";
  config.replace(config.find(none), none.size(), R"("terminal": true)");
  std::ofstream(bundle + "/config.json") << config;
  const std::string socket = runc.folder().path() + "/console";
  // A program that accepts the other end of the terminal and keeps it open.
  const std::string keeper =
      "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind(\"" + socket +
      "\"); s.listen(); c, _ = s.accept(); m = socket.recv_fds(c, 100, 1); time.sleep(1000)";
  const auto [pid, good] = test::shell("python3 -c '" + keeper + "' >/dev/null 2>&1 & echo $!");
  ASSERT_TRUE(good);
  ASSERT_TRUE(test::eventually([&] { return fs::exists(socket); }));
  ASSERT_TRUE(runc.runc("run -d --console-socket " + socket + " --bundle '" + bundle + "' web"));
  ASSERT_TRUE(test::counts_on(bundle + "/rootfs"));
  RuncRuntimeOptions options;
  options.root = runc.path();
  options.timeout = std::chrono::seconds(60);
  const auto runtime = make_runc_runtime(options);
  DumpSpec dump{runtime->find("web")->process, runc.folder().folder("images"),
                runc.folder().folder("work"), false, "web"};
  for (const bool shell_job : {false, true}) {
    dump.options.shell_job = shell_job;
    const Result<DumpOutcome> dumped = runtime->dump(dump, {});
    ASSERT_FALSE(dumped.ok());
    EXPECT_NE(dumped.error().message.find("it has a terminal"), std::string::npos)
        << dumped.error().message;
  }
  EXPECT_TRUE(test::counts_on(bundle + "/rootfs"));
  kill(std::stoi(pid), SIGKILL);
}

}  // namespace
}  // namespace kymo::runtime
