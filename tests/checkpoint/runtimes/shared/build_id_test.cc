// The build ids of programs, and of files that are no programs.
#include "checkpoint/runtimes/shared/build_id.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

std::string id_of(const std::string& path) {
  const Result<std::string> id = build_id_of(path);
  EXPECT_TRUE(id) << id.error().message;
  return id ? *id : "";
}

TEST(BuildId, IsThatWhichTheLinkerPrints) {
  const test::TemporaryDirectory folder;
  const std::string printed = folder.path() + "/printed";
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  for (const std::string& path : {std::string("/bin/sleep"), self}) {
    const std::string command =
        "readelf --notes " + path + " | sed -n 's/.*Build ID: //p' >" + printed;
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::ifstream lines(printed);
    std::string expected;
    std::getline(lines, expected);
    EXPECT_EQ(id_of(path), expected) << path;
  }
}

TEST(BuildId, IsEmptyForAFileThatIsNoProgramOrIsCut) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(id_of(folder.file("text", "no program")), "");
  EXPECT_EQ(id_of(folder.file("empty", "")), "");
  const Result<std::string> whole = read_file("/bin/sleep");
  ASSERT_TRUE(whole);
  for (const std::size_t size : {4U, 16U, 63U, 64U, 100U, 400U}) {
    EXPECT_EQ(id_of(folder.file("cut", whole->substr(0, size))), "") << size;
  }
  std::string wild = *whole;  // headers that point out of the file, and notes without an end
  for (std::size_t at = 32; at < 1024; ++at) wild[at] = static_cast<char>(0xff);
  static_cast<void>(build_id_of(folder.file("wild", wild)));
  EXPECT_FALSE(build_id_of(folder.path() + "/none"));
  EXPECT_FALSE(build_id_of("/dev/null")) << "a device is refused";
}

}  // namespace
}  // namespace kymo::runtime
