// Compares the profiles of programs with the times that the programs count themselves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/stacks/profile_of.h"
#include "support/shell.h"

namespace kymo::stacks {
namespace {

#define PROFILE(...)                             \
  ASSERT_NO_FATAL_FAILURE(profile(__VA_ARGS__)); \
  if (IsSkipped()) return

class TruthTest : public ProfileTest {
 protected:
  std::vector<std::string> functions(const std::string& mode) {
    return {program("functions"), mode, "{}", kCpuMilliseconds};
  }
  void expect_shares_of_threads() const {
    std::map<std::string, std::uint64_t> threads;
    for (const auto& [trace, weight] : profile_.traces) threads[trace.thread] += weight.value;
    for (const char* const name : {"seven-tenths", "three-tenths"}) {
      EXPECT_NEAR(part(threads[name], hottest_.sum.value), own_share(name), kTolerance) << name;
    }
  }
  void expect_shares_of_children() const {
    const std::uint64_t own = own_.at("half") + own_.at("fifth");
    const double both = share("half") + share("fifth");
    ASSERT_GT(both, 0.3);  // the kernel uses the rest to start and end processes
    EXPECT_NEAR(share("half") / both, part(own_.at("half"), own), kTolerance);
  }
};

TEST_F(TruthTest, ThreeFunctionsHaveTheirShares) {
  PROFILE(functions("three"));
  expect_own_shares();
  EXPECT_NEAR(share("half"), 0.5, kTolerance);
  EXPECT_GE(hottest_.sum.samples, 1000U);
  EXPECT_LT(part(hottest_.unknown_frames, hottest_.frames), 0.01);
}

TEST_F(TruthTest, NothingOfTheProfilerIsInTheProfileOfACommand) {
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").filename();
  for (int run = 0; run < 20; ++run) {
    Options options;
    options.sampling.rate = 9999;
    const Result<CommandProfile> done = profile_command({"/bin/true"}, options);
    if (!done && done.error().code == Code::permission_denied) GTEST_SKIP() << done.error().message;
    ASSERT_TRUE(done) << done.error().message;
    for (const auto& [trace, weight] : done->profile.traces) {
      EXPECT_NE(trace.process, own.substr(0, 15));
    }
  }
}

TEST_F(TruthTest, ARecursiveFunctionCountsOnce) {
  PROFILE(functions("recursion"));
  expect_own_shares();
  EXPECT_NEAR(share("main"), 1, kTolerance);  // no stack is cut within the recursion
}

TEST_F(TruthTest, ALibraryWithoutFramePointersHidesNoCaller) {
  PROFILE({program("caller"), "{}", kCpuMilliseconds});
  expect_own_shares();
  EXPECT_NEAR(share("main"), 1, kTolerance);
}

TEST_F(TruthTest, InlinedFunctionsHaveTheirShares) {
  PROFILE({program("inlined"), "{}", kCpuMilliseconds});
  expect_own_shares();
}

TEST_F(TruthTest, EachThreadHasItsShare) {
  PROFILE(functions("threads"));
  expect_shares_of_threads();
}

TEST_F(TruthTest, ChildrenThatLiveForMillisecondsHaveTheirShare) {
  PROFILE(functions("children"));
  expect_shares_of_children();
}

TEST_F(TruthTest, CodeThatWasMadeAtRunTimeIsNamedByThePerfMap) {
  PROFILE(functions("made"));
  expect_own_shares();
}

// The file is deleted before the program uses CPU time, and the process has ended before its names are looked up.
TEST_F(TruthTest, AProgramThatWasDeletedHasNames) {
  const std::string copy = in_folder("copy");
  std::filesystem::copy_file(program("functions"), copy);
  PROFILE({copy, "unlinked:three", "{}", kCpuMilliseconds});
  EXPECT_FALSE(std::filesystem::exists(copy));
  expect_own_shares();
}

TEST_F(TruthTest, AProgramInAnotherMountNamespaceHasNames) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount";
  const std::string mounted = in_folder("mounted");
  std::filesystem::create_directory(mounted);
  PROFILE({"/usr/bin/unshare", "-m", "/bin/sh", "-c",
           "mount -t tmpfs none \"$0\" && cp \"$1\" \"$0/program\" && exec \"$0/program\" three "
           "\"$2\" " +
               std::string(kCpuMilliseconds),
           mounted, program("functions"), "{}"});
  EXPECT_FALSE(std::filesystem::exists(mounted + "/program"));
  for (const char* const name : {"half", "third", "fifth"}) {
    EXPECT_NEAR(share(name), own_share(name), 2 * kTolerance) << name;
  }
}

TEST_F(TruthTest, WaitsAreFoundWhereTheProgramWaits) {
  PROFILE(functions("waits"), true);
  const std::uint64_t own = own_.at("long_wait") + own_.at("short_wait");
  const double both = share("long_wait") + share("short_wait");
  EXPECT_GT(both, 0.9);
  EXPECT_NEAR(share("long_wait") / both, part(own_.at("long_wait"), own), kTolerance);
}

class PerfTruthTest : public TruthTest {
 protected:
  PerfTruthTest() { bpf_ = false; }
};

TEST_F(PerfTruthTest, ThreeFunctionsHaveTheirShares) {
  PROFILE(functions("three"));
  expect_own_shares();
  EXPECT_LT(part(hottest_.unknown_frames, hottest_.frames), 0.01);
}

TEST_F(PerfTruthTest, ALibraryWithoutFramePointersHidesNoCaller) {
  PROFILE({program("caller"), "{}", kCpuMilliseconds});
  expect_own_shares();
  EXPECT_NEAR(share("main"), 1, kTolerance);
}

TEST_F(PerfTruthTest, EachThreadHasItsShare) {
  PROFILE(functions("threads"));
  expect_shares_of_threads();
}

TEST_F(PerfTruthTest, ChildrenThatLiveForMillisecondsHaveTheirShare) {
  PROFILE(functions("children"));
  expect_shares_of_children();
}

// Compares the profiles of the same programs with perf.
class LikePerfTest : public TruthTest {
 protected:
  // The shares of functions (with what they call) or of threads, according to perf. Empty if perf cannot take
  // stacks here. perf prints lines like "  49.76%  [.] (anonymous namespace)::half".
  std::map<std::string, double> shares_by_perf(const std::vector<std::string>& command,
                                               const std::string& columns) {
    std::string words =
        "perf record -q -F 999 --call-graph dwarf,8192 -o " + in_folder("data") + " --";
    for (const std::string& word : command) words += " " + (word == "{}" ? "/dev/null" : word);
    std::map<std::string, double> shares;
    if (!test::shell(words + " >/dev/null 2>&1").second) return shares;
    std::istringstream lines(test::shell("perf report -q -i " + in_folder("data") +
                                         " --stdio -g none --no-inline " + columns + " 2>/dev/null")
                                 .first);
    const std::regex form(R"(\s*([0-9.]+)%.*?([\w-]+)(\(.*)?\s*)");
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (std::regex_match(line, found, form))
        shares.try_emplace(found[2], std::stod(found[1]) / 100);
    }
    return shares;
  }
  void expect_shares_of_perf(const std::vector<std::string>& command) {
    const auto perf = shares_by_perf(command, "--children -F overhead_children,sym");
    if (perf.empty()) GTEST_SKIP() << "perf takes no stacks here";
    PROFILE(command);
    expect_own_shares();
    for (const auto& [name, ns] : own_) {
      if (name == "all") continue;
      ASSERT_TRUE(perf.contains(name)) << name;
      EXPECT_NEAR(share(name), perf.at(name), kTolerance) << name;
    }
  }
};

TEST_F(LikePerfTest, ThreeFunctionsHaveTheirShares) {
  expect_shares_of_perf(functions("three"));
}

TEST_F(LikePerfTest, ARecursiveFunctionCountsOnce) {
  expect_shares_of_perf(functions("recursion"));
}

TEST_F(LikePerfTest, ALibraryWithoutFramePointersHidesNoCaller) {
  expect_shares_of_perf({program("caller"), "{}", kCpuMilliseconds});
}

TEST_F(LikePerfTest, EachThreadHasItsShare) {
  const auto perf = shares_by_perf(functions("threads"), "--no-children -F overhead,comm");
  if (perf.empty()) GTEST_SKIP() << "perf takes no stacks here";
  PROFILE(functions("threads"));
  expect_shares_of_threads();
  EXPECT_NEAR(perf.at("seven-tenths"), own_share("seven-tenths"), kTolerance);
}

TEST_F(LikePerfTest, ChildrenThatLiveForMillisecondsHaveTheirShare) {
  const auto perf = shares_by_perf(functions("children"), "--children -F overhead_children,sym");
  if (perf.empty()) GTEST_SKIP() << "perf takes no stacks here";
  PROFILE(functions("children"));
  expect_shares_of_children();
  const double both = share("half") + share("fifth");
  EXPECT_NEAR(share("half") / both, perf.at("half") / (perf.at("half") + perf.at("fifth")),
              kTolerance);
}

// The name of a C++ function as Go's tool prints it: without parameters.
std::string as_go_shows(const std::string& name) {
  static const std::regex kParameters(R"(\([^()]*\)|<[^<>]*>)");
  const std::string shorter = std::regex_replace(name, kParameters, "");
  return shorter == name ? name : as_go_shows(shorter);
}

struct Times {
  std::uint64_t self = 0;
  std::uint64_t total = 0;
};

// Parses lines with these fields for each function: flat, flat%, sum%, cum, cum%, name.
std::map<std::string, Times> parse_top(const std::string& text) {
  std::map<std::string, Times> functions;
  std::istringstream lines(text.substr(std::min(text.find("cum%"), text.size())));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::array<std::string, 5> figures;
    for (std::string& figure : figures) words >> figure;
    std::string name;
    std::getline(words >> std::ws, name);
    if (const std::size_t at = name.find(" (inline)"); at != std::string::npos) name.resize(at);
    functions[as_go_shows(name)] = {std::stoull(figures[0]), std::stoull(figures[3])};
  }
  return functions;
}

// Go's tool must read the file and print the same values as our table.
TEST_F(TruthTest, PprofSaysTheSame) {
  if (!test::shell("go version").second) GTEST_SKIP() << "there is no go here";
  PROFILE({program("inlined"), "{}", kCpuMilliseconds});
  const std::string file = in_folder("profile.pb.gz");
  std::ofstream(file) << pprof(profile_, symbols_);
  const auto [text, good] =
      test::shell("HOME=" + folder_ + " go tool pprof -top -unit=ns " + file + " 2>&1");
  ASSERT_TRUE(good) << text;
  const std::map<std::string, Times> top = parse_top(text);
  int compared = 0;
  for (const HotFunction& function : hottest_.functions) {
    if (part(function.total.value, hottest_.sum.value) < 0.01)
      continue;  // Go's tool leaves out functions with small shares
    const auto found = top.find(as_go_shows(function.name));
    ASSERT_NE(found, top.end()) << function.name << " is not in\n" << text;
    EXPECT_EQ(found->second.self, function.self.value) << function.name;
    EXPECT_EQ(found->second.total, function.total.value) << function.name;
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

}  // namespace
}  // namespace kymo::stacks
