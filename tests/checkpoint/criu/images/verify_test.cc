#include "checkpoint/criu/images/verify.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_bytes.h"
#include "checkpoint/criu/images/images.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

// Images that are built by hand in protobuf's wire format: process 7 with thread 8, and process 9,
// which had ended. Three pages of process 7 are in pages-1.img, one is in the parent image.
class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    put("inventory.img", ImageBytes().word(0x58313116).message({0x08, 2}));
    put("pstree.img", head_of(kPstreeImage)
                          .message({0x08, 7, 0x10, 0, 0x18, 7, 0x20, 7, 0x28, 7, 0x28, 8})
                          // CRIU does not set the thread of a process that has ended.
                          .message({0x08, 9, 0x10, 7, 0x18, 7, 0x20, 7, 0x28, 0x7f}));
    for (const char* id : {"7", "8"}) put_core(id, 1);
    put_core("9", 2);
    put("fs-7.img", head_of(kFsImage).message({0x08, 1, 0x10, 1}));
    put("files.img", head_of(kFilesImage).message({0x08, 1, 0x10, 1}));
    put("mm-7.img", head_of(kMmImage).message({0x72, 4, 0x08, 1, 0x10, 9}));
    put("pagemap-7.img", head_of(kPagemapImage)
                             .message({0x08, 1})
                             .message({0x08, 0, 0x20, 4, 0x28, 2})
                             .message({0x08, 0x80, 0xc0, 1, 0x20, 4, 0x28, 1})
                             .message({0x08, 0x80, 0x80, 2, 0x20, 1, 0x28, 1}));
    put("pages-1.img", std::string(3 * 4096, 'p'));
    folder_.folder("parent");
    put("parent/pagemap-7.img", one_page());
    put("parent/pages-1.img", std::string(4096, 'p'));
  }
  [[nodiscard]] static ImageBytes one_page() {
    return head_of(kPagemapImage).message({0x08, 1}).message({0x08, 0, 0x20, 4, 0x28, 1});
  }
  void put(const std::string& name, std::string_view text) const { folder_.file(name, text); }
  void put(const std::string& name, const ImageBytes& image) const { put(name, image.text()); }
  void put_core(const std::string& id, std::uint8_t state) const {
    put("core-" + id + ".img", head_of(kCoreImage).message({0x1a, 2, 0x08, state}));
  }
  void remove(const std::string& name) const { fs::remove_all(folder_.path() + "/" + name); }
  [[nodiscard]] Verified verified(const KnownOfImages& known = {}) const {
    const Result<ImageSet> images = ImageSet::open(folder_.path());
    EXPECT_TRUE(images.ok()) << images.error().message;
    return images ? verify_images(*images, known).value() : Verified();
  }
  [[nodiscard]] Faults faults() const { return verified().faults; }

  test::TemporaryDirectory folder_;
};

// The tree names very many processes, and there is an image of none of them.
TEST_F(VerifyTest, AListOfFaultsIsBounded) {
  ImageBytes tree = head_of(kPstreeImage);
  for (int n = 0; n < 100'000; ++n) tree.message({0x08, 9, 0x10, 7, 0x18, 7, 0x20, 7, 0x28, 9});
  put("pstree.img", tree);
  remove("core-9.img");
  ASSERT_EQ(faults().size(), kMaxFaults + 1);
  EXPECT_EQ(faults().back(), "and more");
}

TEST_F(VerifyTest, WholeImagesHaveNoFault) {
  const Verified seen = verified();
  EXPECT_EQ(seen.faults, Faults());
  EXPECT_EQ(seen.tree.size(), 2U);
  EXPECT_EQ(seen.pages, 3U);
}

TEST_F(VerifyTest, EachMissingImageIsAFault) {
  for (const char* name : {"pstree.img", "core-7.img", "core-8.img", "core-9.img", "mm-7.img",
                           "pagemap-7.img", "inventory.img"}) {
    SCOPED_TRACE(name);
    const std::string kept = folder_.path() + "/kept";
    fs::rename(folder_.path() + "/" + name, kept);
    EXPECT_EQ(faults(), Faults{std::string(name) + ": it is missing"});
    fs::rename(kept, folder_.path() + "/" + name);
  }
}

TEST_F(VerifyTest, TheListOfTheDumpDecides) {
  const ImageList list = list_images(folder_.path(), Sums::small).value();
  const KnownOfImages known{nullptr, &list, Sums::small};
  EXPECT_EQ(verified(known).faults, Faults());
  EXPECT_EQ(verified(known).compared->images, list.size());
  put("seccomp.img", "nothing names it");
  EXPECT_EQ(faults(), Faults());
  EXPECT_EQ(verified(known).faults, Faults{"seccomp.img: it was added since the dump"});
  remove("seccomp.img");
  // What follows from it is not said as well.
  remove("pages-1.img");
  EXPECT_EQ(verified(known).faults, Faults{"pages-1.img: it is missing"});
  // A dump that was not whole is not, although nothing has changed since.
  const ImageList of_now = list_images(folder_.path(), Sums::small).value();
  EXPECT_EQ(verified({nullptr, &of_now, Sums::small}).faults,
            Faults{"pages-1.img: it is missing, and pagemap-7.img lists 3 pages in it"});
}

TEST_F(VerifyTest, AFileOfPagesMustHaveAsManyAsThePagemapLists) {
  put("pages-1.img", std::string(3 * 4096 - 1, 'p'));
  EXPECT_EQ(faults(), Faults{"pages-1.img: it has 12287 bytes, and pagemap-7.img lists 3 pages in "
                             "it, which are 12288"});
  put("pages-1.img", std::string(4 * 4096, 'p'));
  EXPECT_EQ(faults().size(), 1U);
  remove("pages-1.img");
  EXPECT_EQ(faults(), Faults{"pages-1.img: it is missing, and pagemap-7.img lists 3 pages in it"});
  put("pages-1.img.zst", "kept compressed: its size says nothing");
  EXPECT_EQ(faults(), Faults());
}

TEST_F(VerifyTest, APipeInPlaceOfAnImageIsAFault) {
  ASSERT_EQ(mkfifo((folder_.path() + "/sk-queues.img").c_str(), 0600), 0);
  EXPECT_EQ(faults(), Faults{"sk-queues.img: it is a pipe or a device, and no file"});
  remove("sk-queues.img");
  ASSERT_EQ(mkfifo((folder_.path() + "/parent/sk-queues.img").c_str(), 0600), 0);
  EXPECT_EQ(faults(), Faults{"parent/sk-queues.img: it is a pipe or a device, and no file"});
}

TEST_F(VerifyTest, PagesThatTheParentHoldsNeedTheParent) {
  remove("parent");
  EXPECT_EQ(faults(), Faults{"parent: it is missing, and pagemap-7.img refers to pages in it"});
}

// It was called whole, and CRIU then read for ever.
TEST_F(VerifyTest, PagesThatAreCutShortInAParentAreFound) {
  const ImageBytes of_its_parent =
      head_of(kPagemapImage).message({0x08, 1}).message({0x08, 0, 0x20, 1, 0x28, 1});
  folder_.folder("parent/parent");
  put("parent/pagemap-7.img", of_its_parent);
  put("parent/parent/pagemap-7.img", one_page());
  put("parent/parent/pages-1.img", std::string(4096, 'p'));
  EXPECT_EQ(faults(), Faults());
  put("parent/parent/pages-1.img", std::string(4095, 'p'));
  EXPECT_EQ(
      faults(),
      Faults{"parent/parent/pages-1.img: it has 4095 bytes, and pagemap-7.img lists 1 pages in it, "
             "which are 4096"});
  remove("parent/parent/pages-1.img");
  EXPECT_EQ(faults().size(), 1U);
  put("parent/parent/pages-1.img", std::string(4096, 'p'));
  remove("parent/parent/pagemap-7.img");
  EXPECT_EQ(
      faults(),
      Faults{
          "parent/parent/pagemap-7.img: it is missing, and a later image refers to pages in it"});
  remove("parent/parent/pages-1.img");
  EXPECT_EQ(
      faults(),
      Faults{"parent/parent/*: there are no images, and a later image refers to pages in them"});
}

TEST_F(VerifyTest, AnInventoryOfALaterFormatIsNotKnown) {
  put("inventory.img", ImageBytes().word(0x58313116).message({0x08, 3}));
  EXPECT_EQ(faults(), Faults{"inventory.img: its format is version 3, which this kymo does not "
                             "know"});
  put("inventory.img", "nonsense and more of it");
  EXPECT_EQ(faults(), Faults{"inventory.img: it is not an inventory of CRIU, or it is damaged"});
  put("inventory.img", "short");
  EXPECT_EQ(faults(), Faults{"inventory.img: it is cut short"});
}

TEST_F(VerifyTest, WhatIsDamagedIsNamed) {
  for (const char* name : {"pstree.img", "core-8.img", "mm-7.img", "pagemap-7.img"}) {
    SCOPED_TRACE(name);
    const std::string kept = folder_.path() + "/kept";
    fs::copy_file(folder_.path() + "/" + name, kept);
    put(name, "nonsense and more of it");
    const Faults found = faults();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found.front().find(name), std::string::npos) << found.front();
    remove(name);
    fs::rename(kept, folder_.path() + "/" + name);
  }
}

}  // namespace
}  // namespace kymo::criu
