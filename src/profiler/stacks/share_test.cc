#include "profiler/stacks/share_test.h"

#include <math.h>  // lgamma_r(), which has no shared state

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/holm.h"

namespace kymo::stacks {
namespace {

// With a larger variance of the count, p comes from the normal distribution.
constexpr double kMaxExactVariance = 1e4;

double log_factorial(double n) {
  int sign = 0;
  return ::lgamma_r(n + 1, &sign);
}

double log_choose(double n, double k) {
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// How many of the function's samples lie in the second profile, if all samples are spread by
// chance: the hypergeometric distribution.
class Hypergeometric {
 public:
  Hypergeometric(SampleCounts part, SampleCounts all)
      : before_(static_cast<double>(all.before)),
        after_(static_cast<double>(all.after)),
        part_(static_cast<double>(part.before) + static_cast<double>(part.after)) {}

  [[nodiscard]] double lowest() const { return std::max(0.0, part_ - before_); }
  [[nodiscard]] double highest() const { return std::min(part_, after_); }
  [[nodiscard]] double mean() const { return part_ * after_ / (before_ + after_); }
  [[nodiscard]] double variance() const {
    const double all = before_ + after_;
    return all <= 1 ? 0 : mean() * (before_ / all) * ((all - part_) / (all - 1));
  }
  [[nodiscard]] double probability(double count) const {
    return std::exp(log_choose(after_, count) + log_choose(before_, part_ - count) -
                    log_choose(before_ + after_, part_));
  }
  // The probability of `count` and of all that are further from the mean on its side.
  [[nodiscard]] double tail(double count) const {
    constexpr double kNegligible = 1e-17;
    const bool up = count >= mean();
    double term = 1;
    double sum = 1;
    for (double at = count; up ? at < highest() : at > lowest(); at += up ? 1 : -1) {
      term *= up ? ratio_above(at) : 1 / ratio_above(at - 1);
      sum += term;
      if (term < kNegligible * sum) break;
    }
    return probability(count) * sum;
  }

 private:
  // The probability of count + 1 as a share of that of count.
  [[nodiscard]] double ratio_above(double count) const {
    return (after_ - count) * (part_ - count) / ((count + 1) * (before_ - part_ + count + 1));
  }

  double before_;
  double after_;
  double part_;
};

bool is_possible(SampleCounts part, SampleCounts all) {
  return part.before <= all.before && part.after <= all.after && all.before + all.after > 0;
}

}  // namespace

double fisher_p(SampleCounts part, SampleCounts all) {
  if (!is_possible(part, all)) return 1;
  const Hypergeometric spread(part, all);
  const auto count = static_cast<double>(part.after);
  if (spread.variance() <= kMaxExactVariance) return std::min(1.0, 2 * spread.tail(count));
  constexpr double kContinuity = 0.5;
  const double distance = std::max(0.0, std::abs(count - spread.mean()) - kContinuity);
  return std::erfc(distance / std::sqrt(2 * spread.variance()));
}

double lowest_fisher_p(SampleCounts part, SampleCounts all) {
  if (!is_possible(part, all)) return 1;
  const Hypergeometric spread(part, all);
  return std::min(
      1.0, 2 * std::min(spread.probability(spread.lowest()), spread.probability(spread.highest())));
}

std::vector<std::optional<ShareP>> test_shares(std::span<const SampleCounts> parts,
                                               SampleCounts all) {
  std::vector<std::size_t> tested;
  std::vector<double> p;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (lowest_fisher_p(parts[i], all) >= kShareLevel) continue;
    tested.push_back(i);
    p.push_back(fisher_p(parts[i], all));
  }
  const std::vector<double> adjusted = holm_adjusted(p);
  std::vector<std::optional<ShareP>> result(parts.size());
  for (std::size_t i = 0; i < tested.size(); ++i) result[tested[i]] = ShareP{p[i], adjusted[i]};
  return result;
}

}  // namespace kymo::stacks
