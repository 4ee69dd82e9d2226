#include "recorder/timing/flatten.h"

#include <algorithm>

namespace kymo {
namespace {

// What the flattener finds out about a scope in addition to its record.
struct Place {
  std::vector<std::size_t> parts;
  std::uint64_t parts_ns = 0;  // the time that its parts take from it
  bool time_counts = true;
  bool bytes_count = true;
  std::string prefix;     // for the names of its parts
  std::size_t depth = 0;  // the number of rows around it
};

class Flattener {
 public:
  explicit Flattener(const std::vector<ScopeRecord>& records)
      : records_(records), places_(records.size()) {}

  FlatTree flatten();

 private:
  [[nodiscard]] bool is_wrapper(std::size_t i) const {
    return records_[i].duration_ns == 0 && !places_[i].parts.empty();
  }
  [[nodiscard]] bool is_row(std::size_t i) const { return i != 0 && !is_wrapper(i); }
  // The time that the scope takes from the one around it.
  [[nodiscard]] std::uint64_t taken_by(std::size_t i) const {
    if (records_[i].parallel || records_[i].redundant) {
      return 0;
    }
    return is_wrapper(i) ? places_[i].parts_ns : records_[i].duration_ns;
  }
  [[nodiscard]] bool has_parent(std::size_t i) const { return records_[i].parent < i; }
  void join_parents();
  void place(std::size_t i);
  void add_row(std::size_t i);

  const std::vector<ScopeRecord>& records_;
  std::vector<Place> places_;
  FlatTree tree_;
};

void Flattener::join_parents() {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (has_parent(i)) {
      places_[records_[i].parent].parts.push_back(i);
    }
  }
  for (std::size_t i = records_.size(); i-- > 0;) {  // backwards: parts come after their parent
    if (has_parent(i)) {
      places_[records_[i].parent].parts_ns += taken_by(i);
    }
  }
}

void Flattener::place(std::size_t i) {
  const ScopeRecord& record = records_[i];
  Place& place = places_[i];
  place.time_counts = !record.parallel && !record.redundant;
  place.bytes_count = !record.redundant && !record.bytes_redundant;
  if (has_parent(i)) {
    const Place& parent = places_[record.parent];
    place.time_counts = place.time_counts && parent.time_counts;
    place.bytes_count = place.bytes_count && parent.bytes_count;
    place.prefix = is_wrapper(record.parent) ? parent.prefix : "";
    place.depth = parent.depth + (is_row(record.parent) ? 1 : 0);
  }
  if (is_wrapper(i)) {
    place.prefix += record.name + ":";
  }
}

void Flattener::add_row(std::size_t i) {
  const ScopeRecord& record = records_[i];
  const Place& place = places_[i];
  const std::uint64_t own = record.duration_ns - std::min(record.duration_ns, place.parts_ns);
  if (place.time_counts && !is_wrapper(i)) {
    tree_.overlap_ns += place.parts_ns - std::min(record.duration_ns, place.parts_ns);
  }
  tree_.total_bytes += place.bytes_count ? record.bytes : 0;
  if (i == 0) {
    tree_.total_ns = record.duration_ns;
    tree_.unaccounted_ns = own;
  } else if (is_row(i)) {
    const std::string prefix =
        has_parent(i) && is_wrapper(record.parent) ? places_[record.parent].prefix : "";
    tree_.rows.push_back({prefix + record.name, record.category, record.error, record.start_ns, own,
                          record.bytes, place.time_counts, place.bytes_count, record.unfinished,
                          place.depth});
  }
}

FlatTree Flattener::flatten() {
  if (records_.empty()) {
    return {};
  }
  join_parents();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    place(i);
  }
  std::vector<std::size_t> left = {0};
  while (!left.empty()) {
    const std::size_t i = left.back();
    left.pop_back();
    add_row(i);
    left.insert(left.end(), places_[i].parts.rbegin(), places_[i].parts.rend());
  }
  return std::move(tree_);
}

}  // namespace

FlatTree flatten(const std::vector<ScopeRecord>& records) {
  return Flattener(records).flatten();
}

std::vector<CategorySum> sum_by_category(const FlatTree& tree) {
  std::vector<CategorySum> sums;
  for (const FlatScope& row : tree.rows) {
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const CategorySum& other) {
      return other.category == row.category;
    });
    if (sum == sums.end()) {
      sum = sums.insert(sums.end(), {row.category, 0, 0});
    }
    sum->duration_ns += row.time_counted ? row.duration_ns : 0;
    sum->bytes += row.bytes_counted ? row.bytes : 0;
  }
  return sums;
}

}  // namespace kymo
