#include "daemon/request/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace kymo::daemon {
namespace {

// The word of CRIU's command line for a name of the API: "CGROUPS_SOFT" without its prefix and in
// lower case.
std::string word_of(const std::string& name, const std::string& prefix) {
  std::string word = name.substr(prefix.size());
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word == "unset" ? "" : word;
}

TEST(ToOptions, EachChoiceOfTheApiIsTheOneOfItsName) {
  v1::CheckpointOptions asked;
  for (int value = 0; value < v1::CgroupsMode_ARRAYSIZE; ++value) {
    const auto mode = static_cast<v1::CgroupsMode>(value);
    asked.set_cgroups(mode);
    EXPECT_EQ(criu::name_of(to_options(asked).cgroups),
              word_of(v1::CgroupsMode_Name(mode), "CGROUPS_"));
  }
  for (int value = 0; value < v1::NetworkLock_ARRAYSIZE; ++value) {
    const auto method = static_cast<v1::NetworkLock>(value);
    asked.set_network_lock(method);
    EXPECT_EQ(criu::name_of(to_options(asked).network_lock),
              word_of(v1::NetworkLock_Name(method), "NETWORK_LOCK_"));
  }
}

TEST(ToOptions, AnUnknownChoiceIsLeftUnset) {
  v1::CheckpointOptions asked;
  asked.set_cgroups(static_cast<v1::CgroupsMode>(99));
  asked.set_network_lock(static_cast<v1::NetworkLock>(99));
  EXPECT_EQ(to_options(asked).cgroups, criu::Cgroups::unset);
  EXPECT_EQ(to_options(asked).network_lock, criu::NetworkLock::unset);
}

}  // namespace
}  // namespace kymo::daemon
