// A user who can change a folder on the path to a checkpoint could redirect kymod's files to
// another place, or exchange the images. So kymod refuses to dump into such a folder, and to
// restore from it.

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 65534;

// Another user, who repeats `act` until this object is destroyed.
class OtherUser {
 public:
  template <class Act>
  explicit OtherUser(Act act) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool other = setgroups(0, nullptr) == 0 && setresgid(kOther, kOther, kOther) == 0 &&
                         setresuid(kOther, kOther, kOther) == 0;
      if (!other || write(ready[1], "r", 1) != 1) _exit(1);
      for (;;) act();
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the child could not become another user";
    close(ready[0]);
  }
  ~OtherUser() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  pid_t child_ = 0;
};

class FoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    ASSERT_EQ(chmod(out_.c_str(), 0700), 0);
    kymod_.start();
    job_ = kymod_.churn(1, "work");
  }
  // Makes a folder that belongs to the other user.
  [[nodiscard]] std::string theirs(const std::string& name) const {
    std::string path = folder_.folder(name);
    EXPECT_EQ(chown(path.c_str(), kOther, kOther), 0);
    return path;
  }
  [[nodiscard]] Outcome dump_into(const std::string& path) const {
    return kymod_.kymo(
        {"dump", "process", "work", "--leave-running", "--no-stream", "--dir", path});
  }
  // Expects that the error names the unsafe folder, and that nothing was written anywhere.
  void expect_refused(const std::string& path, const std::string& why) const {
    const Outcome refused = dump_into(path);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("dump into " + path + ": " + why), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("only root can change"), std::string::npos) << refused.err;
    EXPECT_TRUE(fs::is_empty(out_)) << *fs::directory_iterator(out_);
  }

  TemporaryDirectory folder_;
  std::string out_ = folder_.folder("out");
  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  nlohmann::json job_;
};

TEST_F(FoldersTest, AFolderThatItsOwnerSwapsForALinkLeadsNoImageElsewhere) {
  const std::string home = theirs("theirs");
  for (int n = 0; n < 10; ++n) {
    const std::string path = home + "/c-" + std::to_string(n);
    const std::string aside = home + "/aside-" + std::to_string(n);
    const OtherUser swapper([&] {
      if (rename(path.c_str(), aside.c_str()) == 0) {
        static_cast<void>(symlink(out_.c_str(), path.c_str()));
      }
    });
    expect_refused(path, home + ": it belongs to uid 65534");
  }
  EXPECT_TRUE(fs::is_empty(home)) << *fs::directory_iterator(home);
  EXPECT_TRUE(kymod_.goes_on(job_));
}

TEST_F(FoldersTest, EachFolderOfThePathCountsAndSoDoLinks) {
  const std::string home = theirs("theirs");
  const std::string inner = home + "/ours";  // a folder of root inside a folder of another user
  fs::create_directory(inner);
  expect_refused(inner + "/deep/c", home + ": it belongs to uid 65534");
  const std::string link = folder_.path() + "/link";
  fs::create_directory_symlink(inner, link);
  expect_refused(link + "/c", home + ": it belongs to uid 65534");
  const std::string shared = folder_.folder("shared");
  ASSERT_EQ(chmod(shared.c_str(), 0775), 0);
  expect_refused(shared + "/c", shared + ": other users may write into it (mode 0775)");
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  expect_refused(shared, shared + ": other users may write into it (mode 1777)");
  const std::string their_link = shared + "/link";
  fs::create_directory_symlink(out_, their_link);
  ASSERT_EQ(lchown(their_link.c_str(), kOther, kOther), 0);
  expect_refused(their_link + "/c", their_link + ": it belongs to uid 65534");
  const std::string ours = shared + "/ours";
  fs::create_directory(ours);
  const OtherUser swapper([&] {
    if (rename(ours.c_str(), (shared + "/aside").c_str()) == 0) {
      static_cast<void>(symlink(out_.c_str(), ours.c_str()));
    }
  });
  for (const char* name : {"/c", "/deep/c"}) {
    const Outcome below_sticky = dump_into(ours + name);
    EXPECT_EQ(below_sticky.exit_code, 0) << below_sticky.err;
    EXPECT_TRUE(fs::exists(ours + name + "/images/inventory.img"));
  }
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(FoldersTest, NoSnapshotAndNoFileOfTheRecorderIsWrittenWhereAnotherUserCouldLeadIt) {
  const std::string home = theirs("theirs");
  const std::string link = home + "/link";
  fs::create_directory_symlink(out_, link);
  const std::string why =
      home + ": it belongs to uid 65534, who could replace it: choose a folder that only root can";
  for (const std::string& folder : {home, link}) {
    const Outcome snapshot = kymod_.kymo({"snapshot", "--after", "0", "--dir", folder});
    EXPECT_EQ(snapshot.exit_code, 1) << snapshot.out;
    EXPECT_NE(snapshot.err.find(why), std::string::npos) << snapshot.err;
    const Outcome recorder = kymod_.kymo({"recorder", "set", "--log", folder + "/all.tsv"});
    EXPECT_EQ(recorder.exit_code, 1) << recorder.out;
    EXPECT_NE(recorder.err.find(why), std::string::npos) << recorder.err;
    for (const char* const flag : {"--profiling-metrics-log", "--profiling-ring"}) {
      const Outcome start = run({KYMOD_PROGRAM, "--socket", kymod_.path("other.sock"),
                                 "--state-dir", kymod_.path("other"), "--http", "127.0.0.1:0",
                                 "--criu", criu_path(), flag, folder + "/all.tsv"});
      EXPECT_EQ(start.exit_code, 1) << start.out;
      EXPECT_NE(start.err.find(why), std::string::npos) << start.err;
    }
  }
  EXPECT_TRUE(fs::is_empty(out_)) << *fs::directory_iterator(out_);
  const std::string shared = folder_.folder("shared");
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  for (const std::string& folder : {out_, shared}) {
    const Outcome snapshot = kymod_.kymo({"snapshot", "--after", "0", "--dir", folder});
    EXPECT_EQ(snapshot.exit_code, 0) << snapshot.err;
    const Outcome recorder = kymod_.kymo({"recorder", "set", "--log", folder + "/all.tsv"});
    EXPECT_EQ(recorder.exit_code, 0) << recorder.err;
    EXPECT_TRUE(fs::exists(folder + "/all.tsv"));
  }
}

TEST_F(FoldersTest, AFolderThatAnotherUserMakesFirstBelowAStickyOneIsNotFollowed) {
  const std::string shared = folder_.folder("shared");
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  for (int n = 0; n < 10; ++n) {
    const std::string first = shared + "/first-" + std::to_string(n);
    const OtherUser maker([&] { static_cast<void>(symlink(out_.c_str(), first.c_str())); });
    static_cast<void>(dump_into(first + "/c"));
    EXPECT_TRUE(fs::is_empty(out_)) << *fs::directory_iterator(out_);
  }
  EXPECT_TRUE(kymod_.goes_on(job_));
}

TEST_F(FoldersTest, NoImageAndNoLogIsForOthersToRead) {
  int n = 0;
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--no-stream"}, {"--stream"}, {"--stream", "--compression", "lz4", "--checksums"}}) {
    const std::string path = folder_.path() + "/c-" + std::to_string(n++);
    std::vector<std::string> words{"dump", "process", "work", "--leave-running", "--dir", path};
    words.insert(words.end(), flags.begin(), flags.end());
    static_cast<void>(kymod_.kymo_json(words));
    for (const char* part : {"", "/images", "/work", "/recordings"}) {
      struct stat info {};
      ASSERT_EQ(stat((path + part).c_str(), &info), 0) << path << part;
      EXPECT_EQ(info.st_mode & 0777U, 0700U) << path << part;
    }
    EXPECT_EQ(files_for_others(path), "") << flags.back();
    EXPECT_TRUE(fs::exists(path + "/work/dump.log"));
  }
}

TEST_F(FoldersTest, NothingIsRestoredFromWhereAnotherUserCouldChangeIt) {
  const std::string home = folder_.folder("home");
  const std::string path = home + "/c";
  const std::string images = path + "/images";
  ASSERT_EQ(kymod_.kymo({"dump", "process", "work", "--dir", path}).exit_code, 0);
  const auto refusal = [&](const std::string& directory) {
    const Outcome refused = kymod_.kymo({"restore", "process", directory});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_FALSE(fs::exists(path + "/recordings/restore.tsv"));
    EXPECT_FALSE(fs::exists(path + "/work/restore.log"));
    return refused.err;
  };
  const auto expect_blamed = [&](const std::string& culprit) {
    for (const std::string& directory : {path, images}) {
      const std::string said = refusal(directory);
      EXPECT_NE(said.find("restore " + directory + ": " + culprit + ": it belongs to uid 65534"),
                std::string::npos)
          << said;
      EXPECT_NE(said.find("copy it as root to a directory that only root can change"),
                std::string::npos)
          << said;
    }
  };
  for (const std::string& culprit : {home, path, images, images + "/inventory.img"}) {
    ASSERT_EQ(chown(culprit.c_str(), kOther, kOther), 0);
    expect_blamed(culprit);
    ASSERT_EQ(chown(culprit.c_str(), 0, 0), 0);
  }
  const std::string parent = theirs("parent");
  fs::create_directory_symlink(parent, images + "/parent");
  expect_blamed(parent);
  fs::remove(images + "/parent");
  ASSERT_EQ(chmod((images + "/pstree.img").c_str(), 0666), 0);
  EXPECT_NE(refusal(path).find("pstree.img: other users may write to it (mode 0666)"),
            std::string::npos);
  ASSERT_EQ(chmod((images + "/pstree.img").c_str(), 0644), 0);
  ASSERT_EQ(chown(home.c_str(), kOther, kOther), 0);
  const std::string copy = folder_.path() + "/copy";
  wait_until_recorded(path, {"dump"});
  ASSERT_EQ(run({"cp", "-r", path, copy}).exit_code, 0);
  const Outcome restored = kymod_.kymo({"restore", "process", copy});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(kymod_.goes_on(job_));
}

// In a restore by a container runtime, CRIU appends to its log. That file may have a second name (a
// hard link) elsewhere.
TEST_F(FoldersTest, ARestoreChangesNoFileThatHasAnotherNameElsewhere) {
  const std::string path = folder_.path() + "/c";
  ASSERT_EQ(kymod_.kymo({"dump", "process", "work", "--dir", path}).exit_code, 0);
  const std::vector<std::string> names{"restore.log", "stats-restore", "runc.log", "dump.log"};
  for (const std::string& name : names) {
    fs::remove(path + "/work/" + name);
    std::ofstream(folder_.path() + "/" + name) << "precious";
    fs::create_hard_link(folder_.path() + "/" + name, path + "/work/" + name);
  }
  static_cast<void>(kymod_.kymo_json({"restore", "process", path}));
  for (const std::string& name : names) {
    EXPECT_EQ(read_file(folder_.path() + "/" + name), "precious") << name;
    EXPECT_EQ(fs::hard_link_count(folder_.path() + "/" + name), 1U) << name;
  }
  EXPECT_EQ(read_file(path + "/work/dump.log"), "precious")
      << "the file must be unchanged under its other name";
}

TEST_F(FoldersTest, AfterAKillTheNextKymodTouchesNothingThereAndTheProcessRunsOn) {
  const std::string home = folder_.folder("home");
  const nlohmann::json job = kymod_.churn(8, "large");
  const std::string path = home + "/c";
  const std::string aside = home + "/aside";
  kymod_.kill_when_pages_are_dumped(criu_, {"dump", "process", "large", "--dir", path});
  fs::create_directories(out_ + "/images.partial");
  std::ofstream(out_ + "/images.partial/pages-1.img") << "precious";
  fs::rename(path, aside);
  fs::create_directory_symlink(out_, path);
  ASSERT_EQ(chown(home.c_str(), kOther, kOther), 0);

  kymod_.start();
  EXPECT_TRUE(kymod_.logs(home + ": it belongs to uid 65534")) << kymod_.log();
  EXPECT_TRUE(kymod_.goes_on(job));
  const auto state = [&] {
    return kymod_.kymo_json({"checkpoints", "large"}).back()["state"].get<std::string>();
  };
  EXPECT_EQ(state(), "unconfirmed");
  EXPECT_EQ(read_file(out_ + "/images.partial/pages-1.img"), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(out_), {}), 1)
      << "kymod wrote a file into another folder";

  fs::remove(path);
  fs::rename(aside, path);
  ASSERT_EQ(chown(home.c_str(), 0, 0), 0);
  EXPECT_TRUE(eventually([&] { return state() == "failed"; }));
  EXPECT_FALSE(fs::exists(path + "/images.partial"));
}

}  // namespace
}  // namespace kymo::test
