#include "profiler/kept/pulled.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "profiler/kept/pull_targets.h"

namespace kymo::profiles {
namespace {

using stacks::NamedProfile;

using Weights = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

// A profile in which each stack is one function.
NamedProfile counted(const Weights& stacks) {
  NamedProfile profile;
  profile.quantity = stacks::Quantity::alloc;
  for (const auto& [name, weight] : stacks) {
    NamedProfile::Stack stack;
    stack.functions = {static_cast<std::uint32_t>(profile.functions.size())};
    stack.weight = {weight.first, weight.second};
    profile.functions.push_back({name, "app", true});
    profile.stacks.push_back(std::move(stack));
  }
  return profile;
}

Weights weights_in(const NamedProfile& profile) {
  Weights stacks;
  for (const NamedProfile::Stack& stack : profile.stacks) {
    auto& sum = stacks[profile.functions[stack.functions[0]].name];
    sum = {sum.first + stack.weight.samples, sum.second + stack.weight.value};
  }
  return stacks;
}

TEST(DifferenceTest, HasWhatCameSince) {
  const NamedProfile before = counted({{"same", {1, 10}}, {"more", {2, 20}}});
  const NamedProfile now = counted({{"same", {1, 10}}, {"more", {5, 50}}, {"new", {1, 7}}});
  EXPECT_EQ(weights_in(difference(before, now)), (Weights{{"more", {3, 30}}, {"new", {1, 7}}}));
  EXPECT_EQ(weights_in(difference(now, now)), Weights());
}

TEST(DifferenceTest, AStackThatIsInAFileTwiceIsOne) {
  NamedProfile now = counted({{"f", {4, 40}}});
  now.stacks.push_back(now.stacks[0]);
  EXPECT_EQ(weights_in(difference(counted({{"f", {5, 50}}}), now)), (Weights{{"f", {3, 30}}}));
}

TEST(DifferenceTest, AProgramThatWasStartedAgainHasCountedFromZero) {
  const NamedProfile before = counted({{"f", {9, 90}}, {"g", {1, 1}}});
  const Weights now{{"f", {2, 20}}, {"g", {5, 5}}};
  EXPECT_EQ(weights_in(difference(before, counted(now))), now);
  EXPECT_EQ(weights_in(difference(before, counted({{"g", {5, 5}}}))), (Weights{{"g", {5, 5}}}))
      << "a stack that is gone also shows that the program was started again";
}

TEST(PullTargetsTest, AFileListsOneTargetInEachLine) {
  const auto read = pull_targets_in(
      "# all\n\nweb http://web.shop:6060\n six http://[::1]:80/admin/ # mine\nplain http://host\n",
      "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->all, (std::vector<PullTarget>{{"target:web", "web.shop", 6060, ""},
                                                {"target:six", "::1", 80, "/admin"},
                                                {"target:plain", "host", 80, ""}}));
  EXPECT_TRUE(pull_targets_in("", "f")->all.empty());
}

TEST(PullTargetsTest, AWrongLineIsNamed) {
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"web", "give NAME and http://HOST:PORT"},
           {"web http://a http://b", "give NAME and http://HOST:PORT"},
           {"web ftp://a", "its address does not begin with http://"},
           {"web http://a:0", "its port is not a number from 1 to 65535"},
           {"web http://a:65536", "its port is not a number from 1 to 65535"},
           {"web http://a:x", "its port is not a number from 1 to 65535"},
           {"web http://:80", "its address has no host"}}) {
    const auto read = pull_targets_in("good http://a\n" + line + "\n", "f");
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().message, "f, line 2: " + why) << line;
  }
}

// The JSON of a pod with these annotations.
std::string pod(const std::string& name, const std::string& annotations, const std::string& ip) {
  return R"({"metadata":{"namespace":"shop","name":")" + name + R"(","annotations":)" +
         annotations + R"(},"status":{"podIP":")" + ip + R"("}})";
}

TEST(PullTargetsTest, PodsWithAnnotationsAreTargets) {
  const std::string list =
      R"({"items":[)" +
      pod("a", R"({"coroot.com/profile-scrape":"true","coroot.com/profile-port":"7070"})",
          "10.0.0.1") +
      "," + pod("b", R"({"kymograph/profile-scrape":"true"})", "10.0.0.2") + "," +
      pod("c", R"({"coroot.com/profile-scrape":"false"})", "10.0.0.3") + "," +
      pod("d", R"({"coroot.com/profile-scrape":"true"})", "") + "," + pod("e", "{}", "10.0.0.4") +
      R"(,7,{},{"metadata":[]}]})";
  const auto read = pull_targets_in(list, "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->all, (std::vector<PullTarget>{{"pod:shop/a", "10.0.0.1", 7070, ""},
                                                {"pod:shop/b", "10.0.0.2", 6060, ""}}));
  for (const char* const other : {"{", "{}", R"({"items":{}})"}) {
    EXPECT_FALSE(pull_targets_in(other, "f")) << other;
  }
  const auto port = pull_targets_in(
      R"({"items":[)" +
          pod("a", R"({"coroot.com/profile-scrape":"true","coroot.com/profile-port":"x"})",
              "1.1.1.1") +
          "]}",
      "f");
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(port->trouble,
            "f: the pod shop/a is left out: its annotation profile-port is not a port");
  EXPECT_TRUE(port->all.empty());
}

// An attacker may control the process that writes the list.
TEST(PullTargetsTest, AListIsCheckedWhenItIsRead) {
  const PullTargets targets{{{"pod:shop/a", "10.0.0.1", 7070, ""}}, "one is left out"};
  const auto same = listed_in(list_text(targets), "http://api");
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(*same, targets);
  const auto failed = listed_in(list_text(Error{Code::unavailable, "it is away"}), "http://api");
  EXPECT_EQ(failed.error().message, "http://api: it is away");
  const auto some = listed_in(
      R"({"trouble":"","targets":[["job:web","h",1,""],["pod:a/b","",1,""],["pod:a/b","h",0,""],["pod:a/b","h",80,""]]})",
      "http://api");
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->all, (std::vector<PullTarget>{{"pod:a/b", "h", 80, ""}}));
  for (const char* const other : {"", "{}", "[]", R"({"trouble":"","targets":[[]]})",
                                  R"({"trouble":"","targets":[[1,2,3,4]]})"}) {
    EXPECT_EQ(listed_in(other, "http://api").error().message,
              "http://api: its list of targets could not be read")
        << other;
  }
}

TEST(PullTargetsTest, AListOfAFileHasAlsoTargets) {
  const PullTargets targets{{{"target:web", "h", 80, "/x"}, {"pod:a/b", "h", 80, ""}}, ""};
  EXPECT_EQ(*listed_in(list_text(targets), "/etc/targets"), targets);
  const Error wrong{Code::invalid_argument, "/etc/targets, line 2: give NAME"};
  EXPECT_EQ(listed_in(list_text(wrong), "/etc/targets").error().message, wrong.message);
}

TEST(PulledTest, WhatIsNotWholeIsAFailure) {
  const std::string whole =
      "base go-alloc 0 3\nabc"
      "part go-alloc 7 2\nde"
      "failed block 0 3\nwhy"
      "failed end 0 0\n";
  const Pulled read = pulled_in(whole);
  EXPECT_EQ(read.bases.at(Type::go_alloc), "abc");
  EXPECT_EQ(read.parts.at(Type::go_alloc).profile, "de");
  EXPECT_EQ(read.parts.at(Type::go_alloc).begin_unix_ns, 7);
  EXPECT_EQ(read.failures, (std::vector<std::string>{"why"}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Pulled cut = pulled_in(whole.substr(0, size));
    EXPECT_EQ(cut.failures, (std::vector<std::string>{"its answers could not be read"})) << size;
    EXPECT_TRUE(cut.bases.empty() && cut.parts.empty()) << size;
  }
  EXPECT_EQ(pulled_in("part none 0 0\nfailed end 0 0\n").failures.back(),
            "its answers could not be read");
}

}  // namespace
}  // namespace kymo::profiles
