#pragma once

#include <functional>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// Keeps the rows that it gets. `on_write`, if set, can delay or refuse a write.
class KeepingSink : public Sink {
 public:
  Result<void> open(const RecordingInfo& info) override {
    opened_with = info;
    return {};
  }
  Result<void> write(const Rows& rows) override {
    if (on_write) {
      if (Result<void> allowed = on_write(); !allowed) {
        return allowed;
      }
    }
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto row = rows.row(i);
      kept.emplace_back(row.begin(), row.end());
    }
    return {};
  }
  void gap(const Gap& gap) override { listed.push_back(gap); }
  Result<void> close(const ProfilerStats&) override {
    ++closed;
    return {};
  }

  std::function<Result<void>()> on_write;
  RecordingInfo opened_with;
  std::vector<std::vector<std::uint64_t>> kept;
  std::vector<Gap> listed;
  int closed = 0;
};

}  // namespace kymo
