// Checkpoints of the real CRIU. kymo must call complete ones complete, and must refuse to restore a
// damaged one before it starts.

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/proc/process.h"
#include "programs.h"
#include "support/containers.h"
#include "support/moody_disk.h"
#include "support/real_criu.h"
#include "support/slow_mount.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

class VerifyCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    static_cast<void>(kymod_.churn(8, "web"));
  }
  void dump(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"dump", "process", "web", "--dir", checkpoint_});
    const Outcome dumped = kymod_.kymo(flags);
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  }
  // Runs verify, expects this exit code, and returns its JSON.
  nlohmann::json verify(int exit_code) {
    const Outcome seen = kymod_.kymo({"verify", checkpoint_, "--json"});
    EXPECT_EQ(seen.exit_code, exit_code) << seen.err << seen.out;
    return nlohmann::json::parse(seen.out, nullptr, false);
  }
  // The line with which a restore is refused. Expects that nothing runs and nothing was written.
  std::string refusal() {
    const Outcome refused = kymod_.kymo({"restore", checkpoint_});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_EQ(kymod_.job("web")["state"], "dumped");
    EXPECT_FALSE(fs::exists(checkpoint_ + "/recordings/restore.tsv"));
    return refused.err;
  }
  // The HTTP status of /healthz.
  [[nodiscard]] std::string health() const {
    return run({"curl", "--silent", "--max-time", "60", "--output", "/dev/null", "--write-out",
                "%{http_code}", "http://" + kymod_.http() + "/healthz"})
        .out;
  }
  // The largest file of memory pages, or the file that holds it (compressed).
  std::string pages() {
    std::string largest;
    for (const auto& entry : fs::directory_iterator(checkpoint_ + "/images")) {
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    return largest;
  }

  Kymod kymod_;
  std::string checkpoint_ = kymod_.path("c");
};

TEST_F(VerifyCheckpointTest, AFolderWithTheNameOfAJobIsNotRestoredInItsPlace) {
  dump({});
  const std::string before = fs::current_path();
  wait_until_recorded(checkpoint_, {"dump"});
  fs::create_directories(kymod_.path("elsewhere"));
  fs::copy(checkpoint_, kymod_.path("elsewhere/web"), fs::copy_options::recursive);
  fs::current_path(kymod_.path("elsewhere"));
  const nlohmann::json restored = kymod_.kymo_json({"restore", "web"});
  fs::current_path(before);
  EXPECT_EQ(restored["directory"], checkpoint_);
  EXPECT_EQ(restored["job"], "web");
}

TEST_F(VerifyCheckpointTest, AFileWithTheNameOfAJobDoesNotHideIt) {
  dump({});
  const std::string before = fs::current_path();
  wait_until_recorded(checkpoint_, {"dump"});
  fs::create_directories(kymod_.path("elsewhere"));
  std::ofstream(kymod_.path("elsewhere/web")) << "#!/bin/sh\n";
  fs::current_path(kymod_.path("elsewhere"));
  const Outcome explained = kymod_.kymo({"explain", "web"});
  const nlohmann::json restored = kymod_.kymo_json({"restore", "web"});
  fs::current_path(before);
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(restored["directory"], checkpoint_);
}

// The disk became full after the images were complete. The process had ended.
TEST_F(VerifyCheckpointTest, ARecordThatCouldNotBeWrittenAtTheEndMakesNoImagesUseless) {
  dump({});
  nlohmann::json record = nlohmann::json::parse(read_file(checkpoint_ + "/checkpoint.json"));
  ASSERT_EQ(record["state"], "complete");
  record["state"] = "started";  // as it is before the dump
  std::ofstream(checkpoint_ + "/checkpoint.json") << record;
  fs::rename(checkpoint_ + "/images", checkpoint_ + "/images.partial");
  EXPECT_NE(refusal().find("its dump has not ended"), std::string::npos);
  fs::rename(checkpoint_ + "/images.partial", checkpoint_ + "/images");
  EXPECT_EQ(verify(0)["whole"], true);
  EXPECT_EQ(kymod_.kymo({"restore", checkpoint_}).exit_code, 0);
  EXPECT_TRUE(kymod_.goes_on(kymod_.job("web")));
}

TEST_F(VerifyCheckpointTest, WhatIsInThePlaceOfTheLogIsNotWrittenTo) {
  dump({});
  const std::string log = checkpoint_ + "/work/restore.log";
  const std::string precious = kymod_.path("precious");
  std::ofstream(precious) << "precious";
  fs::create_hard_link(precious, log);
  static_cast<void>(kymod_.kymo_json({"restore", checkpoint_}));
  EXPECT_EQ(read_file(precious), "precious");
}

TEST_F(VerifyCheckpointTest, WholeOnesAreCalledWholeAndRestored) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{},
                                             {"--checksums"},
                                             {"--stream", "--checksums"},
                                             {"--stream", "--compression", "zstd"},
                                             {"--stream", "--compression", "lz4", "--checksums"}}) {
    SCOPED_TRACE(flags.empty() ? "" : flags.back());
    dump(flags);
    const nlohmann::json seen = verify(0);
    EXPECT_EQ(seen["faults"], nlohmann::json::array());
    EXPECT_EQ(seen["processes"], 1);
    EXPECT_GE(seen["pages"], 8 * 256);
    const bool wanted = !flags.empty() && flags.back() == "--checksums";
    EXPECT_EQ(seen["checksums"]["pages"], wanted);
    const Outcome restored = kymod_.kymo({"restore", checkpoint_});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    checkpoint_ += "c";  // kymod still writes the recording into the other one
  }
}

// A zombie has no memory, and CRIU leaves the number of its thread unset.
TEST_F(VerifyCheckpointTest, AProcessThatHasEndedAndIsNotWaitedForIsNoFault) {
  constexpr const char* kParent = R"(import os, time
child = os.fork()
if child == 0: os._exit(3)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("ready", flush=True)
time.sleep(1000))";
  const nlohmann::json job = kymod_.kymo_json(
      {"run", "process", "--name", "parent", "--", "/usr/bin/python3", "-c", kParent});
  ASSERT_TRUE(eventually([&] { return read_file(job["stdout_path"]) == "ready\n"; }));
  const Outcome dumped = kymod_.kymo({"dump", "process", "parent", "--dir", checkpoint_});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const nlohmann::json seen = verify(0);
  EXPECT_EQ(seen["faults"], nlohmann::json::array());
  EXPECT_EQ(seen["processes"], 2);
  const Outcome restored = kymod_.kymo({"restore", checkpoint_});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
}

TEST_F(VerifyCheckpointTest, AGoodArchiveWasCalledDamaged) {
  dump({"--checksums"});
  const std::string images = checkpoint_ + "/images";
  const std::string work = checkpoint_;
  checkpoint_ = kymod_.path("a.tar.gz");
  // Once with the images in a folder, once at the top of the archive.
  for (const std::string& from : {work, images}) {
    const Outcome packed =
        run({"tar", "-C", from, "--exclude", "recordings", "-czf", checkpoint_, "."});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    const nlohmann::json seen = verify(0);
    EXPECT_EQ(seen["faults"], nlohmann::json::array()) << from;
    EXPECT_EQ(seen["processes"], 1);
    EXPECT_TRUE(seen["checksums"].is_null()) << "checksums of an archive are not compared";
  }
}

TEST_F(VerifyCheckpointTest, ACheckpointThatWasCutShortIsRefused) {
  dump({});
  fs::resize_file(pages(), fs::file_size(pages()) - 4096);
  EXPECT_EQ(verify(1)["faults"].size(), 1U);
  EXPECT_NE(refusal().find("its images are damaged: pages-"), std::string::npos);
}

TEST_F(VerifyCheckpointTest, AChangedByteIsFoundByTheChecksumsAndRefused) {
  dump({"--checksums"});
  const std::string changed = pages();
  std::fstream file(changed, std::ios::in | std::ios::out);
  const int byte = file.seekg(100'000).get();
  file.seekp(100'000).put(static_cast<char>(~byte));
  file.close();
  EXPECT_EQ(verify(1)["faults"].size(), 1U);
  EXPECT_NE(
      refusal().find(fs::path(changed).filename().string() + ": it has changed since the dump"),
      std::string::npos);
}

// Changes a byte in the middle of a file.
void change_middle_of(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  const int byte = file.seekg(middle).get();
  file.seekp(middle).put(static_cast<char>(~byte));
}

TEST_F(VerifyCheckpointTest, AChangedByteOfACompressedImageIsFoundByTheChecksumInIt) {
  for (const char* compression : {"zstd", "lz4"}) {
    SCOPED_TRACE(compression);
    dump({"--leave-running", "--compression", compression});
    const nlohmann::json whole = verify(0);
    EXPECT_GT(whole["compressed_images"]["compared"], 5);
    EXPECT_EQ(whole["compressed_images"]["without_checksum"], 0);
    const std::string changed = pages();
    change_middle_of(changed);
    const nlohmann::json damaged = verify(1);
    ASSERT_EQ(damaged["faults"].size(), 1U) << damaged;
    EXPECT_TRUE(damaged["faults"][0].get<std::string>().starts_with(
        fs::path(changed).stem().string() + ": it cannot be decompressed"))
        << damaged;
    fs::resize_file(changed, fs::file_size(changed) / 2);
    EXPECT_EQ(verify(1)["faults"].size(), 1U) << "it was cut";
    checkpoint_ += "c";  // kymod still writes the recording into the other one
  }
}

TEST_F(VerifyCheckpointTest, ARestoreThatIsRefusedSaysEverywhereThatTheImagesAreDamaged) {
  dump({});
  fs::resize_file(pages(), fs::file_size(pages()) - 4096);
  const std::string error = refusal();
  const std::string metrics = run({"curl", "-s", "http://" + kymod_.http() + "/metrics"}).out;
  for (const char* line :
       {"kymo_restores_total{result=\"error\"} 0\n", "kymo_restores_total{result=\"refused\"} 1\n",
        "kymo_refusals_total{request=\"restore\",reason=\"damaged-images\"} 1\n",
        "kymo_refused_in_a_row{request=\"restore\",target=\"job:web\"} 1\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
  EXPECT_EQ(metrics.find("kymo_failures_total"), std::string::npos);
  const nlohmann::json history = kymod_.kymo_json({"history", "web", "--restores"});
  ASSERT_EQ(history["runs"].size(), 1U) << history;
  EXPECT_EQ(history["runs"][0]["refused"], true);
  EXPECT_EQ(history["runs"][0]["failure"], "damaged-images");
  EXPECT_NE(error.find(history["runs"][0]["error"].get<std::string>()), std::string::npos);
  for (const char* verb : {"explain", "inspect"}) {
    const Outcome told = kymod_.kymo({verb, "web"});
    EXPECT_EQ(told.exit_code, 0) << told.err;
    EXPECT_NE(told.out.find("newest restore was refused"), std::string::npos) << told.out;
    EXPECT_NE(told.out.find("its images are damaged"), std::string::npos) << told.out;
  }
  // The alert for it says that the history names the directory. It named none.
  EXPECT_EQ(history["runs"][0]["directory"], checkpoint_);
  // The restore of a copy was refused, and no history had it.
  const std::string copy = kymod_.path("copy");
  fs::copy(checkpoint_, copy, fs::copy_options::recursive);
  EXPECT_EQ(kymod_.kymo({"restore", copy}).exit_code, 1);
  const Outcome text = kymod_.kymo({"history", "web", "--restores"});
  EXPECT_NE(text.out.find(checkpoint_), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("the newest was refused: restore " + copy + ": its images are damaged"),
            std::string::npos)
      << text.out;
}

// The images can be from any user, while root runs kymo.
TEST_F(VerifyCheckpointTest, ImagesAreReadInAProcessWithoutRights) {
  dump({"--checksums"});
  const TemporaryDirectory folder;
  const std::string slow = folder.folder("slow");
  const SlowMount reads(checkpoint_, slow, "8M", SlowMount::Slow::reading);
  ASSERT_TRUE(reads.mounted());
  Outcome seen;
  std::atomic<bool> over{false};
  std::thread client([&] {  // again and again, until the test has seen the process that reads
    do seen = kymod_.kymo({"verify", slow});
    while (!over);
  });
  std::string status;
  EXPECT_TRUE(eventually(
      [&] { return !(status = status_of_reader(slow + "/images/pages-1.img")).empty(); }));
  over = true;
  client.join();
  EXPECT_TRUE(has_no_rights(status)) << status;
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_NE(seen.out.find("were compared with their checksums"), std::string::npos) << seen.out;
}

TEST_F(VerifyCheckpointTest, WithoutItsReaderKymodReadsNothingForeignAndSaysSo) {
  dump({});
  const std::vector<pid_t> readers = probe::children_of(kymod_.pid()).value();
  for (const pid_t child : readers) kill(child, SIGKILL);
  EXPECT_NE(refusal().find("(kymod-reader) is gone: restart kymod"), std::string::npos);
  EXPECT_EQ(health(), "503");
  EXPECT_EQ(kymod_.stop(SIGTERM), 0);
  kymod_.start();
  EXPECT_EQ(kymod_.kymo({"restore", checkpoint_}).exit_code, 0);
}

TEST_F(VerifyCheckpointTest, AReaderThatStandsStillHoldsUpNoRequestForGood) {
  dump({});  // kymod has no other child
  const std::vector<pid_t> readers = probe::children_of(kymod_.pid()).value();
  for (const pid_t child : readers) kill(child, SIGSTOP);
  EXPECT_EQ(health(), "429");
  for (const pid_t child : readers) kill(child, SIGCONT);
  EXPECT_EQ(health(), "200");
}

TEST_F(VerifyCheckpointTest, WhatIsNoCheckpointIsNotCalledWhole) {
  for (const std::string& target : {kymod_.path("none"), kymod_.state()}) {
    const Outcome seen = kymod_.kymo({"verify", target});
    EXPECT_EQ(seen.exit_code, 1) << target;
    EXPECT_NE(seen.err.find(target), std::string::npos) << seen.err;
  }
}

// verify must call a container's checkpoint with checksums complete. After a byte was changed, it is
// damaged and must not be restored. After the byte was corrected, it must be restored.
void expect_verified(const Kymod& kymod, const std::string& kind, const std::string& container) {
  const std::string checkpoint = kymod.path("c");
  const Outcome dumped = kymod.kymo({"dump", kind, container, "--checksums", "--dir", checkpoint});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const auto change = [&] {
    std::fstream file(checkpoint + "/images/pages-1.img", std::ios::in | std::ios::out);
    const int byte = file.seekg(100).get();
    file.seekp(100).put(static_cast<char>(~byte));
  };
  const nlohmann::json whole = kymod.kymo_json({"verify", checkpoint, "--json"});
  EXPECT_EQ(whole["faults"], nlohmann::json::array());
  EXPECT_GT(whole["checksums"]["files"], 10);
  change();
  EXPECT_EQ(kymod.kymo({"verify", checkpoint}).exit_code, 1);
  const Outcome refused = kymod.kymo({"restore", checkpoint});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("pages-1.img: it has changed since the dump"), std::string::npos)
      << refused.err;
  change();
  const Outcome restored = kymod.kymo({"restore", checkpoint});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
}

TEST(ContainersVerifyTest, OneOfRuncIsVerifiedBeforeItIsRestored) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  expect_verified(kymod, "runc", "kymo-web");
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainersVerifyTest, OneOfPodmanIsVerifiedBeforeItIsRestored) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  expect_verified(kymod, "podman", "kymo-e2e");
  EXPECT_TRUE(counts_on(root));
}

TEST_F(VerifyCheckpointTest, AFolderWithoutItsRecordIsNotCalledWhole) {
  dump({});
  fs::remove(checkpoint_ + "/checkpoint.json");
  const nlohmann::json seen = verify(1);
  EXPECT_NE(seen["faults"].dump().find("checkpoint.json is missing"), std::string::npos)
      << seen.dump(1);
  EXPECT_NE(
      refusal().find("its checkpoint.json is missing: kymo restore " + checkpoint_ + "/images"),
      std::string::npos);
  checkpoint_ += "/images";
  EXPECT_TRUE(verify(0)["whole"].get<bool>());
}

// The images were durable, but neither checkpoint.json nor the final name of their folder: a power failure after the
// answer could lose both.
TEST_F(VerifyCheckpointTest, AfterADumpWithSyncTheRecordAndAllNamesAreOnTheirDisk) {
  const TemporaryDirectory folder;
  const MoodyDisk disk(folder);
  ASSERT_TRUE(disk.mounted()) << "FUSE does not work here";
  checkpoint_ = disk.path() + "/c";
  dump({"--sync"});
  const std::string synced = disk.synced();
  EXPECT_NE(synced.find("/c/images.partial/inventory.img\n"), std::string::npos) << synced;
  const std::size_t record = synced.find("/c/checkpoint.json\n");
  ASSERT_NE(record, std::string::npos) << synced;
  EXPECT_NE(synced.find("/c\n", record), std::string::npos) << synced;
}

}  // namespace
}  // namespace kymo::test
