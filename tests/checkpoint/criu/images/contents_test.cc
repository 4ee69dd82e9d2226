#include "checkpoint/criu/images/contents.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "checkpoint/criu/images/image_codec.h"
#include "checkpoint/criu/images/verify.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

// Nothing can compress it, so that a changed byte is a changed byte of the image.
std::string noise(std::size_t bytes) {
  std::mt19937 random(7);
  std::string out(bytes, '\0');
  for (char& byte : out) byte = static_cast<char>(random());
  return out;
}

std::string packed(Compression compression, const std::string& bytes) {
  auto encoder = Encoder::make({compression, 0}).value();
  std::vector<char> out;
  EXPECT_TRUE(encoder->write(bytes, out).ok());
  EXPECT_TRUE(encoder->finish(out).ok());
  return {out.begin(), out.end()};
}

class ContentsTest : public testing::Test {
 protected:
  [[nodiscard]] static Contents read(const std::string& path) {
    const Result<ImageSet> images = ImageSet::open(path);
    EXPECT_TRUE(images.ok()) << images.error().message;
    return images ? read_contents(*images) : Contents();
  }
  [[nodiscard]] Contents read() const { return read(folder_.path()); }
  static void change_byte(const std::string& path, std::uintmax_t at) {
    std::fstream file(path, std::ios::in | std::ios::out);
    const int byte = file.seekg(static_cast<std::streamoff>(at)).get();
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte ^ 1));
  }

  static constexpr std::size_t kBytes = 300'000;
  test::TemporaryDirectory folder_;
};

TEST_F(ContentsTest, CompressedImagesAreComparedWithTheirChecksums) {
  folder_.file("pages-1.img.zst", packed(Compression::zstd, noise(kBytes)));
  folder_.file("pages-2.img.lz4", packed(Compression::lz4, noise(7)));
  folder_.file("pages-3.img", noise(8));
  const Contents seen = read();
  EXPECT_EQ(seen.faults, std::vector<std::string>());
  EXPECT_EQ(seen.sizes,
            (std::map<std::string, std::uint64_t>{{"pages-1.img", kBytes}, {"pages-2.img", 7}}));
  EXPECT_EQ(seen.compared, 2U);
  EXPECT_EQ(seen.without_sums, 0U);
  EXPECT_FALSE(seen.archive_compared.has_value());
}

TEST_F(ContentsTest, AChangedByteAndACutAreFound) {
  for (const Compression compression : {Compression::zstd, Compression::lz4}) {
    const std::string name = "pages-1.img" + std::string(suffix_of(compression));
    const std::string whole = packed(compression, noise(kBytes));
    for (const std::size_t at : {whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
      const std::string path = folder_.file(name, whole);
      change_byte(path, at);
      EXPECT_EQ(read().damaged, std::set<std::string>{"pages-1.img"}) << at;
      folder_.file(name, whole.substr(0, at));
      EXPECT_EQ(read().faults.size(), 1U) << at;
    }
    fs::remove(folder_.path() + "/" + name);
  }
}

TEST_F(ContentsTest, AnImageWithoutAChecksumIsSaidToHaveNone) {
  const std::string raw = folder_.file("raw", noise(kBytes));
  ASSERT_EQ(std::system(("zstd -q --no-check " + raw + " -o " + folder_.path() +
                         "/pages-1.img.zst && rm " + raw)
                            .c_str()),
            0);
  const Contents seen = read();
  EXPECT_EQ(seen.without_sums, 1U);
  EXPECT_EQ(seen.compared, 0U);
}

// libarchive does not compare the checksum of gzip, and did not read any archive to its end.
TEST_F(ContentsTest, AChangedByteOfACompressedArchiveIsFound) {
  const std::string images = folder_.folder("images");
  folder_.file("images/inventory.img", "x");
  folder_.file("images/pages-1.img", noise(kBytes));
  for (const char* flag : {"--gzip", "--zstd", "--xz", "--bzip2", ""}) {
    SCOPED_TRACE(flag);
    const std::string archive = folder_.path() + "/a.tar";
    ASSERT_EQ(std::system(("tar -C " + images + " " + flag + " -cf " + archive + " .").c_str()), 0);
    const Contents whole = read(archive);
    EXPECT_EQ(whole.faults, std::vector<std::string>());
    if (*flag == '\0') {
      EXPECT_FALSE(whole.archive_compared.has_value()) << "a tar archive has no checksum";
      continue;
    }
    EXPECT_EQ(whole.archive_compared, true);
    change_byte(archive, fs::file_size(archive) / 2);
    const Result<ImageSet> damaged = ImageSet::open(archive);
    EXPECT_TRUE(!damaged || !read_contents(*damaged).faults.empty());
  }
}

TEST_F(ContentsTest, CompressedImagesInAnArchiveAreReadAsWell) {
  const std::string images = folder_.folder("images");
  folder_.file("images/inventory.img", "x");
  const std::string pages =
      folder_.file("images/pages-1.img.zst", packed(Compression::zstd, noise(kBytes)));
  const std::string archive = folder_.path() + "/a.tar";
  const auto pack = [&] {
    ASSERT_EQ(std::system(("tar -C " + folder_.path() + " -cf " + archive + " images").c_str()), 0);
  };
  pack();
  EXPECT_EQ(read(archive).sizes["pages-1.img"], kBytes);
  change_byte(pages, 100'000);
  pack();
  EXPECT_EQ(read(archive).damaged, std::set<std::string>{"pages-1.img"});
}

}  // namespace
}  // namespace kymo::criu
