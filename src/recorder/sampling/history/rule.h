#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo {

// A condition on the rows of a recording (docs/record.md):
//
//   rule     = operand comparison [ "+" ] number
//   operand  = column | "rate(" column [ "," time ] ")"
//   time     = number ( "ns" | "us" | "ms" | "s" ), at most an hour
//   comparison = ">" / ">=" / "<" / "<="
//
// A gauge is compared by its value, a counter by its growth since the row before. A `+` says so
// explicitly; with it, a gauge is compared by its growth, too. A rate is compared in each row by
// the growth per second over the last 100 ms, or over the time that the rule gives, or since the row
// before if that is older.
//
// A rule fires when the condition becomes true. It fires again only after the condition was false
// in between. For a rate, it must have been false for one and a half windows, or for two rows if they are
// a window apart or more: while the window slides over single jumps of a counter, the rate changes in
// almost every row, and one jump changes it for the length of the window.
//
// Threads: one at a time.
// Memory:  for a rate, the rows of its window, at most 17 KiB; allocated by bind().
// Cost:    a few nanoseconds a row (bench/rule).
class Rule {
 public:
  static constexpr std::uint64_t kRateOverNs = 100'000'000;  // if the rule gives no time
  static constexpr std::uint64_t kMaxRateOverNs = 3'600'000'000'000;

  // Errors: invalid_argument with the position and what is expected there.
  static Result<Rule> parse(std::string_view text);

  // Looks the column up. `interval` is the time between two rows.
  // Errors: not_found; the message lists similar names.
  Result<void> bind(const std::vector<Column>& columns, std::chrono::nanoseconds interval);
  // Takes the next row, its time first. Returns true if the rule fires. Precondition: bound.
  bool fires_at(std::span<const std::uint64_t> row);
  // The program stood still before the next row: growth is counted from this row on.
  void forget_rows();

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Comparison : std::uint8_t { above, at_least, below, at_most };
  friend class RuleParser;

  // Rows from which a rate is counted, in fixed memory. At short intervals these are not all rows,
  // but one for each 1024th of the window.
  class Window {
   public:
    struct Mark {
      std::uint64_t at_ns = 0;
      std::uint64_t value = 0;
    };
    // Rows at least `length_ns` old are old enough to count from.
    explicit Window(std::uint64_t length_ns = 0);
    // Adds a row. Returns the newest one that was old enough then, if there is one.
    std::optional<Mark> slide_to(const Mark& now);
    void clear() { empty_ = true; }

   private:
    static constexpr std::uint64_t kSteps = 1024;
    [[nodiscard]] std::size_t after(std::size_t place) const {
      return place + 1 == marks_.size() ? 0 : place + 1;
    }

    std::uint64_t length_ns_;
    std::uint64_t step_ns_;
    std::vector<Mark> marks_;  // a circle
    std::size_t oldest_ = 0;
    std::size_t newest_ = 0;
    bool empty_ = true;
  };

  [[nodiscard]] std::optional<std::uint64_t> operand(std::span<const std::uint64_t> row);
  [[nodiscard]] bool holds(std::uint64_t value) const;

  std::string text_;
  std::string column_;
  bool rate_ = false;
  std::uint64_t rate_over_ns_ = kRateOverNs;
  bool growth_ = false;
  Comparison comparison_ = Comparison::above;
  std::uint64_t limit_ = 0;

  std::size_t index_ = 0;  // in a row
  bool seen_ = false;
  std::uint64_t before_ = 0;  // the value that growth from row to row is counted from
  Window window_;             // of a rate
  // How long the condition of a rate must have been false. It is between two rows, and half a window
  // longer than one jump can take, so that rows which are early or late decide nothing.
  std::uint64_t rearm_ns_ = 0;
  std::uint64_t held_ns_ = 0;  // when the condition was last true
  bool armed_ = true;
};

}  // namespace kymo
