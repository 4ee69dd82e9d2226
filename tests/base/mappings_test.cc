#include "base/mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace kymo {
namespace {

TEST(MappingsTest, OnesOwnAreWhereTheyWereMapped) {
  const int file = ::memfd_create("some name", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 8192), 0);
  void* const memory = ::mmap(nullptr, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  const Result<std::vector<Mapping>> all = mappings_of(::getpid());
  ASSERT_TRUE(all.ok()) << all.error().message;
  const auto found = std::find_if(all->begin(), all->end(),
                                  [&](const Mapping& one) { return one.begin == begin; });
  ASSERT_NE(found, all->end());
  EXPECT_EQ(found->end, begin + 8192);
  EXPECT_TRUE(found->executable);
  EXPECT_EQ(found->name, "/memfd:some name (deleted)");
  EXPECT_TRUE(found->has(begin));
  EXPECT_FALSE(found->has(begin + 8192));
  EXPECT_TRUE(std::any_of(all->begin(), all->end(), [](const Mapping& one) {
    return !one.executable && one.name == "[stack]";
  }));
  ::munmap(memory, 8192);
  ::close(file);
}

TEST(MappingsTest, OfAProcessThatIsNotThereThereAreNone) {
  EXPECT_EQ(mappings_of(-1).error().code, Code::not_found);
}

}  // namespace
}  // namespace kymo
