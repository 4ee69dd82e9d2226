#include "checkpoint/criu/images/image_list.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "checkpoint/criu/images/faults.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;
using Faults = std::vector<std::string>;

constexpr const char* kOldFile = "checksums.xxh128";

class ImageListTest : public testing::Test {
 protected:
  ImageListTest() {
    folder_.file("a.img", "");
    folder_.file("core-7.img.zst", "compressed");
    folder_.file("pages-1.img", std::string(3'000'000, 'x'));
    folder_.folder("pre-1");  // a round of pre-dump
    folder_.file("pre-1/pagemap-7.img", "before");
    fs::create_directory_symlink("pre-1", path("parent"));
    folder_.file("descriptors.json", "runc's");
    folder_.file("dump.log", "CRIU's");
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] ImageList listed(Sums sums) const {
    return list_images(folder_.path(), sums).value();
  }
  [[nodiscard]] Compared compared(const ImageList& list, Sums sums = Sums::all) const {
    const Result<Compared> compared = compare_images(folder_.path(), list, sums);
    EXPECT_TRUE(compared.ok()) << compared.error().message;
    return compared ? *compared : Compared();
  }
  // The checksums of all files, as older versions wrote them.
  void write_old_file() const {
    const std::string write = "cd '" + folder_.path() + "' && find . -type f ! -name " + kOldFile +
                              " -printf '%P\\n' | sort | xargs xxh128sum > " + kOldFile;
    ASSERT_EQ(std::system(write.c_str()), 0);  // NOLINT(cert-env33-c): a test's own command
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ImageListTest, HasEachImageWithItsSizeAndTheChecksumOfTheTool) {
  const ImageList list = listed(Sums::small);
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].name, "a.img");
  EXPECT_EQ(list[0].bytes, 0U);
  // The published XXH3 value of an empty input (128 bits, seed 0), from xxHash's
  // tests/sanity_test_vectors.h.
  EXPECT_EQ(list[0].xxh128, "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(list[1].name, "core-7.img.zst");
  EXPECT_EQ(list[2].name, "pages-1.img");
  EXPECT_EQ(list[2].bytes, 3'000'000U);
  EXPECT_EQ(list[2].xxh128, "") << "pages are not read";
  EXPECT_EQ(list[3].name, "pre-1/pagemap-7.img");
  EXPECT_EQ(listed(Sums::all)[2].xxh128.size(), 32U);
  EXPECT_EQ(list_images(path("nowhere"), Sums::small).error().code, Code::not_found);
}

TEST_F(ImageListTest, WhatWasListedHasNoFault) {
  Compared seen = compared(listed(Sums::all));
  EXPECT_EQ(seen.faults, Faults());
  EXPECT_EQ(seen.images, 4U);
  EXPECT_EQ(seen.files, 4U);
  EXPECT_EQ(seen.bytes, 3'000'016U);
  EXPECT_TRUE(seen.pages);
  seen = compared(listed(Sums::all), Sums::small);
  EXPECT_EQ(seen.files, 3U);
  EXPECT_FALSE(seen.pages);
  EXPECT_FALSE(compared(listed(Sums::small)).pages);
}

TEST_F(ImageListTest, EachChangeOfAnImageIsAFault) {
  const ImageList list = listed(Sums::all);
  std::fstream(path("pages-1.img"), std::ios::in | std::ios::out).seekp(2'000'000) << 'y';
  EXPECT_EQ(compared(list).faults,
            Faults{"pages-1.img: it has changed since the dump: its checksum is different"});
  EXPECT_EQ(compared(list, Sums::small).faults, Faults());
  fs::resize_file(path("pages-1.img"), 2'999'999);
  EXPECT_EQ(compared(list, Sums::small).faults,
            Faults{"pages-1.img: it has 2999999 bytes, and had 3000000 at the dump"});
  fs::remove(path("pages-1.img"));
  EXPECT_EQ(compared(list, Sums::small).faults, Faults{"pages-1.img: it is missing"});
  folder_.file("pages-1.img", std::string(3'000'000, 'x'));
  EXPECT_EQ(compared(list).faults, Faults());
  fs::remove(path("pre-1/pagemap-7.img"));
  EXPECT_EQ(compared(list).faults, Faults{"pre-1/pagemap-7.img: it is missing"});
  fs::remove_all(path("pre-1"));
  EXPECT_EQ(compared(list).faults, Faults{"pre-1/pagemap-7.img: it is missing"});
}

TEST_F(ImageListTest, OnlyAnImageThatWasAddedIsAFault) {
  const ImageList list = listed(Sums::small);
  for (const char* harmless : {"restore.log", "stats-restore", "notes.txt", "kept.img.orig"}) {
    folder_.file(harmless, "x");
  }
  folder_.file("descriptors.json", "changed");
  fs::remove(path("dump.log"));
  folder_.folder("old");
  folder_.file("old/core-7.img", "a copy that nobody reads");
  EXPECT_EQ(compared(list).faults, Faults());
  for (const char* added : {"core-99999.img", "core-7.img", "x.img.lz4", "pre-1/core-7.img"}) {
    folder_.file(added, "x");
    EXPECT_EQ(compared(list).faults, Faults{std::string(added) + ": it was added since the dump"});
    fs::remove(path(added));
  }
}

TEST_F(ImageListTest, NoLinkAndNoPipeIsRead) {
  const ImageList list = listed(Sums::small);
  fs::remove(path("a.img"));
  const Faults no_file{"a.img: it is a link, a pipe or a device, and no file"};
  fs::create_symlink("/etc/passwd", path("a.img"));
  EXPECT_EQ(compared(list).faults, no_file);
  fs::remove(path("a.img"));
  ASSERT_EQ(mkfifo(path("a.img").c_str(), 0600), 0);
  EXPECT_EQ(compared(list).faults, no_file);
}

TEST_F(ImageListTest, AListThatLeadsOutOfItsFolderIsNotFollowed) {
  for (const char* name : {"/etc/passwd", "../outside.img", "pre-1/../../outside.img", ".."}) {
    const Faults faults = compared({{name, 1, std::string(32, '0')}}, Sums::small).faults;
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults.front().find("leads out of their folder"), std::string::npos) << name;
  }
  const ListedImage one{"a.img", 0, ""};
  EXPECT_NE(compared({one, one}).faults.front().find("twice"), std::string::npos);
}

TEST_F(ImageListTest, TheFileOfAnOlderVersionIsAList) {
  Faults damaged;
  EXPECT_EQ(read_checksums_file(folder_.path(), damaged).error().code, Code::not_found);
  write_old_file();
  const ImageList list = read_checksums_file(folder_.path(), damaged).value();
  EXPECT_EQ(list.size(), 6U) << "it has all files";
  const Compared seen = compared(list);
  EXPECT_EQ(seen.faults, Faults());
  EXPECT_EQ(seen.files, 6U);
  EXPECT_TRUE(seen.pages);
  fs::rename(path(kOldFile), path("list"));
  fs::create_symlink("list", path(kOldFile));
  EXPECT_EQ(read_checksums_file(folder_.path(), damaged).error().code, Code::permission_denied);
  EXPECT_EQ(damaged, Faults());
}

TEST_F(ImageListTest, ADamagedLineOfTheOldFileIsAFault) {
  const std::string hash(32, '0');
  for (const std::string& line :
       {std::string("x"), hash, hash + " a.img", hash + "  ", std::string(32, 'g') + "  b.img"}) {
    folder_.file(kOldFile, hash + "  a.img\n" + line + "\n");
    Faults damaged;
    EXPECT_EQ(read_checksums_file(folder_.path(), damaged).value().size(), 1U);
    EXPECT_EQ(damaged, Faults{"checksums.xxh128: line 2 is damaged"}) << line;
  }
}

TEST_F(ImageListTest, AListOfFaultsIsBounded) {
  folder_.file(kOldFile, std::string(1'000'000, '\n'));
  Faults damaged;
  EXPECT_TRUE(read_checksums_file(folder_.path(), damaged).value().empty());
  ASSERT_EQ(damaged.size(), kMaxFaults + 1);
  EXPECT_EQ(damaged.back(), "and more");
  ImageList list;
  for (int n = 0; n < 1000; ++n) list.push_back({"core-" + std::to_string(n) + ".img", 1, ""});
  EXPECT_EQ(compared(list).faults.size(), kMaxFaults + 1);
}

}  // namespace
}  // namespace kymo::criu
