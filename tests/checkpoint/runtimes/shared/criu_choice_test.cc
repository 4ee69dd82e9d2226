#include "checkpoint/runtimes/shared/criu_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace kymo::runtime {
namespace {

constexpr KernelVersion kOldKernel{6, 15};
constexpr KernelVersion kNewKernel{6, 16};

CriuProgram old_criu() {
  return {"/old/criu", "/old", {4, 1, 1, {}}};
}
CriuProgram new_criu() {
  return {"/new/criu", "/new", {4, 2, 1, {}}};
}

TEST(CriuChoiceTest, ReadsVersionsOfKernels) {
  EXPECT_EQ(kernel_version("6.18.44-fc-v657").major, 6);
  EXPECT_EQ(kernel_version("6.18.44-fc-v657").minor, 18);
  EXPECT_EQ(kernel_version("7.0-rc1").minor, 0);
  for (const char* bad : {"", "6", "six.one", "6."}) {
    EXPECT_EQ(kernel_version(bad).major, 0) << bad;
  }
}

TEST(CriuChoiceTest, ReadsVersionsOfCriu) {
  const auto version = criu::Version::parse("4.1.1");
  ASSERT_TRUE(version);
  EXPECT_EQ(version->text(), "4.1.1");
  ASSERT_TRUE(criu::Version::parse("4.3"));
  EXPECT_EQ(criu::Version::parse("4.3")->minor, 3);
  for (const char* bad : {"", "4", "4.", "4.1.1.1", "4.1x", "x", "4.1."}) {
    EXPECT_FALSE(criu::Version::parse(bad)) << bad;
  }
}

TEST(CriuChoiceTest, AnOldCriuIsTooOldForANewKernelAlone) {
  EXPECT_EQ(too_old_for_kernel(old_criu().version, kOldKernel), "");
  EXPECT_EQ(too_old_for_kernel(new_criu().version, kNewKernel), "");
  EXPECT_EQ(too_old_for_kernel(old_criu().version, {6, 18}),
            "CRIU 4.1.1 is too old for Linux 6.18: it cannot dump a process with an internet "
            "socket; use CRIU 4.2 or later");
}

TEST(CriuChoiceTest, TheFirstIsTakenWhereItServes) {
  EXPECT_EQ(CriuChoice({old_criu(), new_criu()}, kOldKernel).for_dump(false).path, "/old/criu");
  EXPECT_EQ(CriuChoice({new_criu(), old_criu()}, kOldKernel).for_dump(false).path, "/new/criu");
  EXPECT_EQ(CriuChoice({new_criu(), old_criu()}, kNewKernel).for_dump(true).path, "/new/criu");
}

TEST(CriuChoiceTest, OnANewKernelAndForAReadOnlyRootTheNewerIsTaken) {
  const std::vector<CriuProgram> programs{old_criu(), new_criu()};
  EXPECT_EQ(CriuChoice(programs, kNewKernel).for_dump(false).path, "/new/criu");
  EXPECT_EQ(CriuChoice(programs, kOldKernel).for_dump(true).path, "/new/criu");
  EXPECT_EQ(CriuChoice({old_criu()}, kNewKernel).for_dump(true).path, "/old/criu")
      << "it is the only one, and this dump may not need what it cannot do";
}

TEST(CriuChoiceTest, ARestoreTakesNoCriuOlderThanTheImages) {
  const CriuChoice both({old_criu(), new_criu()}, kOldKernel);
  EXPECT_EQ(both.for_restore("restore x", false, "4.1.1")->path, "/old/criu");
  EXPECT_EQ(both.for_restore("restore x", true, "4.1.1")->path, "/new/criu");
  EXPECT_EQ(both.for_restore("restore x", false, "4.2")->path, "/new/criu");
  EXPECT_EQ(both.for_restore("restore x", false, "4.2.9")->path, "/new/criu")
      << "a different patch level has the same images";
  EXPECT_EQ(both.for_restore("restore x", false, "")->path, "/new/criu")
      << "the version that made the images is unknown";
  const auto refused =
      CriuChoice({old_criu()}, kOldKernel).for_restore("restore x", false, "4.2.1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::failed_precondition);
  EXPECT_EQ(refused.error().message,
            "restore x: CRIU 4.2.1 made its images, which CRIU 4.1.1 cannot read: start kymod with "
            "that version or a later one (--criu, or --criu-fallback)");
}

TEST(CriuChoiceTest, AProcessThatIsNotThereHasNoReadOnlyRoot) {
  EXPECT_FALSE(has_read_only_root(0));
  EXPECT_FALSE(has_read_only_root(getpid()));
}

}  // namespace
}  // namespace kymo::runtime
