#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "diff_test.h"

namespace kymo::analysis {

// A test that compares recordings of a histogram.
class HistogramDiffTest : public DiffTest {
 protected:
  struct Shape {
    std::size_t rows = 12'000;
    std::size_t values_a_row = 1;
    double longest = 1000;  // the values are spread evenly from `shortest` to this
    double shortest = 1;
    std::uint64_t per_doubling = 8;
    std::size_t slow_rows = 0;  // in the first of them, the values are `slow`
    std::uint64_t slow = 0;
  };

  // Records a histogram whose bounds are 64 to 4096, and a counter.
  std::string record(const std::string& name, const Shape& shape) {
    std::vector<std::uint64_t> bounds;
    for (std::uint64_t from = 64; from < 4096; from *= 2) {
      for (std::uint64_t i = from == 64 ? 0 : 1; i <= shape.per_doubling; ++i) {
        bounds.push_back(from + i * from / shape.per_doubling);
      }
    }
    std::string text = "Time (ns)\tcalls";
    std::uint64_t from = 0;
    for (const std::uint64_t bound : bounds) {
      text += "\twait_us[" + std::to_string(from) + '-' + std::to_string(bound) + ']';
      from = bound + 1;
    }
    text += "\twait_us[" + std::to_string(from) + "-inf]\twait_us_sum\twait_us_count\n";
    std::vector<std::uint64_t> counts(bounds.size() + 1);
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    std::uniform_real_distribution<double> drawn(shape.shortest, shape.longest);
    for (std::size_t row = 0; row < shape.rows; ++row) {
      text += std::to_string(row * 1'000'000) + '\t' + std::to_string(row);
      for (const std::uint64_t bucket : counts) text += '\t' + std::to_string(bucket);
      text += '\t' + std::to_string(sum) + '\t' + std::to_string(count) + '\n';
      for (std::size_t i = 0; i < shape.values_a_row; ++i) {
        const bool is_slow = row < shape.slow_rows;
        const auto value = is_slow ? shape.slow : static_cast<std::uint64_t>(drawn(random_));
        const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
        ++counts[static_cast<std::size_t>(bucket)];
        sum += value;
        ++count;
      }
    }
    return folder_.file(name + ".tsv", text);
  }

  std::mt19937_64 random_{2026};
};

}  // namespace kymo::analysis
