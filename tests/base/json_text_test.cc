#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/cpu_time.h"

namespace kymo {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JsonTextTest, NestsAtMost64LevelsDeep) {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair(R"({"a":)", "}")}) {
    const auto nested = [open = open, close = close](int levels) {
      return repeated(open, levels) + "1" + repeated(close, levels);
    };
    EXPECT_FALSE(parse_json(nested(64)).is_discarded());
    EXPECT_TRUE(parse_json(nested(65)).is_discarded());
    EXPECT_TRUE(parse_json(nested(100'000)).is_discarded());
  }
  EXPECT_FALSE(parse_json("[" + repeated("[],", 100) + "{}]").is_discarded())
      << "many short arrays in one array are not deep";
}

TEST(JsonTextTest, BracketsInAStringAreNoLevels) {
  const std::string text = repeated("[{", 100) + "\"\\" + repeated("[{", 100);
  EXPECT_EQ(parse_json(json_string(text)), nlohmann::json(text));
  EXPECT_EQ(parse_json(R"({"a\\": "\"[", "b": [1]})").size(), 2U);
  EXPECT_TRUE(parse_json("\"" + repeated("[", 100)).is_discarded());
}

TEST(JsonTextTest, ControlCodesOfTerminalsWereNotEscaped) {
  EXPECT_EQ(json_string("\x1b[m \x7f \u0080 \u009b31m \u009f"),
            R"("\u001b[m \u007f \u0080 \u009b31m \u009f")");
  EXPECT_EQ(json_string("\u061c\u200b\u200f\u2028\u202a\u202e\u2066\u2069"),
            R"("\u061c\u200b\u200f\u2028\u202a\u202e\u2066\u2069")");
  EXPECT_EQ(json_text(nlohmann::json{{"\u009b", {"\u202e"}}}, 1),
            "{\n \"\\u009b\": [\n  \"\\u202e\"\n ]\n}");
  EXPECT_EQ(json_string("\xc2 \xe2\x80"), "\"\uFFFD \uFFFD\"");
}

TEST(JsonTextTest, OtherCharactersStayAndAllComeBack) {
  const std::string shown = "aé\u00a0\u0600\u2010\u2027\u202f\u2070\uFFFD\U0001F600z";
  EXPECT_EQ(json_string(shown), '"' + shown + '"');
  std::string all;
  for (unsigned point = 0; point < 0x3000; ++point) {
    if (point < 0x80) {
      all += static_cast<char>(point);
      continue;
    }
    if (point >= 0x800) all += static_cast<char>(0xe0U | (point >> 12U));
    all +=
        static_cast<char>(point >= 0x800 ? 0x80U | ((point >> 6U) & 0x3fU) : 0xc0U | (point >> 6U));
    all += static_cast<char>(0x80U | (point & 0x3fU));
  }
  EXPECT_EQ(parse_json(json_string(all)), nlohmann::json(all));
  EXPECT_EQ(valid_utf8(all), all);
}

TEST(JsonTextTest, ManyObjectsInAnArrayTookQuadraticTime) {
  const auto time_of = [](int objects) {
    const std::string text = "[" + repeated(R"({"a":1},)", objects) + "{}]";
    return test::cpu_time_of(
        [&] { EXPECT_EQ(static_cast<int>(parse_json(text).size()), objects + 1); });
  };
  EXPECT_LT(time_of(200'000), 24 * time_of(25'000));
}

}  // namespace
}  // namespace kymo
