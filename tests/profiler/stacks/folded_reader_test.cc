#include <gtest/gtest.h>

#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

TEST(FoldedReaderTest, WhatIsWrittenIsReadAgain) {
  const std::string text =
      "sh;main 7\n"
      "web;[truncated];main;read_[k] 2\n"
      "web;main;read_[k] 12\n";
  const Result<NamedProfile> read = read_folded(text, "x.folded", Quantity::cpu);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(folded(*read), text);
  EXPECT_EQ(read->sum().samples, 21U);
  EXPECT_EQ(read->sum().value, 0U) << "folded stacks have no times";
  EXPECT_TRUE(read->counts_samples);
  EXPECT_TRUE(read->stacks[1].truncated);
  const NamedProfile::Function& kernel = read->functions[read->stacks[2].functions.front()];
  EXPECT_EQ(kernel.name, "read");
  EXPECT_EQ(kernel.module, "[kernel]");
}

TEST(FoldedReaderTest, OtherQuantitiesHaveTheirUnits) {
  const auto sum = [](Quantity quantity) {
    return read_folded("web;main 5\n", "x", quantity).value().sum();
  };
  EXPECT_EQ(sum(Quantity::wait).value, 5000U) << "microseconds";
  EXPECT_EQ(sum(Quantity::heap).value, 5U);
  EXPECT_EQ(sum(Quantity::goroutine).samples, 5U);
  EXPECT_FALSE(read_folded("web;main 5\n", "x", Quantity::wait)->counts_samples);
}

TEST(FoldedReaderTest, NamesMayHaveSpacesAndLinesMayEndAsOnWindows) {
  const auto read = read_folded("# a comment\n\nweb;a (b c);d 3\r\nalone 4", "x", Quantity::cpu);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->stacks.size(), 2U);
  EXPECT_EQ(read->functions[read->stacks[0].functions[1]].name, "a (b c)");
  EXPECT_EQ(read->stacks[1].process, "");
}

TEST(FoldedReaderTest, ALineThatIsNoStackIsNamed) {
  for (const char* line : {"main", "main x", " 5", "main 5x", "main -5", "main ", "<html>"}) {
    const auto read =
        read_folded("web;main 1\n" + std::string(line) + "\n", "x.txt", Quantity::cpu);
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_EQ(read.error().message.find("x.txt, line 2: this is no stack"), 0U)
        << read.error().message;
  }
}

TEST(FoldedReaderTest, AValueThatIsTooLargeIsBounded) {
  const auto read = read_folded("web;main 18446744073709551615\n", "x", Quantity::wait);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sum().value, std::uint64_t{1} << 48U);
  EXPECT_FALSE(read_folded("web;main 18446744073709551616\n", "x", Quantity::wait).ok());
}

}  // namespace
}  // namespace kymo::stacks
