#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "kymo/scope.h"

namespace kymo {
namespace {

constexpr int kThreads = 4;
constexpr std::uint64_t kOuter = 3000;

// Records one outer scope with two parts. Their names contain the thread and the round.
void work(int thread, std::uint64_t round) {
  const std::string name = std::to_string(thread) + "/" + std::to_string(round);
  Scope outer(ScopeName{std::string_view{name}});
  outer.add_bytes(round);
  {
    const std::string of_part = name + "/part";
    Scope part(ScopeName{std::string_view{of_part}}, {.category = "part"});
    part.add_bytes(1);
    if (round % 7 == 0) part.fail(name);
  }
  add_scope("added", 5, round, 1);
}

// A reader must find each scope complete and under its parent, whatever was recorded so far.
void check(const std::vector<ScopeRecord>& records) {
  for (std::size_t i = 1; i < records.size(); ++i) {
    const ScopeRecord& record = records[i];
    ASSERT_LT(record.parent, i) << record.name;
    const std::string& parent = records[record.parent].name;
    if (record.category == "part") {
      ASSERT_EQ(record.name, parent + "/part");
      ASSERT_TRUE(record.error.empty() || record.error == parent);
    } else if (record.name == "added") {
      ASSERT_EQ(record.start_ns, 5U);
      ASSERT_EQ(parent.substr(parent.find('/') + 1), std::to_string(record.duration_ns));
    } else {
      ASSERT_EQ(record.parent, 0U) << record.name;
      ASSERT_TRUE(record.parallel);
    }
  }
}

void race(std::size_t limit) {
  ScopeTree tree("request", limit);
  const EnterScope here(tree);
  const ScopeContext context = ScopeContext::current();
  std::atomic<int> working{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const EnterScope there(context);
      for (std::uint64_t round = 0; round < kOuter; ++round) work(thread, round);
      working.fetch_sub(1);
    });
  }
  while (working.load() != 0 && !testing::Test::HasFatalFailure()) check(tree.records());
  for (std::thread& thread : threads) thread.join();
  tree.end();
  const auto records = tree.records();
  ASSERT_NO_FATAL_FAILURE(check(records));
  constexpr std::uint64_t kAll = 1 + 3 * kOuter * kThreads;
  EXPECT_EQ(records.size(), std::min<std::uint64_t>(kAll, limit));
  EXPECT_EQ(records.size() + tree.dropped(), kAll);
  if (limit < kAll) return;
  std::uint64_t bytes = 0;
  for (const ScopeRecord& record : records) bytes += record.bytes;
  EXPECT_EQ(bytes, kThreads * (kOuter * (kOuter - 1) / 2 + 2 * kOuter));
}

TEST(ScopeStress, ThreadsRecordIntoOneTreeWhileItIsRead) {
  race(1U << 18U);
}

}  // namespace
}  // namespace kymo
