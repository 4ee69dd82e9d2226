#pragma once

#include <functional>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// Keeps what it is given; `on_write`, where set, may delay or refuse.
class KeepingSink : public Sink {
 public:
  Result<void> open(const RecordingInfo& info) override {
    info_ = info;
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
      rows_.emplace_back(row.begin(), row.end());
    }
    return {};
  }
  void gap(const Gap& gap) override { gaps_.push_back(gap); }
  Result<void> close(const ProfilerStats&) override {
    ++closed_;
    return {};
  }

  std::function<Result<void>()> on_write;
  RecordingInfo info_;
  std::vector<std::vector<std::uint64_t>> rows_;
  std::vector<Gap> gaps_;
  int closed_ = 0;
};

}  // namespace kymo
