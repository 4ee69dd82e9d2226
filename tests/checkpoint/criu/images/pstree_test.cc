#include "checkpoint/criu/images/pstree.h"

#include <gtest/gtest.h>

#include "checkpoint/criu/images/image_bytes.h"

namespace kymo::criu {
namespace {

constexpr std::uint32_t kCommon = 0x54564319;
constexpr std::uint32_t kPstree = 0x50273030;

// pid 300, ppid 0, pgid 300, sid 300, threads 300 and 301
const std::vector<std::uint8_t> kRoot = {0x08, 0xac, 0x02, 0x10, 0x00, 0x18, 0xac, 0x02, 0x20,
                                         0xac, 0x02, 0x28, 0xac, 0x02, 0x28, 0xad, 0x02};
// pid 5, ppid 300, pgid 300, sid 300, thread 5
const std::vector<std::uint8_t> kChild = {0x08, 0x05, 0x10, 0xac, 0x02, 0x18, 0xac,
                                          0x02, 0x20, 0xac, 0x02, 0x28, 0x05};

TEST(PstreeTest, ReadsProcessesAndThreadsTheRootFirst) {
  const auto bytes =
      ImageBytes().word(kCommon).word(kPstree).message(kRoot).message(kChild).bytes();
  const auto tree = parse_pstree(bytes, "pstree.img");
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  ASSERT_EQ(tree->size(), 2U);
  EXPECT_EQ(tree->front().pid, 300);
  EXPECT_EQ(tree->front().session, 300);
  EXPECT_EQ(tree->front().group, 300);
  EXPECT_EQ(tree->front().threads, (std::vector<pid_t>{300, 301}));
  EXPECT_EQ(tree->back().pid, 5);
  EXPECT_EQ(tree->back().parent, 300);
}

TEST(PstreeTest, RefusesWhatHoldsNoProcess) {
  const auto empty = ImageBytes().word(kCommon).word(kPstree).bytes();
  EXPECT_EQ(parse_pstree(empty, "pstree.img").error().message,
            "cannot read pstree.img: it holds no process");
  const auto pid_zero = ImageBytes()
                            .word(kCommon)
                            .word(kPstree)
                            .message({0x08, 0, 0x10, 0, 0x18, 0, 0x20, 0})
                            .bytes();
  EXPECT_NE(parse_pstree(pid_zero, "pstree.img").error().message.find("the message at byte 12"),
            std::string::npos);
  const auto stats = ImageBytes().word(0x55105940).word(0x57093306).message(kRoot).bytes();
  EXPECT_NE(parse_pstree(stats, "pstree.img").error().message.find("not a CRIU process tree image"),
            std::string::npos);
}

}  // namespace
}  // namespace kymo::criu
