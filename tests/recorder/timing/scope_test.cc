#include "kymo/scope.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "kymo/count_bytes.h"

namespace kymo {
namespace {

constexpr std::size_t kRoot = ScopeRecord::kNoParent;

const ScopeRecord* find(const std::vector<ScopeRecord>& records, std::string_view name) {
  for (const ScopeRecord& record : records) {
    if (record.name == name) return &record;
  }
  return nullptr;
}

std::string parent_of(const std::vector<ScopeRecord>& records, std::string_view name) {
  const ScopeRecord* record = find(records, name);
  if (record == nullptr) return "(not there)";
  return record->parent == kRoot ? "(none)" : records.at(record->parent).name;
}

TEST(ScopeTest, NestsByTheCodeThatRuns) {
  const std::uint64_t before = monotonic_ns();
  ScopeTree tree("request");
  {
    const EnterScope here(tree);
    {
      const Scope outer("outer", {.category = "work"});
      const Scope inner("inner");
    }
    const Scope next("next");
  }
  tree.end();
  const auto records = tree.records();
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(parent_of(records, "request"), "(none)");
  EXPECT_EQ(parent_of(records, "outer"), "request");
  EXPECT_EQ(parent_of(records, "inner"), "outer");
  EXPECT_EQ(parent_of(records, "next"), "request");
  EXPECT_EQ(find(records, "outer")->category, "work");
  EXPECT_GE(records[0].start_ns, before) << "on CLOCK_MONOTONIC";
  EXPECT_LE(records[0].start_ns + records[0].duration_ns, monotonic_ns());
  EXPECT_GE(find(records, "outer")->duration_ns, find(records, "inner")->duration_ns);
  EXPECT_EQ(tree.dropped(), 0U);
}

TEST(ScopeTest, EachScopeHasTheIdOfItsThreadAlsoInAChildOfFork) {
  ScopeTree tree("request");
  pid_t helper = 0;
  std::thread([&] {
    helper = ::gettid();
    const EnterScope here(tree);
    const Scope scope("aside");
  }).join();
  EXPECT_EQ(find(tree.records(), "request")->thread, static_cast<std::uint32_t>(::gettid()));
  EXPECT_EQ(find(tree.records(), "aside")->thread, static_cast<std::uint32_t>(helper));
  const pid_t child = ::fork();
  if (child == 0) {
    ScopeTree own("own");
    ::_exit(own.records()[0].thread == static_cast<std::uint32_t>(::gettid()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ScopeTest, NothingIsRecordedWhereNobodyListens) {
  ScopeTree tree("request");
  Scope scope("aside");
  scope.add_bytes(5);
  scope.fail("nobody hears");
  add_scope("added", 0, 7);
  EXPECT_FALSE(scope.recorded());
  { const EnterScope here(tree); }
  const Scope after("after");
  EXPECT_FALSE(after.recorded());
  EXPECT_EQ(tree.records().size(), 1U);
}

TEST(ScopeTest, AnEarlyReturnAndAnExceptionEndAScope) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  [] {
    const Scope scope("returned");
    if (scope.recorded()) return;
    FAIL();
  }();
  try {
    const Scope scope("thrown");
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
    const Scope scope("handler");  // ends at once, so it is no longer in flight
  }
  const auto records = tree.records();
  EXPECT_FALSE(find(records, "returned")->unfinished);
  EXPECT_EQ(find(records, "returned")->error, "");
  EXPECT_FALSE(find(records, "thrown")->unfinished);
  EXPECT_EQ(find(records, "thrown")->error, "ended by an exception");
  EXPECT_EQ(find(records, "handler")->error, "");
  EXPECT_EQ(parent_of(records, "handler"), "request");
}

TEST(ScopeTest, ScopesOpenedWhileAnExceptionIsInFlightAreNotItsVictims) {
  struct CleansUp {
    ~CleansUp() { const Scope scope("clean up"); }
  };
  ScopeTree tree("request");
  const EnterScope here(tree);
  try {
    const CleansUp cleans_up;
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(find(tree.records(), "clean up")->error, "");
}

TEST(ScopeTest, TheFirstErrorIsKept) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  Scope scope("step");
  scope.fail("the cause");
  scope.fail("what followed");
  scope.end();
  tree.fail("the whole");
  EXPECT_EQ(find(tree.records(), "step")->error, "the cause");
  EXPECT_EQ(tree.records()[0].error, "the whole");
}

TEST(ScopeTest, AnOpenScopeHasItsDurationSoFar) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  Scope scope("open");
  const auto early = tree.records();
  EXPECT_TRUE(early[1].unfinished);
  EXPECT_TRUE(early[0].unfinished);
  scope.end();
  tree.end();
  const auto late = tree.records();
  EXPECT_FALSE(late[1].unfinished);
  EXPECT_GE(late[1].duration_ns, early[1].duration_ns);
  tree.end();
  EXPECT_EQ(tree.records()[0].duration_ns, late[0].duration_ns) << "ends once";
}

TEST(ScopeTest, NamesMadeAtRunTimeAreKept) {
  ScopeTree tree("request");
  {
    const EnterScope here(tree);
    std::string name = "after pre-dump, a name of some length";
    const Scope scope(ScopeName{std::string_view{name}});
    name.assign(name.size(), 'x');
  }
  EXPECT_EQ(tree.records()[1].name, "after pre-dump, a name of some length");
}

TEST(ScopeTest, DurationsAreAddedAfterwards) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  const Scope scope("criu");
  add_scope("frozen", 1000, 250, 4096, {.redundant = true});
  add_scope("just now", 0, 10);
  const auto records = tree.records();
  EXPECT_EQ(parent_of(records, "frozen"), "criu");
  EXPECT_EQ(find(records, "frozen")->start_ns, 1000U);
  EXPECT_EQ(find(records, "frozen")->duration_ns, 250U);
  EXPECT_EQ(find(records, "frozen")->bytes, 4096U);
  EXPECT_TRUE(find(records, "frozen")->redundant);
  EXPECT_GE(find(records, "just now")->start_ns + 10, find(records, "criu")->start_ns);
}

TEST(ScopeTest, MemoryIsBoundedAndWhatIsBeyondIsCounted) {
  ScopeTree tree("request", 100);
  const EnterScope here(tree);
  for (int i = 0; i < 250; ++i) {
    Scope scope("step");
    scope.add_bytes(1);
    EXPECT_EQ(scope.recorded(), i < 99);
  }
  const Scope beyond("beyond");
  EXPECT_EQ(tree.records().size(), 100U);
  EXPECT_EQ(tree.dropped(), 152U);
}

TEST(ScopeTest, WhatAnotherThreadDoesIsPartOfTheScopeItWasGiven) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  const Scope waits("waits");
  const ScopeContext context = ScopeContext::current();
  std::thread([&] {
    const Scope aside("aside");
    EXPECT_FALSE(aside.recorded()) << "another thread must not record unless it was told to";
    const EnterScope there(context);
    const Scope part("part");
    const Scope within("within");
  }).join();
  std::thread([&] {
    const EnterScope there(context, false);
    const Scope part("serial");
  }).join();
  const auto records = tree.records();
  EXPECT_EQ(parent_of(records, "part"), "waits");
  EXPECT_TRUE(find(records, "part")->parallel);
  EXPECT_FALSE(find(records, "within")->parallel)
      << "its parts follow each other, so they are not parallel";
  EXPECT_FALSE(find(records, "serial")->parallel);
}

TEST(ScopeTest, TreesCanBeEnteredWithinEachOther) {
  ScopeTree outer("outer");
  ScopeTree inner("inner");
  const EnterScope to_outer(outer);
  {
    const EnterScope to_inner(inner);
    const Scope scope("of inner");
  }
  const Scope scope("of outer");
  EXPECT_EQ(parent_of(inner.records(), "of inner"), "inner");
  EXPECT_EQ(parent_of(outer.records(), "of outer"), "outer");
  EXPECT_EQ(outer.records().size(), 2U);
}

TEST(CountBytesTest, CountsWhatPassesThroughAStreamAndLetsItGo) {
  ScopeTree tree("request");
  const EnterScope here(tree);
  std::stringstream stream;
  std::streambuf* const before = stream.rdbuf();
  {
    Scope writes("writes");
    const CountBytes counted(stream, writes);
    stream << "twelve bytes" << std::flush;
    stream.put('!');
  }
  {
    Scope reads("reads");
    const CountBytes counted(stream, reads);
    std::string text;
    stream >> text;
    EXPECT_EQ(text, "twelve");
    stream.seekg(7);
    std::getline(stream, text);
    EXPECT_EQ(text, "bytes!");
    EXPECT_TRUE(stream.eof());
  }
  EXPECT_EQ(stream.rdbuf(), before);
  EXPECT_TRUE(stream.eof()) << "the state of the caller's stream must not change";
  EXPECT_EQ(find(tree.records(), "writes")->bytes, 13U);
  EXPECT_EQ(find(tree.records(), "reads")->bytes, 12U);
}

TEST(CountBytesTest, WhereNobodyListensTheStreamIsLeftAlone) {
  std::stringstream stream;
  std::streambuf* const before = stream.rdbuf();
  Scope scope("writes");
  const CountBytes counted(stream, scope);
  EXPECT_EQ(stream.rdbuf(), before);
}

}  // namespace
}  // namespace kymo
