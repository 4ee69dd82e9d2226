#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "recorder/metrics/metric_rules.h"
#include "recorder/sampling/history/rule.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

std::vector<Column> columns() {
  std::vector<Column> columns =
      columns_of({"dumps", "", Kind::counter, Unit::count, {{"result", {"ok", "error"}}}});
  columns.push_back(columns_of({"phase", "", Kind::gauge, Unit::count, {}}).front());
  return columns;
}

}  // namespace

// The bytes are a line with the rule, then rows of a time and three values.
void rule(Bytes data) {
  const std::string text = text_of(data);
  const std::size_t end = std::min(text.find('\n'), text.size());
  Result<Rule> rule = Rule::parse(text.substr(0, end));
  if (!rule) {
    require(!rule.error().message.empty(), "an error says something");
    return;
  }
  require(Rule::parse(rule->text()).ok(), "a rule's own text is a rule");
  if (!rule->bind(columns(), std::chrono::milliseconds(1))) {
    return;
  }
  std::array<std::uint64_t, 4> row{};
  bool fired = false;
  for (std::size_t at = end + 1; at + sizeof row <= text.size(); at += sizeof row) {
    std::memcpy(row.data(), text.data() + at, sizeof row);
    const bool fires = rule->fires_at(row);
    require(!fires || !fired, "between two times that it fires a rule is false");
    fired = fires;
  }
}

}  // namespace kymo::fuzz
