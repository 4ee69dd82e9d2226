#include "sampling/own_columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace kymo {
namespace {

constexpr std::size_t kMostChanges = 65536;

}  // namespace

OwnColumns::OwnColumns(std::vector<std::string> names)
    : names_(std::move(names)), newest_(names_.size()), at_row_(names_.size()) {}

void OwnColumns::set(std::size_t column, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (newest_[column] != value) {
    note(column, value);
  }
}

void OwnColumns::add(std::size_t column, std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  if (n != 0) {
    note(column, newest_[column] + n);
  }
}

std::uint64_t OwnColumns::value(std::size_t column) const {
  const std::lock_guard lock(mutex_);
  return newest_[column];
}

// The time is read under the lock. If overlay() takes the lock after a row was sampled, it
// therefore finds every change that is older than the row.
void OwnColumns::note(std::size_t column, std::uint64_t value) {
  if (changes_.size() >= kMostChanges) {
    merge_oldest();
  }
  newest_[column] = value;
  changes_.push_back({monotonic_ns(), column, value});
}

// In the older half, keeps only the last change of each column.
void OwnColumns::merge_oldest() {
  const auto half = changes_.begin() + static_cast<std::ptrdiff_t>(changes_.size() / 2);
  std::vector<std::optional<Change>> last(names_.size());
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
      rows[row + place.word] = at_row_[place.column];
    }
  }
}

}  // namespace kymo
