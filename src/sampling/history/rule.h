#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// A condition on the rows of a recording (docs/flight-recorder.md):
//
//   rule     = operand comparison [ "+" ] number
//   operand  = column | "rate(" column ")"
//   comparison = ">" / ">=" / "<" / "<="
//
// A gauge is compared by its value, a counter by its growth since the row before. A `+` says so
// explicitly; with it, a gauge is compared by its growth, too. A rate is compared by the growth per
// second over 100 ms.
//
// A rule fires when the condition becomes true. It fires again only after the condition was false
// in between.
//
// Threads: one at a time.
class Rule {
 public:
  static constexpr std::uint64_t kRateOverNs = 100'000'000;

  // Errors: invalid_argument with the position and what is expected there.
  static Result<Rule> parse(std::string_view text);

  // Looks the column up. Errors: not_found; the message lists similar names.
  Result<void> bind(const std::vector<Column>& columns);
  // Takes the next row, its time first. Returns true if the rule fires. Precondition: bound.
  bool fires_at(std::span<const std::uint64_t> row);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Comparison : std::uint8_t { above, at_least, below, at_most };
  friend class RuleParser;

  [[nodiscard]] std::optional<std::uint64_t> operand(std::span<const std::uint64_t> row);
  [[nodiscard]] bool holds(std::uint64_t value) const;

  std::string text_;
  std::string column_;
  bool rate_ = false;
  bool growth_ = false;
  Comparison comparison_ = Comparison::above;
  std::uint64_t limit_ = 0;

  std::size_t index_ = 0;  // in a row
  bool seen_ = false;
  std::uint64_t before_ = 0;     // the value that growth is counted from
  std::uint64_t before_ns_ = 0;  // and its time
  bool armed_ = true;
};

}  // namespace kymo
