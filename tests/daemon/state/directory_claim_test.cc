#include "daemon/state/directory_claim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cut_short_fixture.h"
#include "daemon/recording/metrics.h"
#include "daemon/state/unconfirmed.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

TEST(DirectoryClaimTest, OneDirectoryIsClaimedOnceByWhateverLinkItIsNamed) {
  const test::TemporaryDirectory folder;
  const std::string real = folder.folder("c");
  const std::string link = folder.path() + "/link";
  const std::string other = folder.path() + "/other";
  fs::create_directory_symlink(real, link);
  fs::create_directory_symlink(link, other);
  const std::vector<std::string> names = {real, link, other, real + "/", folder.path() + "/./c"};
  Claims<std::string> claims;
  for (const std::string& held : names) {
    const DirectoryClaim first(claims, {held});
    ASSERT_TRUE(first) << held;
    for (const std::string& name : names) {
      EXPECT_FALSE(DirectoryClaim(claims, {name})) << name << " while " << held << " is claimed";
      EXPECT_FALSE(DirectoryClaim(claims, {folder.path() + "/free", name})) << name;
    }
    EXPECT_TRUE(DirectoryClaim(claims, {real + "/images"})) << "another directory";
    EXPECT_TRUE(DirectoryClaim(claims, {folder.path() + "/free"}))
        << "a refused claim holds nothing";
  }
}

// A dump makes its directory after it has claimed it.
TEST(DirectoryClaimTest, ADirectoryThatIsStillToBeMadeIsClaimedThroughALinkToo) {
  const test::TemporaryDirectory folder;
  const std::string real = folder.folder("checkpoints");
  const std::string link = folder.path() + "/link";
  fs::create_directory_symlink(real, link);
  Claims<std::string> claims;
  const DirectoryClaim dump(claims, {link + "/web/1"});
  EXPECT_TRUE(dump);
  EXPECT_FALSE(DirectoryClaim(claims, {real + "/web/1"}));
}

// A look at a dump must not wait for the disk of its images before it lets the process go.
TEST(DirectoryClaimTest, ADiskThatDoesNotAnswerHoldsUpNoLookAndNoRefusal) {
  const test::TemporaryDirectory folder;
  const test::MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  const std::string path = disk.path() + "/c";
  fs::create_directory(path);
  disk.be("is-silent");
  Claims<std::string> claims;
  {
    const DirectoryClaim look(claims, {path}, DirectoryClaim::SilentDisk::leave);
    EXPECT_TRUE(look);
    EXPECT_FALSE(DirectoryClaim(claims, {path})) << "refused without a look at the disk";
    EXPECT_EQ(real_directory(path), path);
  }
  disk.be("well");
  EXPECT_TRUE(DirectoryClaim(claims, {path}));
}

// The look took the images away from a restore that had named their directory through a link.
TEST_F(CutShort, IsNotLookedAtWhileARequestUsesItsDirectoryThroughALink) {
  const std::string link = folder_.path() + "/link";
  fs::create_directory_symlink(dir_.path(), link);
  start_job(true);
  begin_dump({"pages-1.img"});
  Claims<std::string> claims;
  const ForeignFiles foreign(*helper_);
  const std::unique_ptr<Metrics> metrics = Metrics::make().value();
  UnconfirmedDumps dumps(*store_, foreign, *metrics, claims,
                         [](runtime::Kind, const runtime::DumpSpec&) { return Result<void>(); });
  auto restore = std::make_unique<DirectoryClaim>(claims, std::set<std::string>{link});
  dumps.watch_all(std::chrono::minutes(1));  // returns after the first look
  EXPECT_EQ(store_->checkpoint(id_)->state, store::CheckpointState::started);
  EXPECT_TRUE(fs::exists(dir_.partial_images() + "/pages-1.img"));
  restore.reset();
  EXPECT_TRUE(test::eventually(
      [&] { return store_->checkpoint(id_)->state == store::CheckpointState::failed; }));
}

}  // namespace
}  // namespace kymo::daemon
