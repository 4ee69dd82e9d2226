// A process that runs on after its dump writes to its files. CRIU then refuses every restore of the dump.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "programs.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class GrowingFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    // Descriptor 3 is appended to and never read, 4 is only read: CRIU compares the size of the other two.
    const std::string script =
        "exec 3>>\"$0/appended\" 4<\"$0/read\" 5>\"$0/written\" 6<>\"$0/both\"; i=0; "
        "while :; do i=$((i + 1)); echo $i; echo $i >&3; echo $i >&5; sleep 0.05; done";
    folder_.file("read", "text\n");
    const nlohmann::json job = kymod_.kymo_json(
        {"run", "process", "--name", "work", "--", "/bin/sh", "-c", script, folder_.path()});
    ASSERT_TRUE(kymod_.goes_on(job));
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] std::string dir() const { return kymod_.path("c"); }

  const TemporaryDirectory folder_;
  Kymod kymod_;
};

TEST_F(GrowingFilesTest, AreNamedAtTheDumpAndTheRefusedRestoreSaysWhatToDo) {
  const Outcome dumped =
      kymod_.kymo({"dump", "process", "work", "--leave-running", "--dir", dir()});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  EXPECT_NE(dumped.err.find(file("written")), std::string::npos) << dumped.err;
  EXPECT_NE(dumped.err.find(file("both")), std::string::npos) << dumped.err;
  EXPECT_EQ(dumped.err.find(file("appended")), std::string::npos) << dumped.err;
  EXPECT_EQ(dumped.err.find(file("read")), std::string::npos) << dumped.err;
  EXPECT_EQ(dumped.err.find("/jobs/"), std::string::npos) << "kymod's own files: " << dumped.err;

  const auto then = fs::file_size(file("written"));
  ASSERT_TRUE(eventually([&] { return fs::file_size(file("written")) > then + 10; }));
  const std::string session = kymod_.job("work")["pid"].dump();
  ASSERT_EQ(kymod_.kymo({"kill", "work", "--signal", "KILL", "--wait"}).exit_code, 0);
  // A child may live on for a moment, and its session has the number of the pid.
  ASSERT_TRUE(eventually([&] { return run({"pgrep", "-s", session}).exit_code == 1; }));
  const Outcome refused = kymod_.kymo({"restore", dir()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("a file is larger than at the dump (" + file("written") + ", "),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find(" more)"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("failure file-size"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(dir() + "/recordings/restore.tsv")) << "it is refused before it begins";
  // Does what it says.
  const std::size_t begin = refused.err.find("truncate -s ");
  ASSERT_NE(begin, std::string::npos) << refused.err;
  const std::size_t end = refused.err.find(". Else", begin);
  ASSERT_EQ(run({"/bin/sh", "-c", refused.err.substr(begin, end - begin)}).exit_code, 0);
  const Outcome restored = kymod_.kymo({"restore", dir()});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(kymod_.goes_on(kymod_.job("work")));
}

TEST_F(GrowingFilesTest, AreNotNamedIfTheProcessEnds) {
  const Outcome dumped = kymod_.kymo({"dump", "process", "work", "--dir", dir()});
  EXPECT_EQ(dumped.exit_code, 0);
  EXPECT_EQ(dumped.err, "");
}

TEST_F(GrowingFilesTest, AFileThatIsSmallerIsRefusedWithoutAnAdviceToCutIt) {
  ASSERT_EQ(kymod_.kymo({"dump", "process", "work", "--dir", dir()}).exit_code, 0);
  fs::resize_file(file("read"), 2);
  const Outcome refused = kymod_.kymo({"restore", dir()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("a file is smaller than at the dump (" + file("read") +
                             ", 5 bytes then, 2 now: 3 fewer). Put the old file back."),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace kymo::test
