#include "base/own_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace kymo {
namespace {

std::string refusal(const std::string& path) {
  const Result<FileDescriptor> opened = open_own_folder(path);
  return opened ? "opened" : opened.error().message;
}

TEST(OwnFolderTest, OneThatOthersCanWriteIntoOrALinkIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("work");
  for (const mode_t mode : {0700U, 0755U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(refusal(path), "opened");
  }
  for (const mode_t mode : {0770U, 0702U, 01777U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_NE(refusal(path).find(": chmod go-w " + path), std::string::npos) << refusal(path);
  }
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  const std::string link = folder.path() + "/link";
  std::filesystem::create_directory_symlink(path, link);
  EXPECT_NE(refusal(link).find("it is a link, which is not followed"), std::string::npos);
  EXPECT_NE(refusal(folder.file("file", "")).find("Not a directory"), std::string::npos);
  EXPECT_EQ(open_own_folder(folder.path() + "/none").error().code, Code::not_found);
}

TEST(OwnFolderTest, OneOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const test::TemporaryDirectory folder;
  const std::string path = folder.folder("work");
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(path).find("it belongs to uid 65534"), std::string::npos) << refusal(path);
  EXPECT_NE(refusal(path).find("chown it to uid 0"), std::string::npos) << refusal(path);
}

// Otherwise the owner of a checkpoint could replace its folder by a link after the check and before
// the write.
TEST(OwnPathTest, OneThatOthersCanLeadElsewhereIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const test::TemporaryDirectory folder;
  const std::string theirs = folder.folder("theirs");
  const std::string inside = folder.folder("theirs/c");
  const std::string ours = folder.folder("ours");
  const auto refused = [](const std::string& path) {
    const Result<void> checked = check_own_path(path);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refused(inside), "") << "/tmp is sticky, so another user cannot replace the folder";
  EXPECT_EQ(refused(folder.path() + "/not/there/yet"), "");
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(refused(inside).starts_with(theirs + ": it belongs to uid 65534")) << refused(inside);
  std::filesystem::create_directory_symlink(inside, ours + "/link");
  std::filesystem::create_directory_symlink("../theirs/c", ours + "/relative");
  for (const char* link : {"/link", "/relative", "/relative/deeper"}) {
    EXPECT_TRUE(refused(ours + link).starts_with(theirs) ||
                refused(ours + link).starts_with(ours + "/../theirs"))
        << refused(ours + link);
  }
  ASSERT_EQ(chown(theirs.c_str(), 0, 0), 0);
  EXPECT_EQ(refused(ours + "/link"), "");
  ASSERT_EQ(chmod(theirs.c_str(), 0775), 0);
  EXPECT_NE(refused(inside).find("other users may write into it (mode 0775)"), std::string::npos);
  ASSERT_EQ(lchown((ours + "/link").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(refused(ours + "/link").starts_with(ours + "/link: it belongs to uid 65534"));
  std::filesystem::create_directory_symlink("round", ours + "/round");
  EXPECT_NE(refused(ours + "/round").find("Too many levels"), std::string::npos);
}

class OwnPathsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  }
  // Makes a folder below the temporary one, with this mode and owner.
  [[nodiscard]] std::string made(const std::string& name, mode_t mode, uid_t owner = 0) const {
    std::string path = folder_.folder(name);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(chown(path.c_str(), owner, owner), 0);
    return path;
  }
  // Makes a symbolic link that belongs to the user of this process.
  [[nodiscard]] std::string link(const std::string& name, const std::string& target) const {
    std::string path = folder_.path() + "/" + name;
    std::filesystem::create_symlink(target, path);
    return path;
  }
  static std::string text_of(const Result<FileDescriptor>& opened) {
    return opened ? "opened" : opened.error().message;
  }
  static std::string text_of(const Result<void>& checked) {
    return checked ? "own" : checked.error().message;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777U;
  }

  test::TemporaryDirectory folder_;
};

TEST_F(OwnPathsTest, TheMissingFoldersAreMadeForThisUserAlone) {
  const std::string base = made("base", 0755);
  const mode_t before = umask(0);
  EXPECT_EQ(text_of(make_own_folder(base + "/a//b/c/")), "opened");
  umask(before);
  EXPECT_EQ(mode_of(base + "/a/b/c"), 0700U);
  EXPECT_EQ(mode_of(base + "/a"), 0755U);
  EXPECT_EQ(text_of(make_own_folder(base + "/a/b/c")), "opened") << "it existed already";
  EXPECT_EQ(text_of(make_own_folder(link("link", base) + "/d/../e")), "opened");
  EXPECT_EQ(mode_of(base + "/e"), 0700U);
  EXPECT_EQ(text_of(make_own_folder(link("dangling", base + "/f"))), "opened");
  EXPECT_EQ(mode_of(base + "/f"), 0700U);
  const std::string file = folder_.file("file", "");
  EXPECT_EQ(text_of(make_own_folder(file + "/c")), file + "/c: Not a directory");
}

TEST_F(OwnPathsTest, NothingIsMadeWhereAnotherUserCouldLeadItElsewhere) {
  const std::string out = made("out", 0700);
  const std::string theirs = made("theirs", 0755, 65534);
  const std::string sticky = made("sticky", 01777);
  const std::string open = made("open", 0757);
  const std::string their_link = link("sticky/link", out);
  ASSERT_EQ(lchown(their_link.c_str(), 65534, 65534), 0);
  EXPECT_EQ(text_of(make_own_folder(theirs + "/c")),
            theirs + ": it belongs to uid 65534, who could replace it");
  EXPECT_EQ(text_of(make_own_folder(their_link + "/c")),
            their_link + ": it belongs to uid 65534, who could replace it");
  EXPECT_EQ(text_of(make_own_folder(open + "/c")),
            open + ": other users may write into it (mode 0757), and could replace what is in it");
  EXPECT_EQ(
      text_of(make_own_folder(sticky)),
      sticky + ": other users may write into it (mode 1777), and could replace what is in it");
  for (const std::string& folder : {out, theirs, open}) {
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << folder;
  }
  EXPECT_EQ(text_of(make_own_folder(sticky + "/ours")), "opened");
}

TEST_F(OwnPathsTest, TheEndOfAPathMustBeThereAndMayBeAFile) {
  const std::string base = made("base", 0755);
  const std::string file = folder_.file("base/file", "");
  EXPECT_EQ(text_of(open_own_path(file)), "opened");
  EXPECT_EQ(open_own_path(base + "/none").error().code, Code::not_found);
  ASSERT_EQ(chmod(file.c_str(), 0664), 0);
  EXPECT_EQ(text_of(open_own_path(file)), file + ": other users may write to it (mode 0664)");
}

TEST_F(OwnPathsTest, AFileIsMadeOnlyWhereNobodyElseCanReplaceIt) {
  const std::string base = made("base", 0755);
  const std::string sticky = made("sticky", 01777);
  const std::string theirs = made("theirs", 0755, 65534);
  const std::string open = made("open", 0757);
  EXPECT_EQ(text_of(check_place_of(base + "/file")), "own");
  EXPECT_EQ(text_of(check_place_of(sticky + "/file")), "own");
  EXPECT_EQ(check_place_of(sticky + "/none/file").error().code, Code::not_found)
      << "another user could make that folder";
  EXPECT_EQ(text_of(check_place_of(theirs + "/file")),
            theirs + ": it belongs to uid 65534, who could replace it");
  EXPECT_EQ(text_of(check_place_of(open + "/file")),
            open + ": other users may write into it (mode 0757), and could replace what is in it");
  const std::string their_link = link("sticky/link", base);
  ASSERT_EQ(lchown(their_link.c_str(), 65534, 65534), 0);
  EXPECT_EQ(text_of(check_place_of(their_link + "/file")),
            their_link + ": it belongs to uid 65534, who could replace it");
  EXPECT_EQ(text_of(check_place_of(their_link)),
            their_link + ": it belongs to uid 65534, who could replace it");
}

TEST_F(OwnPathsTest, EachFileInAFolderIsLookedAt) {
  const std::string base = made("base", 0755);
  const std::string theirs = made("theirs", 0755, 65534);
  const std::string file = folder_.file("base/pages-1.img", "");
  EXPECT_EQ(text_of(check_own_files(base)), "own");
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_EQ(text_of(check_own_files(base)),
            file + ": it belongs to uid 65534, who could replace it");
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(file.c_str(), 0606), 0);
  EXPECT_EQ(text_of(check_own_files(base)), file + ": other users may write to it (mode 0606)");
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const std::string elsewhere = link("base/link", theirs + "/file");
  EXPECT_EQ(text_of(check_own_files(base)),
            theirs + ": it belongs to uid 65534, who could replace it");
  EXPECT_EQ(check_own_files(base + "/none").error().code, Code::not_found);
}

// A kymod that does not run as root trusts only root and its own user.
TEST_F(OwnPathsTest, EachUserHasItsOwnFoldersAndThoseOfRoot) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const std::string own = made("own", 0700, 65534);
  const std::string of_root = made("of_root", 0755);
  const std::string of_another = made("of_another", 0755, 65533);
  const pid_t child = fork();
  if (child == 0) {
    const bool other = setresuid(65534, 65534, 65534) == 0;
    const bool right = make_own_folder(own + "/c").ok() && check_own_path(of_root).ok() &&
                       check_own_path(of_another).error().code == Code::permission_denied;
    _exit(other && right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The program that serves a FUSE mount may report root as the owner of everything, and change that
// later. This mount has no such program, so a question to it would wait for ever.
TEST_F(OwnPathsTest, AFileSystemThatAnotherUsersProgramServesIsNotAsked) {
  const std::string place = made("place", 0755);
  const FileDescriptor fuse(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!fuse.valid()) GTEST_SKIP() << "FUSE does not work here";
  const auto served_by = [&](const std::string& user) {
    const std::string options = "fd=" + std::to_string(fuse.get()) +
                                ",rootmode=40000,user_id=" + user + ",group_id=0,allow_other";
    return mount("theirs", place.c_str(), "fuse", 0, options.c_str()) == 0;
  };
  ASSERT_TRUE(served_by("65534"));
  const std::string why =
      place +
      ": a program of uid 65534 serves its file system (FUSE), and could replace what is in it";
  EXPECT_EQ(text_of(check_own_path(place + "/c")), why);
  EXPECT_EQ(text_of(make_own_folder(place + "/c")), why);
  umount2(place.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace kymo
