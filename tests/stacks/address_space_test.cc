#include "stacks/address_space.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kymo::stacks
