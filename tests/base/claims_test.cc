#include "base/claims.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace kymo {
namespace {

TEST(ClaimsTest, AKeyIsHeldOnceUntilItsClaimIsGone) {
  Claims<std::string> claims;
  {
    const auto first = claims.claim("process:1");
    EXPECT_TRUE(first);
    EXPECT_FALSE(claims.claim("process:1"));
    EXPECT_TRUE(claims.claim("process:2"));
    EXPECT_FALSE(claims.claim("process:1")) << "a refused claim must release nothing";
  }
  EXPECT_TRUE(claims.claim("process:1"));
}

TEST(ClaimsTest, AMovedClaimIsReleasedOnce) {
  Claims<std::string> claims;
  Claims<std::string>::Claim kept;
  {
    auto first = claims.claim("directory:/a");
    kept = std::move(first);
  }
  EXPECT_FALSE(claims.claim("directory:/a"));
  kept = {};
  EXPECT_TRUE(claims.claim("directory:/a"));
}

// A thread that waits for a slow disk may release its claim after the Claims object is gone.
TEST(ClaimsTest, AClaimMayOutliveItsClaims) {
  auto claims = std::make_unique<Claims<int>>();
  auto kept = claims->claim(1);
  claims.reset();
  EXPECT_TRUE(kept);
  kept = {};
  EXPECT_FALSE(kept);
}

TEST(ClaimsTest, ManyKeysAreHeldAllOrNone) {
  Claims<int> claims;
  {
    const auto both = claims.claim_all({1, 2});
    EXPECT_TRUE(both);
    EXPECT_FALSE(claims.claim_all({2, 3}));
    EXPECT_TRUE(claims.claim(3)) << "a refused claim must hold nothing";
    EXPECT_FALSE(claims.claim(1));
  }
  EXPECT_TRUE(claims.claim_all({1, 2, 3}));
}

}  // namespace
}  // namespace kymo
