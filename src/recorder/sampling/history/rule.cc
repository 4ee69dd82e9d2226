#include "recorder/sampling/history/rule.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/near_names.h"
#include "base/rate.h"

namespace kymo {

// Reads a rule from left to right; the first thing that does not fit is the error.
class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) { rule_.text_ = std::string(text); }

  Result<Rule> parse() {
    skip_spaces();
    rule_.rate_ = take("rate(");
    if (!take_column()) {
      return expected(rule_.rate_ ? "the name of a column"
                                  : "the name of a column, or rate(COLUMN)");
    }
    if (rule_.rate_ && take(",") && !take_time()) {
      return expected("a time from 1 ns to 1 h, such as 10ms");
    }
    if (rule_.rate_ && !take(")")) {
      return expected("')'");
    }
    if (!take_comparison()) {
      return expected("one of > >= < <=");
    }
    rule_.growth_ = take("+");
    if (rule_.growth_ && rule_.rate_) {
      at_ = last_;
      return expected("a number without +, since a rate is growth");
    }
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), rule_.limit_);
    if (error != std::errc()) {
      return expected("a whole number up to 18446744073709551615");
    }
    at_ += static_cast<std::size_t>(end - begin);
    skip_spaces();
    if (at_ != text_.size()) {
      return expected("the end");
    }
    return rule_;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) {
      return false;
    }
    last_ = at_;
    at_ += word.size();
    skip_spaces();
    return true;
  }
  bool take_column() {
    const auto name_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::size_t end = at_;
    while (end < text_.size() && name_part(text_[end])) {
      ++end;
    }
    if (end == at_) {
      return false;
    }
    if (end < text_.size() && text_[end] == '[') {
      end = text_.find(']', end);
      if (end == std::string_view::npos) {
        at_ = text_.size();
        return false;
      }
      ++end;
    }
    rule_.column_ = std::string(text_.substr(at_, end - at_));
    at_ = end;
    skip_spaces();
    return true;
  }
  bool take_time() {
    std::uint64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    const std::size_t at = at_;
    at_ += static_cast<std::size_t>(end - begin);
    for (const auto& [unit, ns] : {std::pair<const char*, std::uint64_t>{"ns", 1},
                                   {"us", 1'000},
                                   {"ms", 1'000'000},
                                   {"s", 1'000'000'000}}) {
      if (error != std::errc() || number == 0 || number > Rule::kMaxRateOverNs / ns) {
        continue;
      }
      if (take(unit)) {
        rule_.rate_over_ns_ = number * ns;
        return true;
      }
    }
    at_ = at;
    return false;
  }
  bool take_comparison() {
    using C = Rule::Comparison;
    for (const auto& [word, comparison] :
         {std::pair{">=", C::at_least}, {"<=", C::at_most}, {">", C::above}, {"<", C::below}}) {
      if (take(word)) {
        rule_.comparison_ = comparison;
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] Error expected(const std::string& what) const {
    return Error{Code::invalid_argument,
                 "rule '" + std::string(text_) + "', at character " + std::to_string(at_ + 1) +
                     ": expected " + what + ", as in 'frozen_time_us > 500000'",
                 0};
  }

  std::string_view text_;
  Rule rule_;
  std::size_t at_ = 0;
  std::size_t last_ = 0;  // beginning of the last word that was taken
};

namespace {

std::uint64_t whole_rate(std::uint64_t grown, std::uint64_t passed_ns) {
  constexpr double kMinTooLarge = 18446744073709551616.0;  // 2^64
  const double rate = rate_per_second(static_cast<double>(grown), passed_ns);
  return rate < kMinTooLarge ? static_cast<std::uint64_t>(rate) : UINT64_MAX;
}

}  // namespace

Result<Rule> Rule::parse(std::string_view text) {
  return RuleParser(text).parse();
}

Rule::Window::Window(std::uint64_t length_ns)
    : length_ns_(length_ns), step_ns_(length_ns / kSteps + 1) {
  if (length_ns != 0) {
    marks_.resize(kSteps + 2);  // those of the window, the one before it, and the new one
  }
}

std::optional<Rule::Window::Mark> Rule::Window::slide_to(const Mark& now) {
  if (empty_ || now.at_ns < marks_[newest_].at_ns) {  // no recording goes back in time
    empty_ = false;
    oldest_ = newest_;
    marks_[newest_] = now;
    return std::nullopt;
  }
  // Each mark is added once and dropped once, so this is one step a row on average.
  while (oldest_ != newest_ && now.at_ns - marks_[after(oldest_)].at_ns >= length_ns_) {
    oldest_ = after(oldest_);
  }
  const Mark from = marks_[oldest_];
  if (now.at_ns - marks_[newest_].at_ns >= step_ns_) {
    newest_ = after(newest_);
    marks_[newest_] = now;
  }
  return now.at_ns - from.at_ns >= length_ns_ ? std::optional(from) : std::nullopt;
}

Result<void> Rule::bind(const std::vector<Column>& columns, std::chrono::nanoseconds interval) {
  if (rate_) {
    // Half an interval less than whole intervals: rows are never exactly one interval apart.
    const auto interval_ns =
        static_cast<std::uint64_t>(std::max<std::int64_t>(interval.count(), 1));
    const std::uint64_t rows = (rate_over_ns_ + interval_ns - 1) / interval_ns;
    window_ = Window(rows * interval_ns - interval_ns / 2);
    rearm_ns_ = (rows + rows / 2) * interval_ns + interval_ns / 2;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column_) {
      index_ = i + 1;
      growth_ = growth_ || rate_ || columns[i].metric->kind == Kind::counter;
      return {};
    }
    names.push_back(columns[i].name);
  }
  return Error{
      Code::not_found,
      "rule '" + text_ + "': no column " + column_ + " is recorded" + did_you_mean(column_, names),
      0};
}

std::optional<std::uint64_t> Rule::operand(std::span<const std::uint64_t> row) {
  const std::uint64_t value = row[index_];
  if (!growth_) {
    return value;
  }
  if (rate_) {
    const std::optional<Window::Mark> from = window_.slide_to({row[0], value});
    if (!from) {
      return std::nullopt;
    }
    return whole_rate(value - std::min(value, from->value), row[0] - from->at_ns);
  }
  const bool first = !seen_;
  const std::uint64_t grown = value - std::min(value, before_);
  seen_ = true;
  before_ = value;
  return first ? std::nullopt : std::optional(grown);
}

bool Rule::holds(std::uint64_t value) const {
  switch (comparison_) {
    case Comparison::above:
      return value > limit_;
    case Comparison::at_least:
      return value >= limit_;
    case Comparison::below:
      return value < limit_;
    case Comparison::at_most:
      return value <= limit_;
  }
  return false;
}

void Rule::forget_rows() {
  seen_ = false;
  window_.clear();
}

bool Rule::fires_at(std::span<const std::uint64_t> row) {
  const std::optional<std::uint64_t> value = operand(row);
  if (!value) {
    return false;
  }
  if (holds(*value)) {
    held_ns_ = row[0];
    return std::exchange(armed_, false);
  }
  armed_ = armed_ || !rate_ || row[0] - held_ns_ >= rearm_ns_;
  return false;
}

}  // namespace kymo
