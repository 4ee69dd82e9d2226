#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/reading_age.h"
#include "lens/analysis/metadata.h"

namespace kymo::analysis {

// The clocks of a recording's columns. Clock 0 has the times of the rows. Values that were read before their row
// (base/reading_age.h) have the clock of their source: each row's time without its age, in the order of time.
class ReadingClocks {
 public:
  explicit ReadingClocks(const std::vector<ColumnInfo>& columns) {
    for (const ColumnInfo& column : columns) {
      const std::string wanted = age_column_of(column.name);
      const auto age = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnInfo& one) { return one.name == wanted; });
      of_.push_back(
          age == columns.end() ? 0 : clock_of(static_cast<std::size_t>(age - columns.begin())));
    }
  }

  [[nodiscard]] std::size_t count() const { return ages_.size() + 1; }
  // The number of a column's clock.
  [[nodiscard]] std::size_t of(std::size_t column) const { return of_[column]; }

  // Reads the clocks at the next rows. `values` gives the values of a column.
  template <class Values>
  void read(std::span<const std::uint64_t> rows, const Values& values) {
    rows_ = rows;
    for (auto& [column, last_ns, times] : ages_) {
      const std::span<const std::uint64_t> ages = values(column);
      times.clear();
      for (std::size_t row = 0; row < rows.size(); ++row) {
        last_ns = std::max(last_ns, rows[row] - std::min(rows[row], ages[row]));
        times.push_back(last_ns);
      }
    }
  }
  // What a clock shows at these rows. Valid until the next read().
  [[nodiscard]] std::span<const std::uint64_t> times(std::size_t clock) const {
    return clock == 0 ? rows_ : ages_[clock - 1].times;
  }

 private:
  struct Age {
    std::size_t column = 0;
    std::uint64_t last_ns = 0;
    std::vector<std::uint64_t> times{};
  };

  std::size_t clock_of(std::size_t age) {
    const auto found =
        std::find_if(ages_.begin(), ages_.end(), [&](const Age& one) { return one.column == age; });
    const auto clock = static_cast<std::size_t>(found - ages_.begin()) + 1;
    if (found == ages_.end()) ages_.push_back({age});
    return clock;
  }

  std::vector<std::size_t> of_;
  std::vector<Age> ages_;
  std::span<const std::uint64_t> rows_;
};

}  // namespace kymo::analysis
