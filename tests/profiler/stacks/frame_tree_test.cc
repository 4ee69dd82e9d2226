#include "profiler/stacks/frame_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

using Row = std::tuple<std::uint32_t, std::string, std::uint64_t>;

std::vector<Row> rows_of(const FrameTree& tree) {
  std::vector<Row> rows;
  for (const FrameTree::Node& node : tree.nodes) {
    rows.emplace_back(node.depth, tree.functions[node.function].name, node.self);
  }
  return rows;
}

TEST(FrameTreeTest, StacksShareTheirOutermostFrames) {
  FrameTreeBuilder builder;
  const std::uint32_t web = builder.function("web", "");
  const std::uint32_t run = builder.function("run", "/bin/web");
  const std::uint32_t copy = builder.function("copy", "/lib/c.so");
  builder.add({web, run}, 1);
  builder.add({web, run, copy}, 2);
  builder.add({web, copy}, 4);
  builder.add({web, run, copy}, 8);
  EXPECT_EQ(rows_of(std::move(builder).finish(Quantity::cpu, 1)),
            (std::vector<Row>{{0, "web", 0}, {1, "copy", 4}, {1, "run", 1}, {2, "copy", 10}}));
}

TEST(FrameTreeTest, FunctionsOfOneNameInTwoModulesAreTwo) {
  FrameTreeBuilder builder;
  EXPECT_NE(builder.function("main", "/bin/a"), builder.function("main", "/bin/b"));
  EXPECT_EQ(builder.function("main", "/bin/a"), builder.function("main", "/bin/a"));
}

TEST(FrameTreeTest, OfAProfileTheRootsAreProcesses) {
  Module module;
  module.path = "/usr/bin/one";
  Trace trace;
  trace.process = "web";
  trace.frames = {{&module, 2}, {nullptr, 1}};
  trace.truncated = true;
  Profile profile;
  profile.period_ns = 10;
  profile.traces[trace] = {3, 30};
  Symbols symbols;
  const FrameTree cpu = frame_tree(named(profile, symbols));
  EXPECT_EQ(
      rows_of(cpu),
      (std::vector<Row>{{0, "web", 0}, {1, kTruncated, 0}, {2, "[unknown]", 0}, {3, "[one]", 3}}));
  EXPECT_EQ(cpu.scale, 10U);
  profile.waits = true;
  profile.period_ns = 0;
  const FrameTree waits = frame_tree(named(profile, symbols));
  EXPECT_EQ(waits.nodes.back().self, 30U);
  EXPECT_EQ(waits.scale, 1U);
}

TEST(FrameTreeTest, WithoutAProcessTheRootsAreFunctions) {
  NamedProfile profile;
  profile.functions = {{"main.main", "/bin/web", true}};
  profile.stacks = {{"", {0}, false, {1, 5}}, {"", {}, false, {1, 7}}};
  EXPECT_EQ(rows_of(frame_tree(profile)),
            (std::vector<Row>{{0, "[unknown]", 7}, {0, "main.main", 5}}));
}

TEST(FrameTreeTest, NoStackIsAnEmptyTree) {
  EXPECT_TRUE(FrameTreeBuilder().finish(Quantity::cpu, 1).nodes.empty());
}

}  // namespace
}  // namespace kymo::stacks
