#include "lens/report/scopes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_object.h"
#include "lens/report/human.h"
#include "lens/report/table.h"

namespace kymo::report {
namespace {

// The largest time that is accepted (146 years). With larger ones, sums would overflow.
constexpr std::uint64_t kMaxNs = std::uint64_t{1} << 62U;
// As many lines as a person reads. Names that are made at run time could give thousands.
constexpr std::size_t kMostLines = 60;

class ScopeReader {
 public:
  explicit ScopeReader(std::uint64_t clock_begin_ns) : clock_begin_ns_(clock_begin_ns) {}

  // The recursion is safe, because the reader of the metadata limits the depth of the JSON.
  void read(const nlohmann::json& json, std::size_t parent, const std::string& prefix) {
    const std::uint64_t start = number_of(json, "start_ns");
    const std::uint64_t duration = number_of(json, "duration_ns");
    std::string inner;
    if (start < kMaxNs && duration < kMaxNs && json.is_object()) {
      const bool wrapper = duration == 0 && member(json, "components").is_array();
      if (wrapper) {
        inner = prefix + kymo::text_of(json, "name") + ":";
      } else {
        add(json, parent, prefix);
        parent = scopes_.size() - 1;
      }
    }
    const nlohmann::json& parts = member(json, "components");
    if (!parts.is_array()) return;
    for (const nlohmann::json& part : parts) read(part, parent, inner);
  }
  std::vector<RecordedScope> take() { return std::move(scopes_); }

 private:
  static bool set(const nlohmann::json& json, const char* key) {
    const nlohmann::json& value = member(json, key);
    return value.is_boolean() && value.get<bool>();
  }
  void add(const nlohmann::json& json, std::size_t parent, const std::string& prefix) {
    RecordedScope scope;
    scope.parent = parent;
    scope.name = prefix + kymo::text_of(json, "name");
    scope.category = kymo::text_of(json, "category");
    scope.error = kymo::text_of(json, "error");
    scope.start_ns = static_cast<std::int64_t>(number_of(json, "start_ns")) -
                     static_cast<std::int64_t>(clock_begin_ns_);
    scope.duration_ns = static_cast<std::int64_t>(number_of(json, "duration_ns"));
    scope.bytes = number_of(json, "bytes");
    scope.thread = number_of(json, "thread");
    scope.parallel = set(json, "parallel");
    scope.redundant = set(json, "redundant");
    scope.unfinished = set(json, "unfinished");
    scopes_.push_back(std::move(scope));
  }

  std::uint64_t clock_begin_ns_;
  std::vector<RecordedScope> scopes_;
};

std::vector<RecordedScope> scopes_of(const analysis::Metadata& metadata, bool with_request) {
  if (metadata.start_monotonic_ns == 0 || metadata.start_monotonic_ns >= kMaxNs) {
    return {};
  }
  ScopeReader reader(metadata.start_monotonic_ns);
  if (const nlohmann::json& tree = member(*metadata.about, "timing");
      with_request && tree.is_object()) {
    reader.read(tree, RecordedScope::kNoParent, "");
  }
  if (metadata.scopes != nullptr) {
    for (const nlohmann::json& tree : *metadata.scopes) {
      reader.read(tree, RecordedScope::kNoParent, "");
    }
  }
  return reader.take();
}

// All scopes of one name that have the same names around them.
struct Sum {
  std::string name;
  std::size_t depth = 0;
  std::size_t times = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
  std::set<std::uint64_t> threads;
  std::vector<std::size_t> parts;
};

// The first sum holds all outermost ones.
std::vector<Sum> sums_of(const std::vector<RecordedScope>& scopes) {
  std::vector<Sum> sums(1);
  std::map<std::pair<std::size_t, std::string>, std::size_t>
      known;  // by the sum around it, and name
  std::vector<std::size_t> sum_of;
  for (const RecordedScope& scope : scopes) {
    const std::size_t around = scope.parent == RecordedScope::kNoParent ? 0 : sum_of[scope.parent];
    const auto [place, fresh] = known.try_emplace({around, scope.name}, sums.size());
    if (fresh) {
      sums[around].parts.push_back(place->second);
      const std::size_t depth = around == 0 ? 0 : sums[around].depth + 1;
      sums.push_back({.name = scope.name, .depth = depth, .threads = {}, .parts = {}});
    }
    sum_of.push_back(place->second);
    Sum& sum = sums[place->second];
    ++sum.times;
    sum.total_ns += scope.duration_ns;
    sum.longest_ns = std::max(sum.longest_ns, scope.duration_ns);
    sum.threads.insert(scope.thread);
  }
  return sums;
}

}  // namespace

std::vector<RecordedScope> scopes_of(const analysis::Metadata& metadata) {
  return scopes_of(metadata, true);
}

std::string scope_table(const analysis::Metadata& metadata) {
  const std::vector<Sum> sums = sums_of(scopes_of(metadata, false));
  Table table(
      {{"SCOPE", Table::Align::left}, {"times"}, {"total"}, {"mean"}, {"longest"}, {"threads"}});
  std::size_t left = sums.size() - 1;
  std::vector<std::size_t> next(sums[0].parts.rbegin(),
                                sums[0].parts.rend());  // the first one is last
  for (std::size_t line = 0; line < kMostLines && !next.empty(); ++line, --left) {
    const Sum& sum = sums[next.back()];
    next.pop_back();
    next.insert(next.end(), sum.parts.rbegin(), sum.parts.rend());
    const auto total = static_cast<double>(sum.total_ns);
    table.add({std::string(2 * sum.depth, ' ') + printable(sum.name), with_commas(sum.times),
               duration(total), duration(total / static_cast<double>(sum.times)),
               duration(static_cast<double>(sum.longest_ns)), with_commas(sum.threads.size())});
  }
  if (table.empty()) return {};
  std::string text = "\n" + table.str(0);
  if (left != 0) text += with_commas(left) + " more names of scopes: see --json\n";
  return text;
}

}  // namespace kymo::report
