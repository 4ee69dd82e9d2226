#include "daemon/state/restore_fate.h"

#include <gtest/gtest.h>

namespace kymo::daemon {
namespace {

using Programs = RestoreEvidence::Programs;
using Restored = RestoreEvidence::Process;

TEST(RestoreFateTest, OfOneThatNothingRestoresAnyMore) {
  EXPECT_EQ(decide({Programs::ended, Restored::runs}), RestoreFate::restored);
  EXPECT_EQ(decide({Programs::ended, Restored::none}), RestoreFate::failed);
  EXPECT_EQ(decide({Programs::ended, Restored::unknown}), RestoreFate::open);
}

// Between two programs of podman, containerd or Docker none of them is there.
TEST(RestoreFateTest, OfOneThatItsRuntimeMayGoOnWith) {
  EXPECT_EQ(decide({Programs::quiet, Restored::runs, 0}), RestoreFate::restored);
  EXPECT_EQ(decide({Programs::quiet, Restored::none, kQuietLooks - 1}), RestoreFate::open);
  EXPECT_EQ(decide({Programs::quiet, Restored::none, kQuietLooks}), RestoreFate::failed);
  EXPECT_EQ(decide({Programs::quiet, Restored::unknown, kQuietLooks}), RestoreFate::open);
}

TEST(RestoreFateTest, OfOneThatGoesOnOrMay) {
  for (const Programs programs : {Programs::go_on, Programs::unknown}) {
    for (const Restored process : {Restored::runs, Restored::none, Restored::unknown}) {
      EXPECT_EQ(decide({programs, process, kQuietLooks}), RestoreFate::open);
    }
  }
}

}  // namespace
}  // namespace kymo::daemon
