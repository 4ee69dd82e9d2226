#include "recorder/sampling/files/tsv_format.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace kymo {
namespace {

TEST(FormatNumber, AgreesWithTheLibraryOnEveryLength) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values = {0, UINT64_MAX};
  for (std::uint64_t power = 1;; power *= 10) {
    values.insert(values.end(), {power - 1, power, power + 1});
    if (power == 10'000'000'000'000'000'000U) {
      break;
    }
  }
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random() >> (random() % 64));
  }
  for (const std::uint64_t value : values) {
    char text[32];
    ASSERT_EQ(std::string(text, format_number(text, value)), std::to_string(value));
  }
}

TEST(TsvFormatter, WritesWhatASimpleLoopWrites) {
  constexpr std::size_t kColumns = 5;
  constexpr std::size_t kCapacity = 7;
  TsvFormatter formatter(kColumns + 1, kCapacity);
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> words((kColumns + 1) * kCapacity);
  std::uint64_t time = 1000;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t count = random() % (kCapacity + 1);
    std::string expected;
    for (std::size_t r = 0; r < count; ++r) {
      std::uint64_t* row = words.data() + r * (kColumns + 1);
      row[0] = time += random() % 5000;
      expected += std::to_string(row[0] - 1000);
      for (std::size_t c = 1; c <= kColumns; ++c) {
        // Each value is unchanged, slightly larger, or random.
        const std::uint64_t before = row[c];
        row[c] = random() % 3 == 0   ? before
                 : random() % 2 == 0 ? before + random() % 100
                                     : random();
        expected += '\t' + std::to_string(row[c]);
      }
      expected += '\n';
    }
    ASSERT_EQ(formatter.format({words.data(), count, kColumns + 1}, 1000), expected);
  }
}

TEST(TsvFormatter, ASmallValueAfterTheLargestIsItself) {
  TsvFormatter formatter(2, 5);
  const std::vector<std::uint64_t> words = {1, UINT64_MAX, 2, 7, 3, UINT64_MAX - 1, 4, 0, 5, 123};
  EXPECT_EQ(formatter.format({words.data(), 5, 2}, 0),
            "1\t18446744073709551615\n2\t7\n3\t18446744073709551614\n4\t0\n5\t123\n");
}

TEST(TsvHeader, NamesTimeAndColumns) {
  EXPECT_EQ(tsv_header({{"a", {}, {}}, {"b[x,y]", {}, {}}}), "Time (ns)\ta\tb[x,y]\n");
}

}  // namespace
}  // namespace kymo
