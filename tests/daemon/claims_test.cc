#include "daemon/claims.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

TEST(ClaimsTest, AKeyIsHeldOnceUntilItsClaimIsGone) {
  Claims claims;
  {
    const Claims::Claim first = claims.claim("process:1");
    EXPECT_TRUE(first);
    EXPECT_FALSE(claims.claim("process:1"));
    EXPECT_TRUE(claims.claim("process:2"));
    EXPECT_FALSE(claims.claim("process:1")) << "a refused claim must release nothing";
  }
  EXPECT_TRUE(claims.claim("process:1"));
}

TEST(ClaimsTest, AMovedClaimIsReleasedOnce) {
  Claims claims;
  Claims::Claim kept;
  {
    Claims::Claim first = claims.claim("directory:/a");
    kept = std::move(first);
  }
  EXPECT_FALSE(claims.claim("directory:/a"));
  kept = Claims::Claim();
  EXPECT_TRUE(claims.claim("directory:/a"));
}

}  // namespace
}  // namespace kymo::daemon
