#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "profiler/stacks/output.h"
#include "profiler/stacks/session.h"
#include "support/temporary_folder.h"

namespace kymo::stacks {

// Profiles a program of tests/profiler/stacks/programs, and compares the shares of its functions with the
// times that the program itself has counted.
class ProfileTest : public TemporaryFolderTest {
 protected:
  static constexpr const char* kCpuMilliseconds = "2000";  // about 2,000 samples
  static constexpr double kTolerance = 0.03;

  static std::string program(const std::string& name) {
    return std::string(KYMO_TEST_PROGRAMS) + "/" + name;
  }

  // Profiles the command. `{}` in it is replaced by the file to which the program writes its times.
  void profile(std::vector<std::string> command, bool waits = false) {
    for (std::string& word : command) {
      if (const std::size_t at = word.find("{}"); at != std::string::npos) {
        word.replace(at, 2, in_folder("own"));
      }
    }
    Options options;
    options.sampling.rate = 999;
    options.sampling.waits = waits;
    options.sampling.bpf = bpf_;
    Result<CommandProfile> done = profile_command(command, options);
    if (!done && done.error().code == Code::permission_denied) GTEST_SKIP() << done.error().message;
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->exit_code, 0);
    profile_ = std::move(done->profile);
    hottest_ = hottest(named(profile_, symbols_));
    read_own_count();
  }

  // The share of a function in the profile, including the functions that it calls.
  [[nodiscard]] double share(const std::string& name) const {
    for (const HotFunction& function : hottest_.functions) {
      if (short_name(function.name) == name) return part(function.total.value, hottest_.sum.value);
    }
    return 0;
  }
  // The same share, according to the program's own times.
  [[nodiscard]] double own_share(const std::string& name) const {
    return part(own_.at(name), own_.at("all"));
  }
  void expect_own_shares() const {
    for (const auto& [name, ns] : own_) {
      if (name == "all") continue;
      EXPECT_NEAR(share(name), own_share(name), kTolerance) << name;
    }
    EXPECT_GE(own_.size(), 2U);
  }

  static double part(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  bool bpf_ = true;
  Profile profile_;
  Symbols symbols_;
  Hottest hottest_;
  std::map<std::string, std::uint64_t> own_;

 private:
  // The name without namespaces and parameters: "area" for "shapes::Square::area() const".
  static std::string short_name(std::string name) {
    const std::string anonymous = "(anonymous namespace)::";
    if (const std::size_t at = name.find(anonymous); at != std::string::npos) {
      name.erase(at, anonymous.size());
    }
    name.resize(std::min(name.find_first_of("(<"), name.size()));
    return name.substr(name.find_last_of(": ") + 1);
  }

  void read_own_count() {
    std::ifstream file(in_folder("own"));
    std::string name;
    for (std::uint64_t ns = 0; file >> name >> ns;) own_[name] = ns;
    if (!own_.contains("all")) own_["all"] = 0;
  }
};

}  // namespace kymo::stacks
