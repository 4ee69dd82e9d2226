#include "daemon/recording/profiled_containers.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

using runtime::ContainerName;

std::vector<ContainerName> names(const std::vector<std::string>& texts) {
  Config config;
  config.profiles_only = texts;
  return profiled_containers_of(config);
}

TEST(ProfiledContainersTest, ContainersAreNamedByTheirRuntime) {
  const std::vector<ContainerName> found =
      names({"job:web", "podman:a", "cgroup:/x", "docker:b:c", "process:runc", "podman:"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(runtime::name_of(found[0].kind), "podman");
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(runtime::name_of(found[1].kind), "docker");
  EXPECT_EQ(found[1].name, "b:c");
}

TEST(ProfiledContainersTest, ContainersThatAreFoundHaveCgroups) {
  const ProfiledContainers containers(names({"podman:a", "docker:gone", "runc:b"}),
                                      [](const ContainerName& name) -> Result<std::string> {
                                        if (name.name == "gone")
                                          return Error{Code::not_found, "no such container"};
                                        return "/" + name.name;
                                      });
  const std::vector<std::string> wanted{"/a", "/b"};
  EXPECT_TRUE(test::eventually([&] { return containers.cgroups() == wanted; }));
}

TEST(ProfiledContainersTest, WithoutNamesNobodyIsAsked) {
  std::atomic<int> asked = 0;
  {
    const ProfiledContainers containers({}, [&](const ContainerName&) -> Result<std::string> {
      ++asked;
      return std::string();
    });
    EXPECT_TRUE(containers.cgroups().empty());
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace kymo::daemon
