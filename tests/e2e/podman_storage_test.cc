// The storage of podman fails during a dump. podman writes there after CRIU has ended the container.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "programs.h"
#include "small_disk.h"
#include "support/breakable_criu.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kName[] = "kymo-storage";

class PodmanStorageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    KYMO_NEEDS_PODMAN();
    kymod_.emplace(std::vector<std::string>{"--podman-flags=" + flags_, "--criu", criu_.path()});
    kymod_->start();
    // The container counts once it has written to its /dev/shm.
    root_ = podman_.start(kName, {"/bin/sh", "-c",
                                  "dd if=/dev/urandom of=/dev/shm/x bs=1024 count=3000; ln "
                                  "/dev/shm/x /dev/shm/y; " +
                                      counting_loop()});
    static_cast<void>(kymod_->kymo_json({"adopt", "podman", kName, "--name", "job"}));
    shared_memory_ = shared_memory();
    ASSERT_EQ(shared_memory_.size(), 3'072'000U);
    const std::string id = podman_.podman("container inspect --format '{{.Id}}' kymo-storage");
    userdata_ = storage_ + "/overlay-containers/" + id.substr(0, id.find('\n')) + "/userdata";
    ASSERT_TRUE(fs::exists(userdata_)) << userdata_;
  }
  void TearDown() override { kymod_.reset(); }

  [[nodiscard]] std::string shared_memory() const {
    const json pid = kymod_->job("job")["pid"];
    return read_file("/proc/" + pid.dump() + "/root/dev/shm/x");
  }
  [[nodiscard]] Outcome dump(const std::string& directory) const {
    return kymod_->kymo({"dump", "podman", kName, "--dir", directory});
  }
  void expect_restored_with_shared_memory(const std::string& directory) const {
    const Outcome verified = kymod_->kymo({"verify", directory});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
    const Outcome restored = kymod_->kymo({"restore", directory});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(counts_on(root_));
    EXPECT_TRUE(shared_memory() == shared_memory_) << restored.err;
  }

  TemporaryDirectory folder_;
  const std::string storage_ = folder_.path() + "/storage";
  SmallDisk disk_{storage_, "size=60m,mode=700"};
  const std::string further_ = "--root " + storage_ + " --storage-driver overlay --runroot " +
                               folder_.path() + "/run --tmpdir " + folder_.path() +
                               "/tmp --events-backend file";
  const std::string flags_ = further_ + " " + PodmanContainers::flags();
  PodmanContainers podman_{further_};
  BreakableCriu criu_;
  std::optional<Kymod> kymod_;
  std::string root_;
  std::string userdata_;
  std::string shared_memory_;
};

// The archive of /dev/shm was cut off, and the checkpoint was complete without a word.
TEST_F(PodmanStorageTest, AFullStorageCostsTheContainerNothing) {
  for (const std::uintmax_t left : {0U, 65'536U, 1U << 20U}) {
    SCOPED_TRACE(left);
    disk_.fill();
    const std::string filling = storage_ + "/filling";
    fs::resize_file(filling, fs::file_size(filling) - left);
    const std::string directory = folder_.path() + "/c" + std::to_string(left);
    const Outcome dumped = dump(directory);
    disk_.empty();
    if (dumped.exit_code == 0) {
      expect_restored_with_shared_memory(directory);
    } else {
      EXPECT_TRUE(counts_on(root_)) << dumped.err;
      EXPECT_TRUE(shared_memory() == shared_memory_) << dumped.err;
    }
  }
}

// podman cannot write the archive. The processes are whole, so the checkpoint can be restored.
TEST_F(PodmanStorageTest, WithoutAnArchiveTheDumpSaysSoAndTheRestIsRestored) {
  const std::string archive = userdata_ + "/devshm-checkpoint.tar";
  criu_.let_do("ln -sfn /dev/full " + archive);
  const std::string directory = folder_.path() + "/c";
  const Outcome dumped = dump(directory);
  criu_.mend();
  fs::remove(archive);
  EXPECT_EQ(dumped.exit_code, 1);
  EXPECT_NE(dumped.err.find("the files of the container's /dev/shm could not be saved: "),
            std::string::npos)
      << dumped.err;
  ASSERT_TRUE(eventually([&] {
    return kymod_->kymo_json({"checkpoints"}).at(0)["state"] == "complete";
  })) << kymod_->log();
  const json listed = kymod_->kymo_json({"checkpoints"}).at(0);
  EXPECT_NE(
      listed["error"].get<std::string>().find("the files of the container's /dev/shm are lost"),
      std::string::npos)
      << listed;
  EXPECT_EQ(kymod_->job("job")["state"], "dumped");
  EXPECT_EQ(kymod_->kymo({"verify", directory}).exit_code, 1);
  const Outcome restored = kymod_->kymo({"restore", directory});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE(restored.err.find("the container's /dev/shm is empty, because "), std::string::npos)
      << restored.err;
  EXPECT_TRUE(counts_on(root_));
}

// The archive counted in no size, so neither --keep-bytes nor the forecast of the room knew of it.
TEST_F(PodmanStorageTest, TheArchiveIsAPartOfTheSize) {
  const json planned = kymod_->kymo_json({"check", "podman", kName});
  EXPECT_GE(planned["shared_memory_bytes"], shared_memory_.size());
  const std::string directory = folder_.path() + "/c";
  const json dumped = kymod_->kymo_json({"dump", "podman", kName, "--dir", directory});
  std::uintmax_t bytes = fs::file_size(fs::path(directory) / "work" / "devshm-checkpoint.tar");
  EXPECT_GE(bytes, shared_memory_.size());
  for (const auto& image : fs::directory_iterator(directory + "/images"))
    bytes += image.file_size();
  EXPECT_EQ(dumped["image_bytes"], bytes);
  EXPECT_EQ(kymod_->kymo_json({"checkpoints"}).at(0)["image_bytes"], bytes);
  EXPECT_GE(kymod_->kymo_json({"stats", directory})["image_bytes"], shared_memory_.size());
}

TEST_F(PodmanStorageTest, ACheckpointWithoutRoomForTheArchiveIsRefused) {
  const SmallDisk small(folder_.path() + "/small", "size=2m,mode=700");
  const Outcome refused = dump(folder_.path() + "/small/c");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("there is no room for its images: about "), std::string::npos)
      << refused.err;
  EXPECT_TRUE(counts_on(root_));
}

TEST_F(PodmanStorageTest, AnArchiveThatIsCutOffIsFoundAndTheRestIsRestored) {
  const std::string directory = folder_.path() + "/c";
  ASSERT_EQ(dump(directory).exit_code, 0);
  const std::string archive = directory + "/work/devshm-checkpoint.tar";
  for (const std::uintmax_t left : {1'000'000U, 0U}) {
    SCOPED_TRACE(left);
    const std::string whole = read_file(archive);
    fs::resize_file(archive, left);
    const std::string says = archive + " is cut off: it has " + std::to_string(left) + " bytes";
    const Outcome verified = kymod_->kymo({"verify", directory});
    EXPECT_EQ(verified.exit_code, 1);
    EXPECT_NE((verified.out + verified.err).find(says), std::string::npos) << verified.out;
    const Outcome checked = kymod_->kymo({"check", directory});
    EXPECT_EQ(checked.exit_code, 0) << "the processes can be restored";
    EXPECT_NE((checked.out + checked.err).find(says), std::string::npos) << checked.out;
    const Outcome restored = kymod_->kymo({"restore", directory});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_NE(restored.err.find("the container's /dev/shm is empty, because " + says),
              std::string::npos)
        << restored.err;
    EXPECT_TRUE(counts_on(root_));
    EXPECT_EQ(shared_memory(), "");
    static_cast<void>(podman_.podman("kill kymo-storage"));
    EXPECT_TRUE(eventually([&] { return podman_.status(kName) == "exited"; }));
    std::ofstream(archive) << whole;
  }
  expect_restored_with_shared_memory(directory);
}

}  // namespace
}  // namespace kymo::test
