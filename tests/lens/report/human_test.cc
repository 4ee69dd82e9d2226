#include "lens/report/human.h"

#include <gtest/gtest.h>

namespace kymo::report {
namespace {

TEST(Human, ValuesAndRatesCarryTheirUnit) {
  EXPECT_EQ(value(1500, Unit::microseconds), "1.50 ms");
  EXPECT_EQ(value(131'072, Unit::pages), "131,072");
  EXPECT_EQ(value(2.5, Unit::count), "2.50");
  EXPECT_EQ(rate(2'000'000, Unit::count), "2 M/s");
  EXPECT_EQ(rate(1048576, Unit::bytes), "1 MiB/s");
}

TEST(Human, TellsTheTimeInUtc) {
  EXPECT_EQ(wall_clock(1'795'251'436'363'364'903), "2026-11-21 08:57:16.363 UTC");
  EXPECT_EQ(wall_clock(-1), "1969-12-31 23:59:59.999 UTC");
}

TEST(Human, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a?[31m??");
  EXPECT_EQ(printable("\xc2\x9b[31m"), "?[31m");  // U+009B is an escape sequence of one character
  EXPECT_EQ(printable("a\u202e"
                      "b\u2066"
                      "c\u200f"
                      "d\u061c"
                      "e\u2028"),
            "a?b?c?d?e?");
  EXPECT_EQ(printable("a\u2013\u2019\u20ac\u0600"), "a\u2013\u2019\u20ac\u0600");
  EXPECT_EQ(printable("a\u00b5\U0001f600\U0010ffff"), "a\u00b5\U0001f600\U0010ffff");
  EXPECT_EQ(printable("\xc3\x9b \xc2\xb5s"), "\xc3\x9b \xc2\xb5s");
}

// Some terminals obey these single bytes, because they use 8-bit characters or decode UTF-8
// loosely.
TEST(Human, BytesThatAreNoUtf8AreNotLeft) {
  EXPECT_EQ(printable("\x9b[31m"), "?[31m");
  EXPECT_EQ(printable("\xe2\x80"), "??") << "cut short";
  EXPECT_EQ(printable("\xe2\x80z"), "??z");
  EXPECT_EQ(printable("\xc2"), "?");
  EXPECT_EQ(printable("\xc0\x9b"), "??") << "overlong";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "???") << "overlong";
  EXPECT_EQ(printable("\xf0\x80\x82\x9b"), "????") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("caf\xe9"), "caf?") << "Latin-1";
}

TEST(Human, AFilterOfAStreamKnowsWhatCameBefore) {
  const std::string text =
      "a\xc2\x9b[31m\n\tb\r\nc\r\u20ac\U0001f600\xf0\x9f\x98 \xe2\x82\x82\x9b\xc2";
  const std::string shown = "a?[31m\n\tb\nc\n\u20ac\U0001f600??? \u2082??";
  for (std::size_t length = 1; length <= text.size(); ++length) {
    TerminalFilter filter;
    std::string got;
    for (std::size_t at = 0; at < text.size(); at += length) {
      got += filter.pass(text.substr(at, length));
    }
    EXPECT_EQ(got + filter.end(), shown) << "in pieces of " << length;
  }
  TerminalFilter filter;
  EXPECT_EQ(filter.pass("\xc2"), "");
  EXPECT_EQ(filter.pass("\x9b"), "?");
  EXPECT_EQ(filter.end(), "");
  EXPECT_EQ(filter.pass("failed\rfine\r"), "failed\nfine");
  EXPECT_EQ(filter.end(), "\n");
}

TEST(Human, ShortenedTextHasWholeCharacters) {
  EXPECT_EQ(shortened("four", 4), "four");
  EXPECT_EQ(shortened("fifth", 4), "fi..");
  EXPECT_EQ(shortened("a\xc2\xb5sss", 4), "a..");
}

}  // namespace
}  // namespace kymo::report
