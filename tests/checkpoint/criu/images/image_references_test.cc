#include "checkpoint/criu/images/image_references.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/criu/images/image_bytes.h"
#include "checkpoint/criu/images/images.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

// Images that are built by hand in protobuf's wire format: process 7 with thread 8 in namespaces of its own, and
// process 9, which had ended. Process 7 has the program 1, is in the directory 2 and has the files 3 and 4 open.
class ImageReferencesTest : public testing::Test {
 protected:
  ImageReferencesTest() {
    // CRIU's own namespaces have the numbers 1 to 5.
    put("inventory.img",
        ImageBytes().word(0x58313116).message({0x08, 2, 0x10, 1, 0x1a, 14, 0x08, 1, 0x10, 1,
                                               0x38, 1, 0x40, 2, 0x48, 3,  0x50, 4, 0x60, 5}));
    put_ids(11, 12, 13, 14, 15);
    for (const char* name : {"ipcns-var-11.img", "utsns-12.img", "mountpoints-13.img",
                             "userns-14.img", "timens-15.img", "pagemap-shmem-70.img"}) {
      put(name, "not read");
    }
    put_core("7", {0x1a, 2, 0x08, 1});
    put_core("8", {0x1a, 2, 0x08, 1});
    put_core("9", {0x1a, 2, 0x08, 6});
    put("fs-7.img", head_of(kFsImage).message({0x08, 2, 0x10, 2}));
    put("mm-7.img", head_of(kMmImage).message(
                        {0x60, 1,                                                  //
                         0x72, 9, 0x08, 1,  0x10, 9,  0x20, 5,  0x38, 0xc1, 0,     // file 5
                         0x72, 9, 0x08, 10, 0x10, 12, 0x20, 70, 0x38, 0x81, 2}));  // shared
    put("fdinfo-6.img", head_of(kFdinfoImage)
                            .message({0x08, 3, 0x10, 0, 0x18, 1, 0x20, 0})
                            .message({0x08, 4, 0x10, 0, 0x18, 2, 0x20, 1}));
    put_files({1, 2, 3, 4, 5});
  }
  void put(const std::string& name, std::string_view text) const { folder_.file(name, text); }
  void put(const std::string& name, const ImageBytes& image) const { put(name, image.text()); }
  void put_core(const std::string& id, const Body& body) const {
    put("core-" + id + ".img", head_of(kCoreImage).message(body));
  }
  void put_ids(std::uint8_t ipc, std::uint8_t uts, std::uint8_t mnt, std::uint8_t user,
               std::uint8_t time) const {
    put("ids-7.img", head_of(kIdsImage).message({0x08, 1, 0x10, 6, 0x38, ipc, 0x40, uts, 0x48, mnt,
                                                 0x50, user, 0x60, time}));
  }
  void put_files(const std::vector<std::uint8_t>& ids) const {
    ImageBytes files = head_of(kFilesImage);
    for (const std::uint8_t id : ids) files.message({0x08, 1, 0x10, id});
    put("files.img", files);
  }
  void remove(const std::string& name) const { fs::remove(folder_.path() + "/" + name); }
  [[nodiscard]] References references() const {
    const Result<ImageSet> images = ImageSet::open(folder_.path());
    EXPECT_TRUE(images.ok()) << images.error().message;
    return check_references(*images, {{7, 0, 7, 7, {7, 8}}, {9, 7, 7, 7, {}}});
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ImageReferencesTest, WholeImagesHaveNoFault) {
  const References seen = references();
  EXPECT_EQ(seen.faults, Faults());
  EXPECT_EQ(seen.unknown, Faults());
}

// A process was restored without descriptors.
TEST_F(ImageReferencesTest, EachImageThatAnotherOneNamesMustBeThere) {
  for (const char* name :
       {"ids-7.img", "fs-7.img", "fdinfo-6.img", "files.img", "ipcns-var-11.img", "utsns-12.img",
        "mountpoints-13.img", "userns-14.img", "timens-15.img", "pagemap-shmem-70.img"}) {
    SCOPED_TRACE(name);
    const std::string kept = folder_.path() + "/kept";
    fs::rename(folder_.path() + "/" + name, kept);
    const References seen = references();
    ASSERT_EQ(seen.faults.size(), 1U);
    EXPECT_TRUE(seen.faults.front().starts_with(std::string(name) + ": it is missing"))
        << seen.faults.front();
    EXPECT_EQ(seen.unknown, Faults());
    fs::rename(kept, folder_.path() + "/" + name);
  }
}

// CRIU writes no table of a process that has closed all its files.
TEST_F(ImageReferencesTest, ATableWithoutFilesMayBeMissing) {
  remove("fdinfo-6.img");
  EXPECT_EQ(references().faults,
            Faults{"fdinfo-6.img: it is missing, and files.img has 2 files that no other image "
                   "names"});
  put_files({1, 2, 5});
  const References seen = references();
  EXPECT_EQ(seen.faults, Faults());
  EXPECT_EQ(seen.unknown, Faults{"fdinfo-6.img: it is missing, or process 7 had no file open"});
}

TEST_F(ImageReferencesTest, AFileThatIsNamedMustBeInTheImageOfFiles) {
  put_files({1, 3, 4, 5});
  EXPECT_EQ(references().faults.front(), "files.img: it has no file 2, which fs-7.img names");
  put_files({2, 3, 4, 5});
  EXPECT_EQ(references().faults, Faults{"files.img: it has no file 1, which mm-7.img names"});
  put_files({1, 2, 4, 5});
  EXPECT_EQ(references().faults, Faults{"files.img: it has no file 3, which fdinfo-6.img names"});
  // As CRIU wrote it before it had an image of all files.
  remove("files.img");
  put("reg-files.img", "not read");
  EXPECT_EQ(references().faults, Faults());
}

TEST_F(ImageReferencesTest, AFileInMemoryMustBeThereWithItsPages) {
  ImageBytes files = head_of(kFilesImage);
  for (const std::uint8_t id : Body{1, 2, 3, 4, 5}) files.message({0x08, 18, 0x10, id});
  put("files.img", files);
  EXPECT_EQ(references().faults, Faults{"memfd.img: it is missing, and files.img names it"});
  put("memfd.img", head_of(kMemoryFilesImage)
                       .message({0x0a, 0, 0x10, 0, 0x18, 0, 0x20, 8, 0x28, 71, 0x30, 0, 0x38, 1})
                       .message({0x0a, 0, 0x10, 0, 0x18, 0, 0x20, 0, 0x28, 72, 0x30, 0, 0x38, 2}));
  EXPECT_EQ(references().faults,
            Faults{"pagemap-shmem-71.img: it is missing, and memfd.img names it"})
      << "an empty file has no pages";
  put("pagemap-shmem-71.img", "not read");
  EXPECT_EQ(references().faults, Faults());
}

TEST_F(ImageReferencesTest, AFilterOfSystemCallsMustBeThere) {
  for (const Body& filtered : {Body{0x1a, 4, 0x08, 1, 0x58, 2},              // of the process
                               Body{0x1a, 2, 0x08, 1, 0x2a, 2, 0x58, 2}}) {  // of the thread
    put_core("8", filtered);
    EXPECT_EQ(references().faults, Faults{"seccomp.img: it is missing, and core-8.img names it"});
    put("seccomp.img", "not read");
    EXPECT_EQ(references().faults, Faults());
    remove("seccomp.img");
  }
}

TEST_F(ImageReferencesTest, TheNamespacesOfTheMachineAreInNoImage) {
  for (const char* name : {"ipcns-var-11.img", "utsns-12.img", "mountpoints-13.img",
                           "userns-14.img", "timens-15.img"}) {
    remove(name);
  }
  put_ids(1, 2, 3, 4, 5);
  EXPECT_EQ(references().faults, Faults{"timens-0.img: it is missing, and ids-7.img names it"});
  put("timens-0.img", "the clocks of the machine");
  EXPECT_EQ(references().faults, Faults());
}

TEST_F(ImageReferencesTest, WhatIsDamagedIsNamed) {
  for (const char* name : {"ids-7.img", "fs-7.img", "fdinfo-6.img", "files.img"}) {
    SCOPED_TRACE(name);
    const std::string kept = folder_.path() + "/kept";
    fs::copy_file(folder_.path() + "/" + name, kept);
    put(name, "nonsense and more of it");
    const Faults faults = references().faults;
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults.front().find(name), std::string::npos) << faults.front();
    remove(name);
    fs::rename(kept, folder_.path() + "/" + name);
  }
}

}  // namespace
}  // namespace kymo::criu
