// Scopes that a program makes itself, in the recording. Before, they were only a table of the
// program.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "kymo/flight_recorder.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/scope.h"
#include "recorder/timing/scope_keeper.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class RecordedScopesTest : public TemporaryFolderTest {
 protected:
  RecordedScopesTest() {
    EXPECT_TRUE(registry_.counter({"steps", "help", Kind::counter, Unit::count, {}}));
    options_.flush = std::chrono::milliseconds(2);
  }
  [[nodiscard]] nlohmann::json metadata(const std::string& path) const {
    return nlohmann::json::parse(content(path));
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(in_folder(name));
  }
  static void add_tree(Profiler& profiler, const std::string& name) {
    ScopeTree tree{ScopeName(name)};
    tree.end();
    profiler.add_scopes(tree);
  }
  Registry registry_;
  ProfilerOptions options_;
};

TEST_F(RecordedScopesTest, TheMetadataHaveTheTreesWithTheThreadsThatRanThem) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"));
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  pid_t helper = 0;
  {
    ScopeTree tree("request");
    const EnterScope here(tree);
    {
      const Scope scope("parse", {.category = "cpu"});
      const ScopeContext context = ScopeContext::current();
      std::thread([&] {
        helper = ::gettid();
        const EnterScope there(context);
        Scope copy("copy");
        copy.add_bytes(7);
      }).join();
    }
    add_scope("measured elsewhere", 0, 1);
    tree.end();
    profiler.add_scopes(tree);
  }
  add_tree(profiler, "another");
  ASSERT_TRUE(profiler.stop());
  const nlohmann::json meta = metadata(in_folder("run.meta.json"));
  ASSERT_EQ(meta["scopes"].size(), 2U);
  const nlohmann::json& request = meta["scopes"][0];
  EXPECT_EQ(request["name"], "request");
  EXPECT_EQ(request["thread"], ::gettid());
  EXPECT_GE(request["start_ns"], meta["start_monotonic_ns"]);
  const nlohmann::json& parse = request["components"][0];
  EXPECT_EQ(parse["name"], "parse");
  EXPECT_EQ(parse["category"], "cpu");
  EXPECT_EQ(parse["thread"], ::gettid());
  EXPECT_EQ(parse["components"][0]["name"], "copy");
  EXPECT_EQ(parse["components"][0]["thread"], helper);
  EXPECT_EQ(parse["components"][0]["bytes"], 7);
  EXPECT_FALSE(request["components"][1].contains("thread")) << "nobody knows which thread";
  EXPECT_EQ(meta["scopes"][1]["name"], "another");
  EXPECT_FALSE(meta.contains("scope_trees_left_out"));
}

TEST_F(RecordedScopesTest, EachTreeIsInOnePart) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"), {.rotate_bytes = 500});
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  std::set<std::string> given;
  for (int part = 1; part <= 4; ++part) {
    given.insert("tree " + std::to_string(part));
    add_tree(profiler, "tree " + std::to_string(part));
    while (!exists("run." + std::to_string(part) + ".tsv")) {
      std::this_thread::yield();
    }
  }
  ASSERT_TRUE(profiler.stop());
  std::multiset<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.path().string().ends_with(".meta.json")) continue;
    for (const nlohmann::json& tree :
         metadata(entry.path()).value("scopes", nlohmann::json::array())) {
      found.insert(tree["name"]);
    }
  }
  EXPECT_EQ(found, std::multiset<std::string>(given.begin(), given.end()));
}

TEST_F(RecordedScopesTest, ASnapshotHasTheTreesOfItsTime) {
  FlightRecorderOptions keep;
  keep.directory = in_folder("snapshots");
  const auto recorder = std::make_shared<FlightRecorder>(keep);
  options_.sink = recorder;
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  add_tree(profiler, "long before");
  const std::uint64_t begin = profiler.stats().rows_written;
  while (profiler.stats().rows_written < begin + 300) {
    std::this_thread::yield();
  }
  add_tree(profiler, "just before");
  const Result<std::string> path = recorder->snapshot(
      {.before = std::chrono::milliseconds(20), .after = std::chrono::milliseconds(1)}, true);
  ASSERT_TRUE(path) << path.error().message;
  ASSERT_TRUE(profiler.stop());
  const nlohmann::json meta = metadata(path->substr(0, path->size() - 4) + ".meta.json");
  ASSERT_EQ(meta["scopes"].size(), 1U);
  EXPECT_EQ(meta["scopes"][0]["name"], "just before");
  EXPECT_FALSE(meta.contains("scope_trees_left_out"));
}

TEST_F(RecordedScopesTest, TheRecordingSaysHowManyScopesHadNoRoomInTheirTree) {
  options_.sink = make_tsv_sink(in_folder("run.tsv"), {.rotate_bytes = 500});
  Profiler profiler(registry_, options_);
  ASSERT_TRUE(profiler.start());
  for (int part = 1; part <= 2; ++part) {
    ScopeTree tree("request", 3);
    {
      const EnterScope here(tree);
      for (int i = 0; i < 6; ++i) Scope("item").end();
    }
    tree.end();
    profiler.add_scopes(tree);
    while (!exists("run." + std::to_string(part) + ".tsv")) {
      std::this_thread::yield();
    }
  }
  ASSERT_TRUE(profiler.stop());
  const std::vector<std::string> warnings = profiler.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(
      warnings[0],
      "8 scopes had no room in the trees of add_scopes(): give kymo::ScopeTree a higher limit");
  const nlohmann::json first = metadata(in_folder("run.meta.json"));
  EXPECT_EQ(first["scopes"][0]["scopes_left_out"], 4);
  EXPECT_FALSE(first["scopes"][0]["components"][0].contains("scopes_left_out"));
}

TEST(ScopeKeeperTest, TheNewestTreesStayWholeAndTheOthersAreCounted) {
  ScopeKeeper keeper(5);
  for (const char* name : {"a", "b", "c"}) {
    ScopeTree tree{ScopeName(std::string_view(name))};
    const EnterScope here(tree);
    Scope("part").end();
    tree.end();
    keeper.add(tree);
  }
  const KeptScopes kept = keeper.since(0);
  ASSERT_EQ(kept.scopes.size(), 4U);
  EXPECT_EQ(kept.trees, 3U);
  EXPECT_EQ(kept.scopes[0].name, "b");
  EXPECT_EQ(kept.scopes[2].name, "c");
  EXPECT_EQ(kept.scopes[2].parent, ScopeRecord::kNoParent);
  EXPECT_EQ(kept.scopes[3].parent, 2U);
  EXPECT_EQ(keeper.since(2).scopes.size(), 2U);
  EXPECT_TRUE(keeper.since(3).scopes.empty());
  EXPECT_TRUE(keeper.since(UINT64_MAX).scopes.empty());
}

}  // namespace
}  // namespace kymo
