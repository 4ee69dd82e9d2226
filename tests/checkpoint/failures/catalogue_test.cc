#include "checkpoint/failures/catalogue.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace kymo::failures {
namespace {

// The list says which entry of the catalogue explains a message. It was made from CRIU's sources,
// and not from the catalogue.
TEST(Catalogue, ExplainsEachMessageOfTheListByItsEntry) {
  std::ifstream list(KYMO_MESSAGES);
  int messages = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t tab = line.find('\t');
    const std::string message = line.substr(tab + 1);
    const Entry* entry = entry_for(message);
    ++messages;
    ASSERT_NE(entry, nullptr) << message;
    EXPECT_EQ(entry->id, line.substr(0, tab)) << message;
  }
  EXPECT_GE(messages, 200);
}

TEST(Catalogue, HasEntriesWithIdsOfTheirOwnAndShortSentences) {
  constexpr std::size_t kCell = 72;
  std::set<std::string> ids;
  for (const Entry& entry : catalogue()) {
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.id;
    EXPECT_LE(entry.what.size(), kCell) << entry.id;
    EXPECT_EQ(entry.what.find(": "), std::string::npos) << entry.id;
    EXPECT_EQ(entry.what.find("; "), std::string::npos) << entry.id;
    if (entry.retry.starts_with("only")) {
      EXPECT_EQ(entry.remedy.find("ass --"), std::string::npos) << entry.id;
    }
    for (const std::string* text : {&entry.why, &entry.remedy, &entry.retry}) {
      EXPECT_FALSE(text->empty()) << entry.id;
    }
  }
  EXPECT_GE(ids.size(), 98U);
  EXPECT_EQ(entry_of("no such id").id, "unknown");
}

TEST(Catalogue, TellsWhichFileOrProcessALineIsAbout) {
  EXPECT_EQ(detail_of(entry_of("mount-lookup"), "Can't lookup mount=25 for fd=1 path=/dev/pts/3"),
            "file /dev/pts/3, descriptor 1");
  EXPECT_EQ(detail_of(entry_of("file-size"), "File tmp/a.log has bad size 12 (expect 4)"),
            "file tmp/a.log, 4 bytes at the dump, 12 now");
  EXPECT_EQ(detail_of(entry_of("file-size"), "File cut has bad"), "");
  EXPECT_EQ(detail_of(entry_of("fs-unsupported"),
                      "mnt: FS mnt ./srv/data dev 0x700001 root / unsupported id 112"),
            "mounted at /srv/data");
}

}  // namespace
}  // namespace kymo::failures
