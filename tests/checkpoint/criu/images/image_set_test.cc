#include "checkpoint/criu/images/image_set.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/criu/images/images.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

struct Member {
  std::string name;
  std::string content;
  std::string link_to;
};

// A small version of what podman's `container checkpoint --export` writes.
const std::vector<Member> kExported = {{"config.dump", "{}", ""},
                                       {"stats-dump", "statistics", ""},
                                       {"dump.log", "(00.1) a\n(00.2) b\n", ""},
                                       {"checkpoint/inventory.img", "inventory", ""},
                                       {"checkpoint/pages-1.img", std::string(100'000, 'x'), ""}};

std::string make_archive(const test::TemporaryDirectory& folder, const std::vector<Member>& members,
                         int (*filter)(archive*)) {
  std::string path = folder.path() + "/exported.tar";
  archive* a = archive_write_new();
  filter(a);
  archive_write_set_format_pax_restricted(a);
  EXPECT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
  for (const Member& member : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_perm(entry, 0600);
    if (member.link_to.empty()) {
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
    } else {
      archive_entry_set_filetype(entry, AE_IFLNK);
      archive_entry_set_symlink(entry, member.link_to.c_str());
    }
    EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
    archive_write_data(a, member.content.data(), member.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(a);
  archive_write_free(a);
  return path;
}

std::string text_of(const Result<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : bytes.error().message;
}

TEST(ImageSetTest, AnArchiveIsReadWhateverItIsCompressedWith) {
  for (const auto filter : {archive_write_add_filter_none, archive_write_add_filter_gzip,
                            archive_write_add_filter_zstd}) {
    const test::TemporaryDirectory folder;
    const std::string path = make_archive(folder, kExported, filter);
    const auto set = ImageSet::open(path);
    ASSERT_TRUE(set.ok()) << set.error().message;
    EXPECT_EQ(set->image_files(), 2U);
    EXPECT_EQ(set->image_bytes(), 100'009U);
    EXPECT_EQ(text_of(set->read("stats-dump")), "statistics");
    EXPECT_EQ(text_of(set->read("dump.log")), "(00.1) a\n(00.2) b\n");
    EXPECT_EQ(set->where("inventory.img"), path + ":checkpoint/inventory.img");
    EXPECT_TRUE(set->left_out().empty());
  }
}

TEST(ImageSetTest, AnArchiveCutShortAndAFileThatIsNoArchiveAreRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = make_archive(folder, kExported, archive_write_add_filter_gzip);
  for (const std::uintmax_t bytes : {fs::file_size(path) / 2, std::uintmax_t{20}}) {
    fs::resize_file(path, bytes);
    const auto set = ImageSet::open(path);
    ASSERT_FALSE(set.ok());
    EXPECT_NE(set.error().message.find(path), std::string::npos) << set.error().message;
  }
  const auto foreign = ImageSet::open(folder.file("note.txt", "no archive at all"));
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().code, Code::invalid_argument) << foreign.error().message;
}

TEST(ImageSetTest, LinksAndNamesThatLeaveTheArchiveAreLeftOut) {
  std::vector<Member> members = kExported;
  members.push_back({"../../stats-restore", "hostile", ""});
  members.push_back({"/etc/stats-restore", "hostile", ""});
  members.push_back({"checkpoint/pstree.img", "", "/etc/passwd"});
  const test::TemporaryDirectory folder;
  const auto set = ImageSet::open(make_archive(folder, members, archive_write_add_filter_none));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_FALSE(set->has("stats-restore"));
  EXPECT_FALSE(set->has("pstree.img"));
  EXPECT_EQ(set->left_out(),
            (std::vector<std::string>{"../../stats-restore: leads out of the archive",
                                      "/etc/stats-restore: leads out of the archive",
                                      "checkpoint/pstree.img: no regular file"}));
}

TEST(ImageSetTest, OfTwoFilesOfANameTheFirstCountsAndTheOtherIsTold) {
  std::vector<Member> members = kExported;
  members.push_back({"stats-dump", "second", ""});
  members.push_back({"checkpoint/stats-dump", "third", ""});
  const test::TemporaryDirectory folder;
  const auto set = ImageSet::open(make_archive(folder, members, archive_write_add_filter_none));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(text_of(set->read("stats-dump")), "statistics");
  ASSERT_EQ(set->left_out().size(), 2U);
  EXPECT_EQ(set->left_out().back(), "checkpoint/stats-dump: another of its name came first");
}

TEST(ImageSetTest, ALargeFileOfATmpfsDoesNoHarmAndALogTooLargeIsLeftOut) {
  const std::string large(kMaxImage + 1, 'x');
  std::vector<Member> members = kExported;
  members[2].content = large;  // dump.log
  members.push_back({"checkpoint/tmpfs-dev-42.tar.gz.img", large, ""});
  const test::TemporaryDirectory folder;
  const auto set = ImageSet::open(make_archive(folder, members, archive_write_add_filter_zstd));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->image_files(), 3U);
  EXPECT_EQ(set->left_out(), std::vector<std::string>{"dump.log: too large to be such an image"});
  // It must not read a file of that name in the current folder.
  EXPECT_EQ(set->read("pages-1.img").error().code, Code::out_of_range);
}

TEST(ImageSetTest, ManySmallMembersTakeLittleMemory) {
  std::vector<Member> members;
  for (int i = 0; i < 2000; ++i) {  // before the fix, each of them kept 256 KiB
    members.push_back({"checkpoint/core-" + std::to_string(i) + ".img", "x", ""});
  }
  const test::TemporaryDirectory folder;
  const std::string path = make_archive(folder, members, archive_write_add_filter_zstd);
  const auto resident_pages = [] {
    std::ifstream statm("/proc/self/statm");
    std::size_t size = 0;
    std::size_t resident = 0;
    statm >> size >> resident;
    return resident;
  };
  const std::size_t before = resident_pages();
  const auto set = ImageSet::open(path);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->image_files(), 2000U);
  EXPECT_LT(resident_pages(), before + (std::size_t{128} << 20U) / 4096);
}

TEST(ImageSetTest, NamesLongerThanAnyFilesAreLeftOut) {
  std::vector<Member> members = kExported;
  members.push_back({"checkpoint/" + std::string(300, 'a') + ".img", "", ""});
  members.push_back({"checkpoint/" + std::string(100'000, 'b') + ".img", "", ""});
  const test::TemporaryDirectory folder;
  const auto set = ImageSet::open(make_archive(folder, members, archive_write_add_filter_none));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->image_files(), 2U);
  EXPECT_EQ(set->left_out().size(), 2U);
}

TEST(ImageSetTest, ADamagedHeaderOfAMemberIsNoEnd) {
  const test::TemporaryDirectory folder;
  const std::string path = make_archive(folder, kExported, archive_write_add_filter_none);
  std::fstream tar(path, std::ios::in | std::ios::out | std::ios::binary);
  tar.seekp(2 * 512 + 10);  // the name of the second member
  tar.put('!');
  tar.close();
  const auto set = ImageSet::open(path);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Code::data_loss) << set.error().message;
}

// kymo verify took a link for the image itself, wherever it led.
TEST(ImageSetTest, ALinkInAFolderIsNotFollowed) {
  const test::TemporaryDirectory folder;
  const test::TemporaryDirectory other;
  folder.file("inventory.img", "an image");
  const std::string link = folder.path() + "/pages-1.img";
  fs::create_symlink(other.file("pages-1.img", "pages"), link);
  const auto set = ImageSet::open(folder.path());
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_FALSE(set->has("pages-1.img"));
  EXPECT_EQ(set->left_out(),
            std::vector<std::string>{link + ": a symbolic link, which is not followed"});
}

TEST(ImageSetTest, APipeIsRefusedAndWithinAFolderLeftOut) {
  const test::TemporaryDirectory folder;
  const std::string pipe = folder.path() + "/dump.log";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto set = ImageSet::open(pipe);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Code::invalid_argument) << set.error().message;
  folder.file("stats-dump", "statistics");
  const auto all = ImageSet::open(folder.path());
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->left_out(), std::vector<std::string>{pipe + ": no regular file"});
}

// Makes files below `folder`. Each contains its own name.
void make(const test::TemporaryDirectory& folder, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    fs::create_directories(fs::path(folder.path() + "/" + file).parent_path());
    folder.file(file, fs::path(file).filename().string());
  }
}

TEST(ImageSetTest, EveryFolderOfACheckpointLeadsToAllOfIt) {
  const test::TemporaryDirectory folder;
  make(folder, {"images/inventory.img", "images/core-1.img", "work/stats-dump", "work/dump.log"});
  for (const char* part : {"", "/images", "/work"}) {
    const auto set = ImageSet::open(folder.path() + part);
    ASSERT_TRUE(set.ok()) << part << ": " << set.error().message;
    EXPECT_EQ(set->image_files(), 2U) << part;
    EXPECT_EQ(text_of(set->read("stats-dump")), "stats-dump") << part;
    EXPECT_EQ(text_of(set->read("dump.log")), "dump.log") << part;
  }
}

TEST(ImageSetTest, PodmanPutsTheStatisticsAboveTheImages) {
  const test::TemporaryDirectory folder;
  make(folder, {"userdata/stats-dump", "userdata/dump.log", "userdata/checkpoint/inventory.img"});
  for (const char* part : {"/userdata", "/userdata/checkpoint"}) {
    const auto set = ImageSet::open(folder.path() + part);
    ASSERT_TRUE(set.ok()) << part << ": " << set.error().message;
    EXPECT_TRUE(set->has("inventory.img")) << part;
    EXPECT_TRUE(set->has("stats-dump")) << part;
  }
}

TEST(ImageSetTest, ADumpThatFailedLeftItsLogAndNoInventory) {
  const test::TemporaryDirectory folder;
  make(folder, {"images/core-1.img", "work/dump.log"});
  for (const char* part : {"", "/images", "/work"}) {
    const auto set = ImageSet::open(folder.path() + part);
    ASSERT_TRUE(set.ok()) << part << ": " << set.error().message;
    EXPECT_TRUE(set->has("core-1.img")) << part;
    EXPECT_EQ(text_of(set->read("dump.log")), "dump.log") << part;
  }
}

TEST(ImageSetTest, OfTheFolderAboveOnlyTheStatisticsCount) {
  const test::TemporaryDirectory folder;
  make(folder, {"stats-dump", "pagemap-7.img", "2/inventory.img", "2/pagemap-8.img"});
  const auto set = ImageSet::open(folder.path() + "/2");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->names(),
            (std::vector<std::string>{"inventory.img", "pagemap-8.img", "stats-dump"}));
}

TEST(ImageSetTest, AFolderOfSomethingElseIsRefused) {
  const test::TemporaryDirectory folder;
  make(folder, {"other/readme.txt"});
  const auto set = ImageSet::open(folder.path() + "/other");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Code::not_found);
  EXPECT_EQ(ImageSet::open(folder.path() + "/none").error().code, Code::not_found);
  make(folder, {"stats-dump"});  // it may belong to somebody else
  EXPECT_FALSE(ImageSet::open(folder.path() + "/other").ok());
}

}  // namespace
}  // namespace kymo::criu
