#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/database/store.h"

namespace kymo::store {

// Changes that are in memory only: noted ones that are not stored yet, and those for which the disk
// had no space.
//
// Threads: one at a time.
struct Unstored {
  std::map<std::string, Job> jobs;                // by id
  std::map<std::string, Checkpoint> checkpoints;  // by id
  std::vector<Run> runs;

  [[nodiscard]] std::size_t count() const { return jobs.size() + checkpoints.size() + runs.size(); }
  // Puts back changes that could not be stored. If there is a newer change of the same job or
  // checkpoint, that one stays.
  void put_back(Unstored older) {
    jobs.merge(older.jobs);
    checkpoints.merge(older.checkpoints);
    older.runs.insert(older.runs.end(), runs.begin(), runs.end());
    runs = std::move(older.runs);
  }
  void add_refusal(const Run& run) {
    constexpr std::ptrdiff_t kMaxRefusals = 100;
    const auto refused = [](const Run& one) { return one.refused; };
    if (std::count_if(runs.begin(), runs.end(), refused) >= kMaxRefusals) {
      runs.erase(std::find_if(runs.begin(), runs.end(), refused));
    }
    runs.push_back(run);
  }
  void add_runs(std::vector<Run>& to, std::string_view owner, RunKind kind) const {
    for (const Run& run : runs) {
      if ((owner.empty() || run.owner == owner) && run.kind == kind) to.push_back(run);
    }
  }
};

}  // namespace kymo::store
