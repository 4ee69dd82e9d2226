// Another program with the rights of root, such as a script that cleans up, changes the images or
// their folder during a dump. Either the process runs on, or kymod says what is missing and keeps
// the rest. It never says "complete".

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include "e2e/faults/promises.h"
#include "e2e/faults/troubles.h"
#include "support/says.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

constexpr char kPrecious[] = "precious";
// At the first point, all images but the inventory are written. (The action script of a streamed
// dump tells kymod of post-dump while CRIU is stopped, so that would be too late.)
constexpr Point kNearlyAllIsWritten{"WhenNearlyAllIsWritten", "Writing image inventory"};

std::string partial(const Scene& scene) {
  return scene.dir() + "/images.partial";
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

bool is_there(const Scene& scene, const std::string& image) {
  return fs::exists(partial(scene) + image) || fs::exists(partial(scene) + image + ".zst");
}

// Whether the last image that CRIU writes is there.
bool all_is_there(const Scene& scene) {
  return is_there(scene, "/inventory.img") && is_there(scene, "/pages-1.img");
}

// Waits until the images of the point are there, and lets CRIU go on after the deed.
Trouble then(const char* name, const std::function<void(Scene&)>& deed) {
  return {name, [deed](Scene& scene) {
            EXPECT_TRUE(eventually([&] {
              const std::string point = scene.point.name;
              if (point == kNearlyAllIsWritten.name)
                return is_there(scene, "/pages-1.img") && !core_in(partial(scene)).empty();
              return scene.way.name == "Runc" || point == kWritesPages.name || all_is_there(scene);
            }));
            deed(scene);
            scene.let_criu_go_on();
          }};
}

struct Change {
  Trouble trouble;
  std::string says;
};
const Change kRemoves{
    then("AnImageIsRemoved", [](Scene& scene) { fs::remove(core_in(partial(scene))); }),
    " was removed"};
const Change kMoves{then("TheFolderIsRenamed",
                         [](Scene& scene) {
                           fs::rename(partial(scene), scene.dir() + "/aside");
                           put_precious_folder(partial(scene));
                         }),
                    "images.partial was replaced by something else (it is now "};
const Change kMounts{
    then("TheFolderIsMountedOver",
         [](Scene& scene) {
           const std::string other = scene.dir() + "/other";
           put_precious_folder(other);
           ASSERT_EQ(mount(other.c_str(), partial(scene).c_str(), nullptr, MS_BIND, nullptr), 0);
         }),
    "a file system was mounted over "};
const Change kTakes{then("TheNameOfTheImagesIsTaken",
                         [](Scene& scene) { put_precious_folder(scene.dir() + "/images"); }),
                    "/images exists"};
const Change kOtherChanges[] = {
    {then("AnImageIsCutOff",
          [](Scene& scene) { std::ofstream(partial(scene) + "/pages-1.img") << "short"; }),
     "pages-1.img "},
    {then("AnImageIsReplaced",
          [](Scene& scene) {
            const std::string core = core_in(partial(scene));
            fs::copy(core, scene.dir() + "/copy");
            fs::rename(scene.dir() + "/copy", core);
          }),
     ".img was replaced"},
    {then("TheNameOfTheImagesIsTakenForAnEmptyFolder",
          [](Scene& scene) { fs::create_directory(scene.dir() + "/images"); }),
     "/images exists"}};

// What the other program has put somewhere is not kymod's.
void removes_nothing_foreign(Scene& scene) {
  for (const char* const folder : {"/images", "/other"}) {
    const std::string path = scene.dir() + folder;
    EXPECT_TRUE(!fs::exists(path) || fs::is_empty(path) ||
                read_file(path + "/pages-1.img") == kPrecious)
        << path;
  }
  if (fs::exists(scene.dir() + "/aside") || fs::exists(scene.dir() + "/other")) {
    EXPECT_EQ(read_file(partial(scene) + "/pages-1.img"), kPrecious);
  }
}

void unmount(Scene& scene) {
  umount2(partial(scene).c_str(), MNT_DETACH);
}

void keeps_the_rest(Scene& scene) {
  EXPECT_TRUE(all_is_there(scene));
}

// The checks after a change at the end: the process has ended.
std::vector<Check> ended(const std::string& says_what) {
  return {fails,
          says(says_what),
          says(" has ended, and kymod has removed nothing"),
          removes_nothing_foreign,
          listed("failed"),
          [says_what](Scene& scene) {
            EXPECT_SAYS(scene.checkpoint()["error"].get<std::string>(), says_what);
            EXPECT_EQ(scene.record()["state"], "failed");
            EXPECT_FALSE(fs::exists(scene.dir() + "/images"));
          }};
}

void names_the_moved_folder(Scene& scene) {
  EXPECT_SAYS(scene.answer.err, kMoves.says + scene.dir() + "/aside)");
}

void is_restored_from_the_moved_folder(Scene& scene) {
  fs::rename(scene.dir() + "/aside", scene.dir() + "/images");
  const Outcome restored = scene.kymod->kymo({"restore", scene.dir() + "/images"});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(scene.counting->counts());
}

void is_waited_for_by_the_next_kymod(Scene& scene) {
  scene.kymod->stop(SIGKILL);
  scene.kymod->start();
  EXPECT_EQ(scene.checkpoint()["state"], "unconfirmed");
  EXPECT_EQ(read_file(scene.dir() + "/images/pages-1.img"), kPrecious);
  fs::rename(scene.dir() + "/images", scene.dir() + "/theirs");
}

std::vector<Row> rows_of_changes_before_the_end() {
  std::vector<Row> rows;
  const auto add = [&](const Change& change, bool few = false) {
    const Row row{
        .keeps = "the dump fails, the error says what was changed, and the process runs on",
        .request = Request::dump,
        .ways = {kStream},
        .points = {kNearlyAllIsWritten},
        .trouble = change.trouble,
        .meanwhile = {fails, says("another program changed the images: "), says(change.says),
                      says("; the process runs on"), runs_on, listed("failed"),
                      removes_nothing_foreign, unmount},
        .afterwards = {runs_on}};
    rows.push_back(row);
    rows.push_back(row);
    rows.back().ways = {few ? slow(kNoStream) : kNoStream};
    return row;
  };
  add(kMounts);
  add(kTakes, true);
  for (const Change& change : kOtherChanges) add(change, true);
  Row removed = add(kRemoves);
  removed.ways = {{"ACompressedStream", Kind::process, {"--compression", "zstd"}}};
  removed.afterwards.emplace_back(is_dumped_again);
  Row moved = add(kMoves);
  moved.ways = {kStream, kNoStream};
  moved.points = {kWritesPages};
  moved.afterwards.emplace_back(
      [](Scene& scene) { EXPECT_TRUE(fs::is_empty(scene.dir() + "/aside")); });
  rows.insert(rows.end(), {removed, moved});
  return rows;
}

std::vector<Row> rows_of_changes_after_the_end() {
  const Row removed{.keeps =
                        "the checkpoint is `failed`, and kymod removes nothing. The error says "
                        "what is missing or changed, and where a moved folder is now",
                    .request = Request::dump,
                    .ways = {kStream},
                    .points = {kEnds},
                    .trouble = kRemoves.trouble,
                    .meanwhile = ended(kRemoves.says),
                    .afterwards = {is_gone, keeps_the_rest, job_is("exited")}};
  Row moved = removed;
  moved.trouble = kMoves.trouble;
  moved.meanwhile = ended(kMoves.says);
  moved.afterwards = {names_the_moved_folder, job_is("exited"), is_restored_from_the_moved_folder};
  Row mounted = removed;
  mounted.trouble = kMounts.trouble;
  mounted.meanwhile = ended(kMounts.says);
  mounted.afterwards.insert(mounted.afterwards.begin(), unmount);
  Row taken = removed;
  taken.keeps =
      "the checkpoint is [`unconfirmed`](jobs.md#when-the-outcome-of-a-dump-is-not-known) until "
      "you rename what has that name";
  taken.trouble = kTakes.trouble;
  taken.meanwhile = {fails, says(kTakes.says), listed("unconfirmed"), removes_nothing_foreign};
  taken.afterwards = {is_waited_for_by_the_next_kymod, is_restored};
  return {removed, moved, mounted, taken};
}

std::vector<Row> rows_of_changes_of_containers() {
  const Row removed{.keeps = "A container ends, because kymod cannot hold its CRIU",
                    .request = Request::dump,
                    .ways = {kRuncWithoutDeadline},
                    .points = {kAllIsWritten},
                    .trouble = kRemoves.trouble,
                    .meanwhile = {fails, says(kRemoves.says),
                                  says("; the container has ended, and kymod has removed nothing"),
                                  listed("failed")},
                    .afterwards = {is_gone, keeps_the_rest}};
  Row in_memory = removed;
  in_memory.keeps =
      "the images stay in memory, and the checkpoint is `unconfirmed` until the folder is back";
  in_memory.ways = {kRunc};
  in_memory.trouble = kMounts.trouble;
  in_memory.meanwhile = {fails, says(kMounts.says), says("its whole images are in memory"),
                         listed("unconfirmed"), removes_nothing_foreign};
  in_memory.afterwards = {unmount, is_restored};
  Row runs = removed;
  runs.keeps = "A container with `--leave-running` runs on";
  runs.ways = {that_runs_on(kRuncWithoutDeadline)};
  runs.trouble = kMounts.trouble;
  runs.meanwhile = {fails, says("; the container runs on"), runs_on, listed("failed"),
                    removes_nothing_foreign};
  runs.afterwards = {unmount, runs_on};
  return {removed, in_memory, runs};
}

}  // namespace

std::vector<Row> rows_of_changed_images() {
  return rows_of({rows_of_changes_before_the_end(), rows_of_changes_after_the_end(),
                  rows_of_changes_of_containers()});
}

}  // namespace kymo::test
