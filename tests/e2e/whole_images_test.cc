// Whatever is missing in a checkpoint of the real CRIU, is cut, has changed or was added: kymo verify, kymo check and
// kymo restore must say which image it is. CRIU itself takes a missing image for an empty one.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "forget_images.h"
#include "programs.h"
#include "support/containers.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// A program with a child, a pipe with bytes in it, shared memory and a filter of system calls. It counts.
constexpr const char* kProgram = R"(import ctypes, mmap, os, sys, time
shared = mmap.mmap(-1, 1 << 16)
ends = os.pipe()
os.write(ends[1], b"not read yet")
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.05)
        shared[0] = (shared[0] + 1) % 256
    os._exit(0)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
allow = (ctypes.c_uint64 * 1)(0x7FFF0000 << 32 | 6)
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(allow))))
for n in range(1000000):
    print(n, flush=True)
    time.sleep(0.02))";

// All files in a folder and below it, with their contents.
std::map<std::string, std::string> contents_of(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.is_regular_file()) contents[file.path()] = read_file(file.path());
  }
  return contents;
}

// A checkpoint whose images are damaged, one after the other.
class Damaged {
 public:
  Damaged(const Kymod& kymod, std::string checkpoint)
      : kymod_(kymod), checkpoint_(std::move(checkpoint)), before_(contents_of(images())) {}

  [[nodiscard]] std::string images() const { return checkpoint_ + "/images"; }
  // The names of all images. CRIU writes at least eight for any process.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [path, content] : before_) {
      const std::string name = fs::path(path).filename();
      if (name.find(".img") != std::string::npos) names.push_back(name);
    }
    EXPECT_GE(names.size(), 8U);
    return names;
  }

  // Removes each image, cuts all, changes all, and adds one.
  void sweep() const {
    std::set<std::string> kinds = {"fdinfo", "files", "fs", "ids", "seccomp", "timens"};
    for (const std::string& name : names()) {
      SCOPED_TRACE(name);
      fs::rename(images() + "/" + name, checkpoint_ + "/kept");
      const std::vector<std::string> missing{name + ": it is missing"};
      kinds.erase(kind_of(name)) != 0 ? expect_refused(missing) : expect_named(missing);
      fs::rename(checkpoint_ + "/kept", images() + "/" + name);
    }
    std::vector<std::string> cut;
    std::vector<std::string> changed;
    for (const std::string& name : names()) {
      const std::size_t bytes = before_.at(images() + "/" + name).size();
      fs::resize_file(images() + "/" + name, bytes - 1);
      cut.push_back(name + ": it has " + std::to_string(bytes - 1) + " bytes, and had " +
                    std::to_string(bytes) + " at the dump");
    }
    expect_refused(cut);
    for (const std::string& name : names()) {
      std::string content = before_.at(images() + "/" + name);
      if (!name.starts_with("pages-")) {
        content[content.size() / 2] = static_cast<char>(~content[content.size() / 2]);
        changed.push_back(name + ": it has changed since the dump");
      }
      write(images() + "/" + name, content);
    }
    expect_refused(changed);
    for (const auto& [path, content] : before_) write(path, content);
    write(images() + "/core-99999.img", "an image of no process");
    expect_refused({"core-99999.img: it was added since the dump"});
    const Outcome checked = kymod_.kymo({"check", checkpoint_});
    EXPECT_EQ(checked.exit_code, 1) << checked.out;
    EXPECT_NE(checked.out.find("core-99999.img"), std::string::npos) << checked.out;
    fs::remove(images() + "/core-99999.img");
    write(images() + "/notes.txt", "what is no image may be there");
    EXPECT_EQ(kymod_.kymo({"verify", checkpoint_}).exit_code, 0);
    fs::remove(images() + "/notes.txt");
  }

  // kymo verify says these faults, and no others.
  void expect_named(const std::vector<std::string>& faults) const {
    const Outcome seen = kymod_.kymo({"verify", checkpoint_, "--json"});
    EXPECT_EQ(seen.exit_code, 1) << seen.out;
    const nlohmann::json said = nlohmann::json::parse(seen.out, nullptr, false);
    ASSERT_TRUE(said.is_object()) << seen.out << seen.err;
    EXPECT_EQ(said["whole"], false);
    ASSERT_EQ(said["faults"].size(), faults.size()) << said.dump(1);
    for (std::size_t n = 0; n < faults.size(); ++n) {
      EXPECT_TRUE(said["faults"][n].get<std::string>().starts_with(faults[n])) << faults[n];
    }
  }

  // So does kymo restore, which starts nothing and changes nothing.
  void expect_refused(const std::vector<std::string>& faults) const {
    expect_named(faults);
    const std::string& fault = faults.front();
    const auto before = contents_of(checkpoint_);
    const Outcome refused = kymod_.kymo({"restore", checkpoint_});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("its images are damaged: " + fault), std::string::npos)
        << refused.err;
    EXPECT_EQ(contents_of(checkpoint_), before);
  }

  // Takes the list out of the record, as of a checkpoint of an older version.
  void forget_list() const { EXPECT_EQ(forget_images(checkpoint_).size(), names().size()); }

  // Without a list, an image that another one names is missed, but of these kinds none is named.
  void sweep_without_list(const std::set<std::string>& unnamed) const {
    const Outcome whole = kymod_.kymo({"verify", checkpoint_});
    EXPECT_EQ(whole.exit_code, 0) << whole.out;
    EXPECT_NE(whole.out.find("this checkpoint has no list of its images: only what they say of "
                             "each other was checked"),
              std::string::npos)
        << whole.out;
    for (const std::string& name : names()) {
      SCOPED_TRACE(name);
      const std::string path = images() + "/" + name;
      if (unnamed.contains(kind_of(name))) continue;
      fs::rename(path, checkpoint_ + "/kept");
      const Outcome seen = kymod_.kymo({"verify", checkpoint_});
      // A process may have had no file open.
      const bool cannot_tell = kind_of(name) == "fdinfo" && seen.exit_code == 3;
      EXPECT_TRUE(seen.exit_code == 1 || cannot_tell) << seen.exit_code << seen.out;
      EXPECT_NE(seen.out.find(name), std::string::npos) << seen.out;
      fs::rename(checkpoint_ + "/kept", path);
    }
  }

 private:
  // "core" of "core-7.img".
  static std::string kind_of(const std::string& name) {
    return name.substr(0, name.find_first_of("-."));
  }
  static void write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  const Kymod& kymod_;
  const std::string checkpoint_;
  const std::map<std::string, std::string> before_;
};

class WholeImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
    const nlohmann::json job = kymod_.kymo_json(
        {"run", "process", "--name", "web", "--", "/usr/bin/python3", "-c", kProgram});
    ASSERT_TRUE(
        eventually([&] { return read_file(job["stdout_path"]).find("9\n") != std::string::npos; }));
  }
  [[nodiscard]] Damaged dump(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"dump", "process", "web", "--dir", checkpoint_});
    const Outcome dumped = kymod_.kymo(flags);
    EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
    wait_until_recorded(checkpoint_, {"dump"});
    return {kymod_, checkpoint_};
  }
  void expect_restored() const {
    const Outcome restored = kymod_.kymo({"restore", checkpoint_});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    EXPECT_TRUE(kymod_.goes_on(kymod_.job("web")));
  }

  Kymod kymod_;
  const std::string checkpoint_ = kymod_.path("c");
};

// Without fdinfo-2.img, a process was "restored" that had no descriptor, and verify called the rest "whole".
TEST_F(WholeImagesTest, WhateverIsMissingCutChangedOrAddedIsNamedAndRefused) {
  dump({}).sweep();
  expect_restored();
}

TEST_F(WholeImagesTest, SoItIsInACompressedCheckpoint) {
  dump({"--compression", "zstd"}).sweep();
  expect_restored();
}

TEST_F(WholeImagesTest, WithoutAListWhatImagesNameIsMissed) {
  const Damaged damaged = dump({});
  damaged.forget_list();
  // The bytes in a pipe are named by nothing.
  damaged.sweep_without_list({"pipes"});
  // A checkpoint that kymod did not make, and one of an older version.
  const std::string copy = kymod_.path("copy");
  fs::copy(damaged.images(), copy);
  fs::remove_all(kymod_.path("copy/parent"));
  EXPECT_EQ(kymod_.kymo({"verify", copy}).exit_code, 0);
  expect_restored();
}

// CRIU writes no table of descriptors then: it must not be missed.
TEST_F(WholeImagesTest, AProcessThatHasNoFileOpenIsRestoredWithoutAList) {
  const nlohmann::json job = kymod_.kymo_json(
      {"run", "process", "--name", "closed", "--", "/usr/bin/python3", "-c",
       "import os, time\nprint('closes', flush=True)\nos.closerange(0, 1000)\ntime.sleep(1000)"});
  const std::string descriptors = "/proc/" + std::to_string(job["pid"].get<int>()) + "/fd";
  ASSERT_TRUE(eventually(
      [&] { return read_file(job["stdout_path"]) == "closes\n" && fs::is_empty(descriptors); }));
  ASSERT_EQ(kymod_.kymo({"dump", "process", "closed", "--dir", checkpoint_}).exit_code, 0);
  const Damaged dumped(kymod_, checkpoint_);
  dumped.forget_list();
  const Outcome seen = kymod_.kymo({"verify", checkpoint_});
  EXPECT_EQ(seen.exit_code, 3) << seen.out;
  EXPECT_NE(seen.out.find("it is missing, or process " + std::to_string(job["pid"].get<int>()) +
                          " had no file open"),
            std::string::npos)
      << seen.out;
  const Outcome checked = kymod_.kymo({"check", checkpoint_});
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(checked.out.find("had no file open"), std::string::npos) << checked.out;
  const Outcome restored = kymod_.kymo({"restore", checkpoint_});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE(restored.err.find("had no file open"), std::string::npos) << restored.err;
}

// Images that were copied alone have no list. Those in their place have one, whoever names them.
TEST_F(WholeImagesTest, TheFolderOfTheImagesIsHeldAgainstTheListAsWell) {
  const Damaged damaged = dump({});
  const std::string images = damaged.images();
  fs::create_directory_symlink(images, kymod_.path("link"));
  for (const std::string& path : {images, images + "/", kymod_.path("link")}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(kymod_.kymo_json({"verify", path})["listed_images"], damaged.names().size());
    fs::rename(images + "/seccomp.img", checkpoint_ + "/kept");
    for (const char* verb : {"verify", "check", "restore"}) {
      const Outcome seen = kymod_.kymo({verb, path});
      EXPECT_EQ(seen.exit_code, 1) << seen.out;
      EXPECT_NE((seen.out + seen.err).find("seccomp.img"), std::string::npos)
          << seen.out << seen.err;
    }
    fs::rename(checkpoint_ + "/kept", images + "/seccomp.img");
  }
}

// kymod was killed before it could write that the dump is complete.
TEST_F(WholeImagesTest, TheListIsWrittenBeforeTheImagesGetTheirName) {
  const Damaged damaged = dump({});
  EXPECT_EQ(kymod_.stop(SIGKILL), -1);
  const std::string path = checkpoint_ + "/checkpoint.json";
  nlohmann::json record = nlohmann::json::parse(read_file(path));
  record["state"] = "started";
  std::ofstream(path) << record;
  kymod_.start();
  fs::rename(damaged.images() + "/seccomp.img", checkpoint_ + "/kept");
  damaged.expect_refused({"seccomp.img: it is missing"});
}

class ContainerWholeImagesTest : public testing::Test {};

TEST_F(ContainerWholeImagesTest, OfRuncWhateverIsMissingCutChangedOrAddedIsNamedAndRefused) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = runc.start("kymo-whole");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string checkpoint = kymod.path("c");
  const Outcome dumped = kymod.kymo({"dump", "runc", "kymo-whole", "--dir", checkpoint});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  wait_until_recorded(checkpoint, {"dump"});
  const Damaged damaged(kymod, checkpoint);
  damaged.sweep();
  damaged.forget_list();
  damaged.sweep_without_list({"cgroup", "ipcns", "tmpfs", "netns", "pipes", "seccomp"});
  const Outcome restored = kymod.kymo({"restore", checkpoint});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

}  // namespace
}  // namespace kymo::test
