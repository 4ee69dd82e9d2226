// No path in a request may lead kymod out of the directories that it was given.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class PathsTest : public testing::Test {
 protected:
  PathsTest() {
    fs::create_directory(in_);
    fs::create_directory(out_);
    fs::create_directory_symlink(out_, in_ + "/link");
  }
  void expect_refused(const std::vector<std::string>& args) const {
    const Outcome outcome = kymod_.kymo(args);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
    EXPECT_NE(outcome.err.find("(--allow-directory of kymod)"), std::string::npos) << outcome.err;
    EXPECT_TRUE(fs::is_empty(out_));
  }

  TemporaryDirectory folder_;
  std::string in_ = folder_.path() + "/in";
  std::string out_ = folder_.path() + "/out";
  Kymod kymod_{{"--allow-directory", in_}};
};

TEST(OwnFoldersTest, NoDumpGoesIntoThem) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  const std::string link = kymod.path("link");
  fs::create_directory_symlink(kymod.state(), link);
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--dir", link + "/restoring"}).exit_code, 1);
  for (const char* folder :
       {"", "/jobs/x", "/restoring", "/restoring/x", "/restores/x", "/bin/criu", "/checkpoints"}) {
    const Outcome refused =
        kymod.kymo({"dump", "process", "work", "--dir", kymod.state() + folder});
    EXPECT_EQ(refused.exit_code, 1) << folder;
    EXPECT_NE(refused.err.find("kymod keeps files of its own there"), std::string::npos)
        << refused.err;
  }
  EXPECT_TRUE(kymod.goes_on(job));
  EXPECT_EQ(
      kymod.kymo({"dump", "process", "work", "--dir", kymod.state() + "/checkpoints/c"}).exit_code,
      0);
}

TEST_F(PathsTest, DumpsRestoresAndSnapshotsStayInside) {
  KYMO_NEEDS_CRIU();
  kymod_.start();
  const nlohmann::json job = kymod_.churn(8, "work");
  const auto dump_into = [](const std::string& path) {
    return std::vector<std::string>{"dump", "process", "work", "--dir", path};
  };
  for (const std::string& path : {out_ + "/x", in_ + "/../out/x", in_ + "/link/x", in_ + "/link",
                                  std::string("/"), in_ + "-2"}) {
    expect_refused(dump_into(path));
  }
  EXPECT_TRUE(kymod_.goes_on(job));
  const std::string checkpoint = in_ + "/new/web-1";
  static_cast<void>(kymod_.kymo_json(dump_into(checkpoint)));
  EXPECT_TRUE(fs::exists(checkpoint + "/images/inventory.img"));
  // The images are moved outside, and a link replaces them.
  const std::string moved = folder_.path() + "/moved";
  fs::rename(checkpoint + "/images", moved);
  fs::create_directory_symlink(moved, checkpoint + "/images");
  expect_refused({"restore", "process", checkpoint});
  expect_refused({"restore", "process", moved});
  expect_refused({"restore", "process", in_ + "/link/x"});
  fs::remove(checkpoint + "/images");
  fs::rename(moved, checkpoint + "/images");
  fs::create_directory_symlink(out_, checkpoint + "/images/parent");
  expect_refused({"restore", "process", checkpoint});
  fs::remove(checkpoint + "/images/parent");
  fs::create_directory(checkpoint + "/images/parent");
  fs::create_directory_symlink(out_, checkpoint + "/images/parent/parent");
  expect_refused({"restore", "process", checkpoint});
  fs::remove_all(checkpoint + "/images/parent");
  expect_refused({"restore", "process", checkpoint, "--external", "mnt[data]:" + out_});
  expect_refused({"snapshot", "--dir", out_});
  expect_refused({"snapshot", "--dir", in_ + "/link"});
  static_cast<void>(kymod_.kymo_json({"restore", "process", checkpoint}));
  EXPECT_TRUE(kymod_.goes_on(kymod_.job("work")));
}

TEST_F(PathsTest, ABundleOutsideIsNotRun) {
  kymod_.start();
  for (const std::string& bundle : {out_, in_ + "/link", in_ + "/../out", in_ + "/link/new"}) {
    expect_refused({"run", "runc", "--bundle", bundle, "--id", "web"});
  }
  const Outcome inside = kymod_.kymo({"run", "runc", "--bundle", in_, "--id", "web"});
  EXPECT_NE(inside.err.find("is no bundle"), std::string::npos) << inside.err;
}

TEST_F(PathsTest, NamesOfOthersStayBelowTheStateDirectory) {
  KYMO_NEEDS_CRIU();
  kymod_.start();
  for (const char* name : {"../x", "/x", "..", "a/b"}) {
    const Outcome outcome =
        kymod_.kymo({"run", "process", "--name", name, "--", "/bin/sleep", "100"});
    EXPECT_EQ(outcome.exit_code, 1) << name;
    EXPECT_NE(outcome.err.find("a name has at most"), std::string::npos) << outcome.err;
  }
  // A process can have any name, and its checkpoint is named after it.
  const Outcome started = run({"sh", "-c",
                               "setsid /usr/bin/python3 -c 'import time; open(\"/proc/self/comm\", "
                               "\"w\").write(\"../../../x\");"
                               " time.sleep(1000)' </dev/null >/dev/null 2>&1 & echo $!"});
  const pid_t pid = std::stoi(started.out);
  EXPECT_TRUE(eventually(
      [&] { return read_file("/proc/" + std::to_string(pid) + "/comm") == "../../../x\n"; }));
  const nlohmann::json dump =
      kymod_.kymo_json({"dump", "process", std::to_string(pid), "--leave-running"});
  kill(pid, SIGKILL);
  const std::string directory = dump["directory"];
  EXPECT_EQ(fs::path(directory).parent_path(), kymod_.state() + "/checkpoints") << directory;
  EXPECT_EQ(fs::path(directory).lexically_normal(), directory);
  EXPECT_TRUE(fs::exists(directory + "/images/inventory.img"));
}

}  // namespace
}  // namespace kymo::test
