#include "recorder/timing/scope_keeper.h"

#include <algorithm>
#include <utility>

namespace kymo {

void ScopeKeeper::add(const ScopeTree& tree) {
  std::vector<ScopeRecord> records = tree.records();
  const std::lock_guard lock(mutex_);
  ++added_;
  left_out_ += records.front().left_out;
  scopes_ += records.size();
  trees_.push_back(std::move(records));
  while (scopes_ > most_ && trees_.size() > 1) {
    scopes_ -= trees_.front().size();
    trees_.pop_front();
  }
}

std::uint64_t ScopeKeeper::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

KeptScopes ScopeKeeper::since(std::uint64_t after) const {
  const std::lock_guard lock(mutex_);
  KeptScopes kept{{}, added_};
  const std::uint64_t wanted = added_ - std::min(after, added_);
  for (std::size_t i = trees_.size() - std::min<std::uint64_t>(wanted, trees_.size());
       i < trees_.size(); ++i) {
    const std::size_t root = kept.scopes.size();
    for (const ScopeRecord& scope : trees_[i]) {
      kept.scopes.push_back(scope);
      if (scope.parent != ScopeRecord::kNoParent) {
        kept.scopes.back().parent += root;
      }
    }
  }
  return kept;
}

}  // namespace kymo
