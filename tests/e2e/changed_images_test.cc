// Another program with the rights of root, such as a script that cleans up, changes the images or their folder during a
// dump. Either the process runs on, or kymod says what is missing and keeps the rest. It never says "complete".

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kPrecious[] = "precious";
// Texts that CRIU is about to write to its log. At the first one, all images but the inventory are written. (The action
// script of a streamed dump tells kymod of post-dump while CRIU is stopped, so that would be too late.) At the second one,
// the process has ended.
constexpr char kNearlyAllWritten[] = "Writing image inventory";
constexpr char kEnded[] = "Dumping finished";

// What the other program does in the directory of the checkpoint.
struct ImagesDeed {
  const char* name;
  std::function<void(const std::string& dir)> does;
  std::string says;  // in kymod's error
  std::function<void(const std::string& dir)> undo{};
};

std::string partial(const std::string& dir) {
  return dir + "/images.partial";
}

// The image of the process itself: a restore needs it.
std::string core_in(const std::string& images) {
  for (const auto& entry : fs::directory_iterator(images)) {
    if (entry.path().filename().string().starts_with("core-")) return entry.path();
  }
  return {};
}

void put_precious_folder(const std::string& path) {
  fs::create_directory(path);
  std::ofstream(path + "/pages-1.img") << kPrecious;
}

const ImagesDeed kRemoves{"RemovesAnImage",
                          [](const std::string& dir) { fs::remove(core_in(partial(dir))); },
                          " was removed"};
const ImagesDeed kMoves{"RenamesTheFolder",
                        [](const std::string& dir) {
                          fs::rename(partial(dir), dir + "/aside");
                          put_precious_folder(partial(dir));
                        },
                        "images.partial was replaced by something else (it is now "};
const ImagesDeed kMounts{
    "MountsOverTheFolder",
    [](const std::string& dir) {
      put_precious_folder(dir + "/other");
      ASSERT_EQ(mount((dir + "/other").c_str(), partial(dir).c_str(), nullptr, MS_BIND, nullptr),
                0);
    },
    "a file system was mounted over ",
    [](const std::string& dir) { umount2(partial(dir).c_str(), MNT_DETACH); }};
const ImagesDeed kTakes{"TakesTheNameOfTheImages",
                        [](const std::string& dir) { put_precious_folder(dir + "/images"); },
                        "/images exists"};
const ImagesDeed kDeeds[] = {
    kRemoves,
    {"CutsAnImageOff",
     [](const std::string& dir) { std::ofstream(partial(dir) + "/pages-1.img") << "short"; },
     "pages-1.img "},
    {"ReplacesAnImage",
     [](const std::string& dir) {
       const std::string core = core_in(partial(dir));
       fs::copy(core, dir + "/copy");
       fs::rename(dir + "/copy", core);
     },
     ".img was replaced"},
    kMoves,
    kMounts,
    kTakes,
    {"TakesTheNameOfTheImagesForAnEmptyFolder",
     [](const std::string& dir) { fs::create_directory(dir + "/images"); }, "/images exists"},
};

// Lets gtest print the name.
void PrintTo(const ImagesDeed& deed, std::ostream* out) {
  *out << deed.name;
}

class ChangedImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    start(Kind::process);
  }
  void TearDown() override {
    umount2(partial(dir()).c_str(), MNT_DETACH);
    if (kymod_) kymod_->stop(SIGTERM);
    if (counting_) {
      for (const pid_t one : counting_->copies()) kill(one, SIGKILL);
    }
  }
  void start(Kind kind) {
    counting_ = Counting::make(kind, criu_);
    std::vector<std::string> flags = counting_->flags();
    flags.insert(flags.end(), {"--criu", criu_.path()});
    kymod_ = std::make_unique<Kymod>(flags);
    kymod_->start();
    static_cast<void>(kymod_->kymo_json(counting_->run()));
    ASSERT_TRUE(eventually([&] { return counting_->counts(); })) << kymod_->log();
  }
  [[nodiscard]] std::string dir() const { return folder_.path() + "/c"; }
  [[nodiscard]] json checkpoint() const { return kymod_->kymo_json({"checkpoints"}).at(0); }
  [[nodiscard]] bool is_there(const std::string& image) const {
    return fs::exists(partial(dir()) + image) || fs::exists(partial(dir()) + image + ".zst");
  }
  // Whether the last image that CRIU writes is there.
  [[nodiscard]] bool all_is_there() const {
    return is_there("/inventory.img") && is_there("/pages-1.img");
  }
  // Makes a dump. When CRIU is about to write the text to its log, and this is true, does the deed. Returns what kymo
  // says.
  Outcome dump_with(const char* text, const ImagesDeed& deed, const std::vector<std::string>& flags,
                    const std::function<bool()>& ready) {
    criu_.break_at(text, SIGSTOP);
    std::vector<std::string> words{"dump", "process", counting_->name(), "--dir", dir()};
    words.insert(words.end(), flags.begin(), flags.end());
    Outcome answer;
    std::thread client([&] { answer = kymod_->kymo(words); });
    const pid_t criu = criu_.stopped();
    EXPECT_NE(criu, 0) << kymod_->log();
    criu_.mend();
    EXPECT_TRUE(eventually(ready));
    deed.does(dir());
    if (criu != 0) kill(criu, SIGCONT);
    client.join();
    return answer;
  }
  Outcome dump_with(const char* text, const ImagesDeed& deed,
                    const std::vector<std::string>& flags = {}) {
    return dump_with(text, deed, flags, [this] { return all_is_there(); });
  }
  Outcome dump_before_the_end(const ImagesDeed& deed, const std::vector<std::string>& flags = {}) {
    return dump_with(kNearlyAllWritten, deed, flags, [this] {
      return is_there("/pages-1.img") && !core_in(partial(dir())).empty();
    });
  }
  void expect_that_it_runs_on(const Outcome& answer, const ImagesDeed& deed) const {
    EXPECT_EQ(answer.exit_code, 1) << answer.out;
    EXPECT_NE(answer.err.find("another program changed the images: "), std::string::npos)
        << answer.err;
    EXPECT_NE(answer.err.find(deed.says), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("; the process runs on"), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_TRUE(counting_->counts()) << answer.err << kymod_->log();
    EXPECT_EQ(checkpoint()["state"], "failed");
    EXPECT_EQ(kymod_->job(counting_->name())["state"], "running");
  }
  void expect_that_it_has_ended(const Outcome& answer, const std::string& says) const {
    EXPECT_EQ(answer.exit_code, 1) << answer.out;
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find(" has ended, and kymod has removed nothing"), std::string::npos)
        << answer.err;
    EXPECT_EQ(checkpoint()["state"], "failed");
    EXPECT_NE(checkpoint()["error"].get<std::string>().find(says), std::string::npos);
    EXPECT_EQ(kymod_->job(counting_->name())["state"], "exited");
    EXPECT_FALSE(fs::exists(dir() + "/images"));
  }
  // What the other program has put somewhere is not kymod's.
  void expect_nothing_foreign_removed() const {
    for (const char* const folder : {"/images", "/other"}) {
      const std::string path = dir() + folder;
      EXPECT_TRUE(!fs::exists(path) || fs::is_empty(path) ||
                  read_file(path + "/pages-1.img") == kPrecious)
          << path;
    }
    if (fs::exists(dir() + "/aside") || fs::exists(dir() + "/other")) {
      EXPECT_EQ(read_file(partial(dir()) + "/pages-1.img"), kPrecious);
    }
  }

  TemporaryDirectory folder_;
  const BreakableCriu criu_;
  std::unique_ptr<Counting> counting_;
  std::unique_ptr<Kymod> kymod_;
};

class BeforeTheEndTest : public ChangedImagesTest,
                         public ::testing::WithParamInterface<ImagesDeed> {};

TEST_P(BeforeTheEndTest, TheProcessRunsOnAndTheErrorSaysWhatChanged) {
  const Outcome answer = dump_before_the_end(GetParam());
  expect_that_it_runs_on(answer, GetParam());
  expect_nothing_foreign_removed();
  if (GetParam().undo) GetParam().undo(dir());
}

TEST_P(BeforeTheEndTest, TheProcessRunsOnAlsoIfCriuWritesTheImagesItself) {
  const Outcome answer = dump_before_the_end(GetParam(), {"--no-stream"});
  expect_that_it_runs_on(answer, GetParam());
  expect_nothing_foreign_removed();
  if (GetParam().undo) GetParam().undo(dir());
}

INSTANTIATE_TEST_SUITE_P(ChangedImages, BeforeTheEndTest, ::testing::ValuesIn(kDeeds),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_F(ChangedImagesTest, AfterAFailureTheNextDumpCanBeRestored) {
  expect_that_it_runs_on(dump_before_the_end(kRemoves, {"--compression", "zstd"}), kRemoves);
  const std::string next = dir() + "-2";
  static_cast<void>(kymod_->kymo_json({"dump", "process", counting_->name(), "--dir", next}));
  static_cast<void>(kymod_->kymo_json({"restore", "process", next}));
  EXPECT_TRUE(counting_->counts()) << kymod_->log();
}

TEST_F(ChangedImagesTest, AfterTheEndTheErrorSaysWhatIsMissingAndTheRestIsKept) {
  const Outcome answer = dump_with(kEnded, kRemoves);
  expect_that_it_has_ended(answer, kRemoves.says);
  EXPECT_TRUE(all_is_there());
  EXPECT_EQ(json::parse(read_file(dir() + "/checkpoint.json"))["state"], "failed");
}

TEST_F(ChangedImagesTest, AfterTheEndAFolderThatWasMovedIsNamedAndKept) {
  const Outcome answer = dump_with(kEnded, kMoves);
  expect_that_it_has_ended(answer, kMoves.says + dir() + "/aside)");
  expect_nothing_foreign_removed();
  fs::rename(dir() + "/aside", dir() + "/images");
  static_cast<void>(kymod_->kymo_json({"restore", "process", dir() + "/images"}));
  EXPECT_TRUE(counting_->counts()) << kymod_->log();
}

TEST_F(ChangedImagesTest, AfterTheEndNothingIsRemovedBelowAMount) {
  const Outcome answer = dump_with(kEnded, kMounts);
  expect_that_it_has_ended(answer, kMounts.says);
  expect_nothing_foreign_removed();
  kMounts.undo(dir());
  EXPECT_TRUE(all_is_there());
}

TEST_F(ChangedImagesTest, AfterTheEndATakenNameIsWaitedFor) {
  const Outcome answer = dump_with(kEnded, kTakes);
  EXPECT_EQ(answer.exit_code, 1) << answer.out;
  EXPECT_NE(answer.err.find(kTakes.says), std::string::npos) << answer.err;
  const std::string id = checkpoint()["id"];
  EXPECT_EQ(checkpoint()["state"], "unconfirmed");
  kymod_->stop(SIGKILL);
  kymod_->start();
  EXPECT_EQ(checkpoint()["state"], "unconfirmed");
  EXPECT_EQ(read_file(dir() + "/images/pages-1.img"), kPrecious);
  fs::rename(dir() + "/images", dir() + "/theirs");
  ASSERT_TRUE(eventually([&] { return checkpoint()["state"] == "complete"; })) << kymod_->log();
  static_cast<void>(kymod_->kymo_json({"restore", "process", dir()}));
  EXPECT_TRUE(counting_->counts()) << kymod_->log();
}

TEST_F(ChangedImagesTest, AFolderThatIsMovedWhileCriuWritesIsNoticed) {
  const auto at_once = [] { return true; };
  const Outcome answer = dump_with("Dumping pages (type", kMoves, {}, at_once);
  expect_that_it_runs_on(answer, kMoves);
  expect_nothing_foreign_removed();
  EXPECT_TRUE(fs::is_empty(dir() + "/aside"));
}

TEST_F(ChangedImagesTest, AFolderThatIsMovedWhileCriuWritesItselfIsNoticed) {
  const auto at_once = [] { return true; };
  const Outcome answer = dump_with("Dumping pages (type", kMoves, {"--no-stream"}, at_once);
  expect_that_it_runs_on(answer, kMoves);
  expect_nothing_foreign_removed();
  EXPECT_TRUE(fs::is_empty(dir() + "/aside"));
}

class ContainerImagesTest : public ChangedImagesTest {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    if (!why_not(Kind::runc).empty()) GTEST_SKIP() << why_not(Kind::runc);
    start(Kind::runc);
  }
};

// kymod cannot hold the CRIU of a container. So the container has ended.
TEST_F(ContainerImagesTest, TheErrorSaysWhatIsMissingAndTheRestIsKept) {
  const Outcome answer = dump_with("post-dump", kRemoves);
  EXPECT_EQ(answer.exit_code, 1) << answer.out;
  EXPECT_NE(answer.err.find(kRemoves.says), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("; the container has ended, and kymod has removed nothing"),
            std::string::npos)
      << answer.err;
  EXPECT_EQ(checkpoint()["state"], "failed");
  EXPECT_TRUE(all_is_there());
}

TEST_F(ContainerImagesTest, ImagesInMemoryStayThereUntilTheFolderIsBack) {
  const Outcome answer = dump_with("post-dump", kMounts, {"--deadline", "1m"}, [] { return true; });
  EXPECT_EQ(answer.exit_code, 1) << answer.out;
  EXPECT_NE(answer.err.find(kMounts.says), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("its whole images are in memory"), std::string::npos) << answer.err;
  EXPECT_EQ(checkpoint()["state"], "unconfirmed");
  expect_nothing_foreign_removed();
  kMounts.undo(dir());
  ASSERT_TRUE(eventually([&] { return checkpoint()["state"] == "complete"; })) << kymod_->log();
  counting_->forget();
  static_cast<void>(kymod_->kymo_json({"restore", dir()}));
  EXPECT_TRUE(counting_->counts()) << kymod_->log();
}

TEST_F(ContainerImagesTest, OneThatIsLeftRunningRunsOn) {
  const Outcome answer = dump_with("post-dump", kMounts, {"--leave-running"});
  EXPECT_EQ(answer.exit_code, 1) << answer.out;
  EXPECT_NE(answer.err.find("; the container runs on"), std::string::npos) << answer.err;
  EXPECT_TRUE(counting_->counts()) << answer.err;
  EXPECT_EQ(checkpoint()["state"], "failed");
  expect_nothing_foreign_removed();
}

}  // namespace
}  // namespace kymo::test
