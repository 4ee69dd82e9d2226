#include "recorder/sampling/history/own_columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "recorder/metrics/metric_rules.h"

namespace kymo {
namespace {

constexpr std::size_t kMaxChanges = 65536;

}  // namespace

OwnColumns::OwnColumns(std::vector<Column> columns)
    : columns_(std::move(columns)),
      is_age_(columns_.size()),
      of_stream_(columns_.size()),
      newest_(columns_.size()),
      at_row_(columns_.size()) {}

std::size_t OwnColumns::extend(const std::vector<Metric>& metrics,
                               std::span<const std::uint64_t> values, std::size_t ages) {
  const std::lock_guard lock(mutex_);
  const std::size_t first = columns_.size();
  for (const Metric& metric : metrics) {
    for (Column& column : columns_of(metric)) columns_.push_back(std::move(column));
  }
  is_age_.resize(first + ages);
  is_age_.resize(columns_.size(), true);
  newest_.insert(newest_.end(), values.begin(), values.end());
  at_row_.insert(at_row_.end(), values.begin(), values.end());
  return first;
}

OwnColumns::Chosen OwnColumns::chosen(const std::vector<Column>& stream) const {
  const std::lock_guard lock(mutex_);
  Chosen chosen;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool there =
        i >= of_stream_ || std::any_of(stream.begin(), stream.end(), [&](const Column& column) {
          return column.name == columns_[i].name;
        });
    if (!there) continue;
    chosen.columns.push_back(columns_[i]);
    chosen.indexes.push_back(i);
  }
  return chosen;
}

// The time is read under the lock. If overlay() takes the lock after a row was sampled, it
// therefore finds every change that is older than the row.
void OwnColumns::set(std::size_t column, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (newest_[column] != value) {
    note(column, value, monotonic_ns());
  }
}

void OwnColumns::set_all(std::size_t first, std::span<const std::uint64_t> values) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now_ns = monotonic_ns();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (newest_[first + i] != values[i]) {
      note(first + i, values[i], now_ns);
    }
  }
}

void OwnColumns::add(std::size_t column, std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  if (n != 0) {
    note(column, newest_[column] + n, monotonic_ns());
  }
}

std::uint64_t OwnColumns::value(std::size_t column) const {
  const std::lock_guard lock(mutex_);
  return newest_[column];
}

void OwnColumns::note(std::size_t column, std::uint64_t value, std::uint64_t at_ns) {
  if (changes_.size() >= kMaxChanges) {
    merge_oldest();
  }
  newest_[column] = value;
  changes_.push_back({at_ns, column, value});
}

// In the older half, keeps only the last change of each column.
void OwnColumns::merge_oldest() {
  const auto half = changes_.begin() + static_cast<std::ptrdiff_t>(changes_.size() / 2);
  std::vector<std::optional<Change>> last(columns_.size());
  std::for_each(changes_.begin(), half,
                [&](const Change& change) { last[change.column] = change; });
  std::vector<Change> kept;
  for (const std::optional<Change>& change : last) {
    if (change) {
      kept.push_back(*change);
    }
  }
  std::sort(kept.begin(), kept.end(),
            [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
  kept.insert(kept.end(), half, changes_.end());
  changes_ = std::move(kept);
}

void OwnColumns::overlay(std::span<std::uint64_t> rows, std::size_t stride,
                         const std::vector<Place>& places, std::uint64_t start_monotonic_ns) {
  std::vector<Change> newer;
  {
    const std::lock_guard lock(mutex_);
    newer.swap(changes_);
  }
  seen_.erase(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(std::exchange(next_, 0)));
  seen_.insert(seen_.end(), newer.begin(), newer.end());
  for (std::size_t row = 0; row + stride <= rows.size(); row += stride) {
    const std::uint64_t at_ns = start_monotonic_ns + rows[row];
    for (; next_ < seen_.size() && seen_[next_].at_ns <= at_ns; ++next_) {
      at_row_[seen_[next_].column] = seen_[next_].value;
    }
    for (const Place& place : places) {
      const std::uint64_t value = at_row_[place.column];
      rows[row + place.word] = is_age_[place.column] ? at_ns - std::min(at_ns, value) : value;
    }
  }
}

}  // namespace kymo
