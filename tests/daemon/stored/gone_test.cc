#include "daemon/stored/gone.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

store::Checkpoint complete(const std::string& id, const std::string& directory) {
  store::Checkpoint checkpoint;
  checkpoint.id = id;
  checkpoint.directory = directory;
  checkpoint.state = store::CheckpointState::complete;
  return checkpoint;
}

TEST(FindGoneTest, NamesThoseThatWereMovedAndThoseWhosePlaceIsTaken) {
  const test::TemporaryDirectory folder;
  const std::string here = folder.folder("here");
  const std::string taken = folder.folder("taken");
  store::Checkpoint failed = complete("failed", folder.path() + "/never");
  failed.state = store::CheckpointState::failed;
  const auto gone = find_gone({complete("here", here), complete("moved", folder.path() + "/moved"),
                               complete("old", taken), complete("new", taken), failed});
  ASSERT_EQ(gone.size(), 2U);
  EXPECT_NE(gone.at("moved").find("its directory is gone"), std::string::npos);
  EXPECT_NE(gone.at("old").find("holds checkpoint new now"), std::string::npos);
}

TEST(FindGoneTest, EachOfSeveralLooksFindsWhatWasMoved) {
  const test::TemporaryDirectory folder;
  const std::vector<store::Checkpoint> moved{complete("moved", folder.path() + "/moved")};
  std::atomic<int> missed = 0;
  std::vector<std::jthread> callers(4);
  for (std::jthread& caller : callers) {
    caller = std::jthread([&] {
      for (int look = 0; look < 100; ++look) {
        if (find_gone(moved).size() != 1) ++missed;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace kymo::daemon
