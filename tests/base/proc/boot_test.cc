#include "base/proc/boot.h"

#include <gtest/gtest.h>

namespace kymo::probe {
namespace {

TEST(BootTest, ItsIdIsThatOfTheKernel) {
  const std::string id = boot_id();
  EXPECT_EQ(id.size(), std::string("00000000-0000-0000-0000-000000000000").size()) << id;
  EXPECT_EQ(id.find('\n'), std::string::npos);
  EXPECT_EQ(boot_id(), id);
}

TEST(BootTest, OnlyAnIdThatIsKnownToBeAnotherOneIsOfAnEarlierBoot) {
  EXPECT_FALSE(is_of_earlier_boot(boot_id()));
  EXPECT_FALSE(is_of_earlier_boot("")) << "an earlier version did not note it";
  EXPECT_TRUE(is_of_earlier_boot("of an earlier boot"));
}

}  // namespace
}  // namespace kymo::probe
