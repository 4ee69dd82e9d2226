#include "base/holm.h"

#include <gtest/gtest.h>

#include <vector>

namespace kymo {
namespace {

TEST(Holm, AgreesWithAnExampleMadeByHand) {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
  const std::vector<double> adjusted = holm_adjusted(p);
  const std::vector<double> wanted{0.03, 0.06, 0.06, 0.02};
  ASSERT_EQ(adjusted.size(), wanted.size());
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(adjusted[i], wanted[i], 1e-12);
  EXPECT_TRUE(holm_adjusted({}).empty());
}

}  // namespace
}  // namespace kymo
