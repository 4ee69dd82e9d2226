#include "checkpoint/criu/images/memory.h"

#include <gtest/gtest.h>

#include "checkpoint/criu/images/image_bytes.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/memory_shape.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

// Appends a field in protobuf's wire format: its number and a varint.
Body& put(Body& body, unsigned field, std::uint64_t value) {
  body.push_back(static_cast<std::uint8_t>(field << 3U));
  for (; value >= 0x80; value >>= 7U) {
    body.push_back(static_cast<std::uint8_t>(value | 0x80U));
  }
  body.push_back(static_cast<std::uint8_t>(value));
  return body;
}

Body& put(Body& body, unsigned field, const Body& inner) {
  body.push_back(static_cast<std::uint8_t>(field << 3U | 2U));
  // One byte of length is enough below 128.
  body.push_back(static_cast<std::uint8_t>(inner.size()));
  body.insert(body.end(), inner.begin(), inner.end());
  return body;
}

Body text(const std::string& characters) {
  return {characters.begin(), characters.end()};
}

struct PageEntry {
  std::uint64_t address;
  std::uint64_t pages;
  std::uint64_t flags;
};

ImageBytes pagemap(const std::vector<PageEntry>& runs, unsigned pages_field = 5) {
  Body head;
  ImageBytes image;
  image.word(kPagemapImage.family).word(kPagemapImage.magic).message(put(head, 1, 1));
  for (const PageEntry& run : runs) {
    Body entry;
    put(put(put(entry, 1, run.address), pages_field, run.pages), 4, run.flags);
    image.message(entry);
  }
  return image;
}

Body vma(std::uint64_t start, std::uint64_t end, std::uint64_t id, std::uint64_t status) {
  Body body;
  return put(put(put(put(body, 1, start), 2, end), 4, id), 7, status);
}

ImageBytes memory_map(const std::vector<Body>& vmas) {
  Body mm;
  for (const Body& one : vmas) {
    put(mm, 14, one);
  }
  return ImageBytes().word(kMmImage.family).word(kMmImage.magic).message(mm);
}

TEST(PagemapTest, RunsWithTheirStates) {
  const auto runs = parse_pagemap(
      pagemap({{0x1000, 2, 4}, {0x3000, 1, 1}, {0x9000, 7, 6}, {0x20000, 5, 0}}).bytes(), "p");
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ASSERT_EQ(runs->size(), 4U);
  EXPECT_EQ(runs->at(0).state, PageState::present);
  EXPECT_EQ(runs->at(1).state, PageState::in_parent);
  EXPECT_EQ(runs->at(2).state, PageState::lazy);
  EXPECT_EQ(runs->at(2).pages, 7U);
  EXPECT_EQ(runs->at(3).state, PageState::hole);
}

TEST(PagemapTest, OlderCriusCountPagesInAnotherField) {
  const auto runs = parse_pagemap(pagemap({{0x1000, 2, 4}}, 2).bytes(), "p");
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(runs->front().pages, 2U);
}

TEST(PagemapTest, RefusesRunsThatOverlapOrLeaveTheAddressSpace) {
  for (const auto& runs : std::vector<std::vector<PageEntry>>{{{0x1000, 2, 4}, {0x2000, 1, 4}},
                                                              {{0x9000, 1, 4}, {0x1000, 1, 4}},
                                                              {{0xfffffffffffff000U, 2, 4}}}) {
    const auto parsed = parse_pagemap(pagemap(runs).bytes(), "pagemap-1.img");
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().code, Code::data_loss);
    EXPECT_NE(parsed.error().message.find("pagemap-1.img"), std::string::npos);
  }
}

class ReadPages : public testing::Test {
 protected:
  void write(const std::string& name, const ImageBytes& image) const {
    folder_.file(name, image.text());
  }
  [[nodiscard]] CheckpointPages read() const {
    const auto images = ImageSet::open(folder_.path());
    EXPECT_TRUE(images.ok());
    return read_pages(*images);
  }
  test::TemporaryDirectory folder_;
};

TEST_F(ReadPages, EachPageGoesToItsMappingTheLargestFirst) {
  constexpr std::uint64_t kHeap = 1U << 5U;
  constexpr std::uint64_t kFile = 1U << 6U;
  write("pagemap-7.img", pagemap({{0x1000, 3, 4}, {0x10000, 4, 4}, {0x80000, 1, 4}}));
  // The first run of pages spans two mappings. The last one lies in no mapping.
  write("mm-7.img", memory_map({vma(0x1000, 0x2000, 9, kFile), vma(0x2000, 0x4000, 0, kHeap),
                                vma(0x10000, 0x20000, 0, 1)}));
  Body file;
  Body entry;
  put(put(file, 1, 9), 6, text("/bin/churn"));
  put(put(put(entry, 1, 1), 2, 9), 3, file);
  write("files.img", ImageBytes().word(kFilesImage.family).word(kFilesImage.magic).message(entry));
  Body task;
  Body core;
  put(core, 3, put(task, 6, text("churn")));
  write("core-7.img", ImageBytes().word(kCoreImage.family).word(kCoreImage.magic).message(core));

  const CheckpointPages pages = read();
  EXPECT_TRUE(pages.notes.empty());
  EXPECT_EQ(pages.pages.present, 8U);
  ASSERT_EQ(pages.processes.size(), 1U);
  const ProcessPages& process = pages.processes.front();
  EXPECT_EQ(process.pid, 7);
  EXPECT_EQ(process.command, "churn");
  ASSERT_EQ(process.mappings.size(), 4U);
  EXPECT_EQ(process.mappings[0].name, "[anonymous]");
  EXPECT_EQ(process.mappings[0].pages.present, 4U);
  EXPECT_EQ(process.mappings[1].name, "[heap]");
  EXPECT_EQ(process.mappings[1].pages.present, 2U);
  EXPECT_EQ(process.mappings[2].name, "/bin/churn");
  EXPECT_EQ(process.mappings[2].pages.present, 1U);
  EXPECT_EQ(process.mappings[3].name, "[unmapped]");
}

TEST(MappingsTest, MoreThanAProcessCanHaveAreRefusedUnparsed) {
  const auto with = [](std::size_t mappings) {
    std::vector<std::byte> image = ImageBytes()
                                       .word(kMmImage.family)
                                       .word(kMmImage.magic)
                                       .word(static_cast<std::uint32_t>(2 * mappings))
                                       .bytes();
    const std::size_t head = image.size();
    image.resize(head + 2 * mappings);
    for (std::size_t at = head; at < image.size(); at += 2) image[at] = std::byte{14U << 3U | 2U};
    return parse_mappings(image, "mm-7.img");
  };
  const auto most = with(1U << 20U);
  ASSERT_FALSE(most.ok());
  EXPECT_EQ(most.error().code, Code::invalid_argument)
      << "they are parsed, and refused because they have no addresses";
  const auto more = with((1U << 20U) + 1);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::out_of_range);
  EXPECT_EQ(more.error().message,
            "cannot read mm-7.img: more than 1048576 mappings are more than a process has");
}

TEST(PagemapTest, MoreRunsThanAnImageHasRoomForAreRefused) {
  std::vector<std::byte> image =
      ImageBytes().word(kPagemapImage.family).word(kPagemapImage.magic).bytes();
  image.resize(image.size() + 4 * (kMaxMessages + 1));  // each has the length 0
  const auto runs = parse_pagemap(image, "pagemap-7.img");
  ASSERT_FALSE(runs.ok());
  EXPECT_EQ(runs.error().code, Code::out_of_range) << runs.error().message;
}

TEST_F(ReadPages, AnImageWithAnInvalidPidIsLeftOut) {
  write("pagemap-7.img", pagemap({{0x1000, 1, 4}}));
  // This number is 7 if it is cut to 32 bits.
  write("pagemap-4294967303.img", pagemap({{0x1000, 1, 4}}));
  write("pagemap-.img", pagemap({{0x1000, 1, 4}}));
  const CheckpointPages pages = read();
  ASSERT_EQ(pages.processes.size(), 1U);
  EXPECT_EQ(pages.pages.present, 1U);
}

TEST_F(ReadPages, SharedMemoryIsCountedOnce) {
  write("pagemap-7.img", pagemap({{0x1000, 1, 4}}));
  write("mm-7.img", memory_map({vma(0x1000, 0x2000, 0, 1)}));
  write("pagemap-shmem-55.img", pagemap({{0, 100, 4}}));
  const CheckpointPages pages = read();
  ASSERT_EQ(pages.shared.size(), 1U);
  EXPECT_EQ(pages.shared.front().id, 55U);
  EXPECT_EQ(pages.pages.present, 101U);
}

TEST_F(ReadPages, WhatIsMissingOrDamagedIsANoteAndTheRestIsRead) {
  // Without the mm-7.img that describes the mappings.
  write("pagemap-7.img", pagemap({{0x1000, 1, 4}}));
  write("pagemap-8.img", ImageBytes().word(1).word(2));
  const CheckpointPages pages = read();
  ASSERT_EQ(pages.notes.size(), 2U);
  EXPECT_NE(pages.notes[0].find("mm-7.img"), std::string::npos);
  EXPECT_NE(pages.notes[1].find("pagemap-8.img"), std::string::npos);
  ASSERT_EQ(pages.processes.size(), 1U);
  EXPECT_EQ(pages.processes.front().pages.present, 1U);
}

TEST_F(ReadPages, TheShapeCountsMappingsAndRuns) {
  const auto shape = [&] { return memory_shape(*ImageSet::open(folder_.path())); };
  write("pagemap-7.img", pagemap({{0x1000, 3, 4}, {0x10000, 4, 4}, {0x80000, 9, 1}}));
  EXPECT_FALSE(shape()) << "without a memory map the mappings are not known";
  write("mm-7.img", memory_map({vma(0x1000, 0x2000, 0, 1), vma(0x10000, 0x20000, 0, 1)}));
  write("mm-8.img", memory_map({vma(0x1000, 0x2000, 0, 1)}));
  write("pagemap-shmem-55.img", pagemap({{0, 100, 6}}));
  ASSERT_TRUE(shape());
  EXPECT_EQ(shape()->processes, 2U);
  EXPECT_EQ(shape()->mappings, 3U);
  EXPECT_EQ(shape()->runs, 3U) << "pages of the parent image are not in this image";
  EXPECT_EQ(shape()->pages, 107U);
  EXPECT_EQ(shape()->files, 0U) << "there is no list of files";
  ImageBytes files;
  files.word(kFilesImage.family).word(kFilesImage.magic);
  for (const unsigned type : {1U, 1U, 2U, 4U, 5U}) {  // files, a pipe, and two kinds of sockets
    Body entry;
    files.message(put(put(entry, 1, type), 2, type));
  }
  write("files.img", files);
  EXPECT_EQ(shape()->files, 5U);
  EXPECT_EQ(shape()->sockets, 2U);
  write("pagemap-8.img", ImageBytes().word(1).word(2));
  EXPECT_FALSE(shape()) << "an unreadable image must not count as an empty one";
}

}  // namespace
}  // namespace kymo::criu
