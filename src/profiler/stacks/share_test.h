#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kymo::stacks {

// Whether a function has another share of the samples of one profile than of those of another.
//
// The test is R. A. Fisher's exact one. It is right for any number of samples, also for the few
// that most functions have, for which the z test of two proportions reports too many changes. For
// functions with tens of thousands of samples, p comes from the normal distribution with the same
// mean and variance, which differs there by less than matters. The test takes samples as
// independent of each other.

// Numbers of samples of the two profiles: all of them, or those that have a function.
struct SampleCounts {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// The two-sided p: twice the probability that as many samples of this function, spread by chance
// over all samples, differ at least as far in this direction. 1 if `part` is more than `all`.
double fisher_p(SampleCounts part, SampleCounts all);

// The lowest p that this number of samples can have, however they are spread over both profiles.
double lowest_fisher_p(SampleCounts part, SampleCounts all);

struct ShareP {
  double p = 1;
  double adjusted_p = 1;  // by Holm's correction
};

// A difference is beyond noise if its adjusted p is below this.
inline constexpr double kShareLevel = 0.05;

// Tests all functions of two profiles, and corrects for their number. Functions with so few samples
// that their p cannot be below kShareLevel are not tested, have no p, and do not count. Which ones
// these are depends on the number of samples in both profiles together, and not on their
// difference, so the correction stays right without them.
std::vector<std::optional<ShareP>> test_shares(std::span<const SampleCounts> parts,
                                               SampleCounts all);

}  // namespace kymo::stacks
