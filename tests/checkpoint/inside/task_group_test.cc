#include "checkpoint/inside/task_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace kymo::inside {
namespace {

void make_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Thread 90 of a program starts a child, while thread 1 has none.
TEST(TaskGroup, FindsTheChildOfALaterThread) {
  const test::TemporaryDirectory proc;
  const auto task = [&](int process, int thread, const std::string& children) {
    const std::string folder =
        proc.path() + "/" + std::to_string(process) + "/task/" + std::to_string(thread);
    make_file(folder + "/stat",
              std::to_string(thread) + " (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1000 1 0\n");
    make_file(folder + "/schedstat", "1 1 1\n");
    make_file(folder + "/children", children);
  };
  for (int thread = 1; thread <= 100; ++thread) task(1, thread, "");
  TaskGroup group(TaskGroup::Depth::threads, proc.path());
  group.add(1);
  std::uint64_t now_ns = 1'000'000'000;
  TaskTotals totals;
  const auto pass = [&](int readings) {
    for (int i = 0; i < readings; ++i) totals = group.read(now_ns += 1'000'000);
  };
  pass(200);
  EXPECT_EQ(totals.running, 100U);
  task(200, 200, "");
  task(1, 90, "200 ");
  pass(200);
  EXPECT_EQ(totals.running, 101U);
}

}  // namespace
}  // namespace kymo::inside
