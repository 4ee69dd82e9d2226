#include "checkpoint/criu/drive/log.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

TEST(LogTest, KeepsTheLastErrorsAndLeavesOutWhatEveryLogHas) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.file(
      "dump.log",
      "(00.000001) Error (criu/rlimit.c:56): rlimit: Can't setup RLIMIT_NOFILE for self\n"
      "(00.000010) Dumping processes (pid: 7)\n"
      "(00.000011) Error (criu/a.c:1): first\n"
      "(00.000012) Error (criu/a.c:2): second\n"
      "(00.000013)      7: Error (criu/a.c:3): third\n"
      "(00.000014) Error (criu/a.c:4): fourth\n"
      "(00.000015) Error (criu/cr-dump.c:2098): Dumping FAILED.\n");
  EXPECT_EQ(last_errors(log),
            "Error (criu/a.c:2): second; Error (criu/a.c:3): third; Error (criu/a.c:4): fourth");
}

TEST(LogTest, AnErrorThatIsRepeatedIsToldOnce) {
  const test::TemporaryDirectory folder;
  const std::string log = folder.file(
      "dump.log",
      "(00.000010) Error (criu/a.c:1): why it began\n"
      "(00.000011) Error (criu/bfd.c:131): bfd: Error flushing image: No space left on device\n"
      "(00.000012) Error (criu/bfd.c:131): bfd: Error flushing image: No space left on device\n"
      "(00.000013) Error (criu/bfd.c:99): bfd: Error flushing image: No space left on device\n");
  EXPECT_EQ(last_errors(log),
            "Error (criu/a.c:1): why it began; "
            "Error (criu/bfd.c:99): bfd: Error flushing image: No space left on device");
}

TEST(LogTest, ALogThatIsMissingOrCleanSaysNothing) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(last_errors(folder.path() + "/missing"), "");
  EXPECT_EQ(last_errors(folder.file("clean", "(00.1) all is well\n")), "");
}

// Docker failed after CRIU had succeeded.
TEST(LogTest, ALogOfASuccessHasNoCause) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(cause_in(folder.file("dump.log",
                                 "(00.1) Error (criu/a.c:1): not that bad\n"
                                 "(00.2) Dumping finished successfully\n")),
            "");
}

// A checkpoint may have a link in place of the log, to a file that the checkpoint's owner may not
// read.
TEST(LogTest, ALinkInPlaceOfTheLogIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const std::string other = folder.file("other", "(00.1) Error (criu/a.c:1): a secret\n");
  const std::string log = folder.path() + "/restore.log";
  std::filesystem::create_symlink(other, log);
  EXPECT_EQ(last_errors(log), "");
}

TEST(LogTest, ReadsTheEndOfALongLog) {
  const test::TemporaryDirectory folder;
  const std::string text =
      "Error (early): lost\n" + std::string(1 << 20, 'x') + "\nError (late): kept";
  EXPECT_EQ(last_errors(folder.file("long", text)), "Error (late): kept");
}

// The full disk also cut CRIU's own message in the log.
TEST(LogTest, AFullDiskThatCutTheLogIsNamed) {
  const test::TemporaryDirectory folder;
  const std::string disk = folder.folder("disk");
  ASSERT_EQ(mount("none", disk.c_str(), "tmpfs", 0, "size=8k"), 0);
  const std::string log = disk + "/dump.log";
  std::ofstream(log) << "(00.1) Error (criu/image.c:1): Unable to write\n(00.2) Error (criu/ima";
  EXPECT_EQ(last_errors(log), "Error (criu/image.c:1): Unable to write; Error (criu/ima");
  std::ofstream(disk + "/filling") << std::string(1 << 20, 'x');
  EXPECT_EQ(last_errors(log),
            "Error (criu/image.c:1): Unable to write; Error (criu/ima; No space left on device");
  std::ofstream(log, std::ios::app) << "ge.c:2): Cannot\n";
  EXPECT_EQ(last_errors(log),
            "Error (criu/image.c:1): Unable to write; Error (criu/image.c:2): Cannot");
  std::ofstream(disk + "/empty.log").flush();
  EXPECT_EQ(last_errors(disk + "/empty.log"), "No space left on device");
  EXPECT_EQ(umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace kymo::criu
