#include "profiler/stacks/address_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace kymo::stacks {
namespace {

std::shared_ptr<Module> module() {
  auto made = std::make_shared<Module>();
  made->kind = Module::Kind::jit;
  return made;
}

TEST(AddressSpaceTest, FindsTheMappingOfAnAddress) {
  AddressSpace space;
  const auto one = module();
  space.add(0x1000, {0x2000, 0, one});
  EXPECT_EQ(space.find(0x1000)->module, one.get());
  EXPECT_EQ(space.find(0x1fff)->address, 0x1fffU);
  EXPECT_FALSE(space.find(0xfff));
  EXPECT_FALSE(space.find(0x2000));
}

TEST(AddressSpaceTest, ANewMappingTakesThePlaceOfWhatItCovers) {
  const auto old = module();
  const auto fresh = module();
  AddressSpace space;
  space.add(0x1000, {0x5000, 0, old});
  space.add(0x2000, {0x3000, 0, fresh});
  EXPECT_EQ(space.find(0x1fff)->module, old.get());
  EXPECT_EQ(space.find(0x2000)->module, fresh.get());
  EXPECT_EQ(space.find(0x3000)->module, old.get());
  EXPECT_EQ(space.find(0x4fff)->module, old.get());
  const auto last = module();
  space.add(0x1800, {0x4800, 0, last});
  EXPECT_EQ(space.find(0x17ff)->module, old.get());
  EXPECT_EQ(space.find(0x2800)->module, last.get());
  EXPECT_EQ(space.find(0x4800)->module, old.get());
  EXPECT_FALSE(space.find(0x5000));
}

// As of a program that makes code at ever new places: the kernel does not report what it unmaps.
TEST(AddressSpaceTest, ItHasABound) {
  AddressSpace space;
  const auto one = module();
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 2 * AddressSpace::kMaxMappings + 10; ++i) {
    space.add(8192 * i, {8192 * i + 4096, 0, one});
    most = std::max(most, space.size());
  }
  EXPECT_EQ(most, AddressSpace::kMaxMappings);
  EXPECT_TRUE(space.find(8192 * (2 * AddressSpace::kMaxMappings + 9)));
}

}  // namespace
}  // namespace kymo::stacks
