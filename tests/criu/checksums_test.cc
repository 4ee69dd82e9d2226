#include "criu/checksums.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "criu/faults.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

class ChecksumsTest : public testing::Test {
 protected:
  ChecksumsTest() {
    folder_.file("a.img", "");
    folder_.file("pages-1.img", std::string(3'000'000, 'x'));
    folder_.folder("pre-1");  // a round of pre-dump
    folder_.file("pre-1/pages-1.img", "before");
    fs::create_directory_symlink("pre-1", path("parent"));
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] std::vector<std::string> faults() const {
    const Result<Compared> compared = compare_checksums(folder_.path());
    EXPECT_TRUE(compared.ok()) << compared.error().message;
    return compared ? compared->faults : std::vector<std::string>();
  }
  void write() { ASSERT_TRUE(write_checksums(folder_.path()).ok()); }

  test::TemporaryDirectory folder_;
};

TEST_F(ChecksumsTest, AreThoseOfTheTool) {
  write();
  const std::string list = read_file(path(kChecksumsFile)).value();
  // The published XXH3 value of an empty input (128 bits, seed 0), from xxHash's
  // tests/sanity_test_vectors.h.
  EXPECT_TRUE(list.starts_with("99aa06d3014798d86001c324468d497f  a.img\n")) << list;
  const std::string check = "cd '" + folder_.path() + "' && xxh128sum --quiet -c " + kChecksumsFile;
  EXPECT_EQ(std::system(check.c_str()), 0);  // NOLINT(cert-env33-c): a test's own command
}

TEST_F(ChecksumsTest, WhatWasWrittenHasNoFault) {
  write();
  const Result<Compared> compared = compare_checksums(folder_.path());
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_EQ(compared->faults, std::vector<std::string>());
  EXPECT_EQ(compared->files, 3U);
  EXPECT_EQ(compared->bytes, 3'000'006U);
}

TEST_F(ChecksumsTest, EachChangeIsAFault) {
  write();
  std::fstream(path("pages-1.img"), std::ios::in | std::ios::out).seekp(2'000'000) << 'y';
  EXPECT_EQ(faults(), std::vector<std::string>{
                          "pages-1.img: has changed since the dump: its checksum is different"});
  fs::remove(path("pages-1.img"));
  EXPECT_EQ(faults(), std::vector<std::string>{"pages-1.img: is missing"});
  write();
  fs::remove(path("pre-1/pages-1.img"));
  EXPECT_EQ(faults(), std::vector<std::string>{"pre-1/pages-1.img: is missing"});
  write();
  folder_.file("new.img", "x");
  EXPECT_EQ(faults(),
            std::vector<std::string>{"new.img: has no checksum: it was added since the dump"});
}

TEST_F(ChecksumsTest, AListThatIsDamagedIsAFaultAndLeadsNowhere) {
  write();
  const std::string list = read_file(path(kChecksumsFile)).value();
  const std::string hash(32, '0');
  for (const std::string& line :
       {std::string("x"), hash, hash + " a.img", hash + "  ", hash + "  ../../etc/passwd",
        hash + "  ..", std::string(32, 'g') + "  b.img", std::string("")}) {
    folder_.file(kChecksumsFile, list + line + "\n");
    EXPECT_EQ(faults(), std::vector<std::string>{"checksums.xxh128: line 4 is damaged"}) << line;
  }
}

// Before the fix, a list that had only line ends took gigabytes of memory.
TEST_F(ChecksumsTest, AListOfFaultsIsBounded) {
  folder_.file(kChecksumsFile, std::string(1'000'000, '\n'));
  ASSERT_EQ(faults().size(), kMaxFaults + 1);
  EXPECT_EQ(faults().back(), "and more");
}

TEST_F(ChecksumsTest, WithoutAListThereIsNothingToCompare) {
  EXPECT_EQ(compare_checksums(folder_.path()).error().code, Code::not_found);
  EXPECT_EQ(write_checksums(path("nowhere")).error().code, Code::not_found);
}

TEST_F(ChecksumsTest, NoLinkAndNoPipeIsRead) {
  write();
  fs::remove(path("a.img"));
  fs::create_symlink("/etc/passwd", path("a.img"));
  EXPECT_EQ(faults(), std::vector<std::string>{"a.img: is missing"});
  fs::rename(path(kChecksumsFile), path("list"));
  fs::create_symlink("list", path(kChecksumsFile));
  EXPECT_EQ(compare_checksums(folder_.path()).error().code, Code::permission_denied);
}

}  // namespace
}  // namespace kymo::criu
