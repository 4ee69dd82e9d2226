#include "checkpoint/criu/drive/scratch_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

class ScratchFolderTest : public testing::Test {
 protected:
  ScratchFolderTest() : before_(::getenv("TMPDIR") != nullptr ? ::getenv("TMPDIR") : "/tmp") {
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  void TearDown() override { ::setenv("TMPDIR", before_.c_str(), 1); }

  // A process that made a scratch folder and wrote into it. It was killed afterwards, or, if
  // `lives`, it still has the folder.
  pid_t child(std::string& path) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto scratch = ScratchFolder::create("kymo-check");
      if (scratch) {
        fs::create_directory(scratch->path() + "/inner");
        const std::string text = scratch->path() + "\n";
        static_cast<void>(!::write(ends[1], text.data(), text.size()));
      }
      for (;;) ::pause();
    }
    char letter = 0;
    while (::read(ends[0], &letter, 1) == 1 && letter != '\n') path += letter;
    ::close(ends[0]);
    ::close(ends[1]);
    return pid;
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  test::TemporaryDirectory folder_;
  std::string before_;
};

TEST_F(ScratchFolderTest, IsGoneWithItsOwner) {
  {
    const auto scratch = ScratchFolder::create("kymo-check");
    ASSERT_TRUE(scratch.ok());
    EXPECT_TRUE(fs::is_directory(scratch->path()));
    EXPECT_EQ(fs::status(scratch->path()).permissions(), fs::perms::owner_all);
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(ScratchFolderTest, TheNextOneRemovesWhatAKilledProcessLeftAndNothingElse) {
  std::string of_dead;
  std::string of_living;
  end(child(of_dead));
  const pid_t living = child(of_living);
  EXPECT_FALSE(fs::exists(of_dead))
      << "the second process must have removed it when it made its own folder";
  // Nobody has it locked, like a folder of a version that did not lock.
  fs::create_directory(of_dead);
  fs::create_directory(folder_.path() + "/kymo-checkup-x");
  fs::create_directory(folder_.path() + "/another-AAAAAA");
  fs::create_directory(folder_.path() + "/target");
  fs::create_symlink(folder_.path() + "/target", folder_.path() + "/kymo-check-AAAAAA");
  {
    const auto scratch = ScratchFolder::create("kymo-check");
    ASSERT_TRUE(scratch.ok());
    EXPECT_FALSE(fs::exists(of_dead));
    EXPECT_TRUE(fs::exists(of_living + "/inner"));
  }
  // The folder of the living process, two unrelated ones, a link and its target.
  EXPECT_EQ(entries(), 5U);
  end(living);
}

TEST_F(ScratchFolderTest, AFolderThatCannotBeMadeIsAnError) {
  ::setenv("TMPDIR", (folder_.path() + "/none").c_str(), 1);
  const auto scratch = ScratchFolder::create("a/b");  // the folder "a" exists nowhere
  ASSERT_FALSE(scratch.ok());
  EXPECT_NE(scratch.error().message.find("a/b-"), std::string::npos);
}

}  // namespace
}  // namespace kymo::criu
