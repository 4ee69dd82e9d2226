// Where the time of a request went: in the trailer, in the checkpoint, and in the output of kymo.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/sanitizers.h"
#include "forget_images.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

// The scope of this name in a tree, or null if there is none.
json find(const json& tree, const std::string& name) {
  if (!tree.is_object()) return {};
  if (tree["name"] == name) return tree;
  for (const json& part : tree.value("components", json::array())) {
    if (json found = find(part, name); !found.is_null()) return found;
  }
  return {};
}

// The caller's tree has no ids of threads.
json without_threads(json scope) {
  scope.erase("thread");
  if (scope.contains("components")) {
    for (json& part : scope["components"]) part = without_threads(part);
  }
  return scope;
}

std::uint64_t duration(const json& scope) {
  return scope["duration_ns"].get<std::uint64_t>();
}

std::uint64_t start(const json& scope) {
  return scope["start_ns"].get<std::uint64_t>();
}

using Gaps = std::map<std::string, std::uint64_t>;

// Adds the times inside this scope that are in none of its parts, by the parts around them. Checks that the parts of
// each scope are inside it and follow each other. Scopes without parts have no gaps.
void add_gaps(const json& scope, const std::string& path, Gaps& gaps) {
  if (!scope.contains("components")) return;
  std::uint64_t at = start(scope);
  std::string before = "its start";
  for (const json& part : scope["components"]) {
    if (part.value("redundant", false)) continue;
    const std::string name = part["name"];
    EXPECT_GE(start(part), at) << name;
    gaps[path + ", from " + before + " to " + name] += start(part) - std::min(at, start(part));
    at = start(part) + duration(part);
    before = name;
    add_gaps(part, path + " / " + name, gaps);
  }
  const std::uint64_t end = start(scope) + duration(scope);
  EXPECT_LE(at, end) << scope["name"];
  gaps[path + ", from " + before + " to its end"] += end - std::min(at, end);
}

// Repeats `attempt`, which returns a tree, until what is in no scope is at most 5 %. Time that kymod's code uses
// outside of scopes is missing at the same place of each attempt, so that the shortest time at a place counts: a busy
// machine that takes the CPU away does so at other places each time.
template <typename Attempt>
void expect_accounted(Attempt attempt) {
  constexpr int kTries = 8;
  // For a short request, of which 5 % are shorter than a page fault. A sanitizer slows down what is between scopes.
  constexpr double kSmall_ns = KYMO_SANITIZER ? 50e6 : 1e6;
  Gaps shortest;
  double missing = 0;
  json timing;
  for (int i = 0; i < kTries; ++i) {
    timing = attempt();
    Gaps gaps;
    add_gaps(timing, timing["name"], gaps);
    if (i == 0) shortest = gaps;
    missing = 0;
    for (auto& [place, time] : shortest) {
      const auto now = gaps.find(place);
      time = now == gaps.end() ? 0 : std::min(time, now->second);
      missing += static_cast<double>(time);
    }
    if (missing <= std::max(kSmall_ns, 0.05 * static_cast<double>(duration(timing)))) return;
  }
  ADD_FAILURE() << missing << " ns are in no scope: " << json(shortest).dump(1) << timing.dump(1);
}

TEST(TimingTest, ADumpAndItsRestoreAreAccountedFor) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(512, "work"));
  json dump;
  json restore;
  expect_accounted([&] {
    dump = kymod.kymo_json({"dump", "process", "work"});
    restore = kymod.kymo_json({"restore", "process", dump["directory"]});
    return dump["timing"];
  });
  expect_accounted([&] {
    const json again = kymod.kymo_json({"dump", "process", "work"});
    restore = kymod.kymo_json({"restore", "process", again["directory"]});
    return restore["timing"];
  });
  const json& timing = dump["timing"];
  EXPECT_EQ(timing["name"], "dump");
  EXPECT_GE(duration(timing), dump["duration_ns"].get<std::uint64_t>());
  EXPECT_EQ(find(timing, "criu")["bytes"], dump["image_bytes"]);
  EXPECT_FALSE(find(timing, "criu after post-dump").is_null()) << timing.dump(1);
  EXPECT_GE(duration(find(timing, "criu")), dump["criu_time_ns"].get<std::uint64_t>());
  EXPECT_FALSE(find(timing, "end recording").is_null());
  EXPECT_FALSE(find(restore["timing"], "criu after pre-resume").is_null())
      << restore["timing"].dump(1);
}

// The phases from CRIU's log must be on the same clock, and inside the lifetime of CRIU.
TEST(TimingTest, TheLogsPhasesLieWithinCriusLife) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(64, "work"));
  const json dump = kymod.kymo_json({"dump", "process", "work"});
  const json restore = kymod.kymo_json({"restore", "process", dump["directory"]});
  const std::pair<const json*, const char*> requests[] = {
      {&dump["timing"], "criu's log: memory: writing pages"},
      {&restore["timing"], "criu's log: processes and files"}};
  for (const auto& [timing, name] : requests) {
    const json criu = find(*timing, "criu");
    const json phase = find(*timing, name);
    ASSERT_FALSE(phase.is_null()) << name << " in " << timing->dump(1);
    EXPECT_TRUE(phase["redundant"].get<bool>());
    EXPECT_GE(start(phase), start(criu));
    EXPECT_LE(start(phase) + duration(phase), start(criu) + duration(criu));
  }
}

TEST(TimingTest, PrintStatsPrintsPodmansJsonAndNothingElse) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const Outcome dumped = kymod.kymo({"dump", "process", "work", "--print-stats"});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const json dump = json::parse(dumped.out);
  EXPECT_EQ(dump.size(), 2U);
  const json& container = dump["container_statistics"][0];
  EXPECT_EQ(container["Id"], "work");
  EXPECT_EQ(container["RawInput"], "work");
  // No podman took part: a time of kymod must not have podman's name.
  EXPECT_GE(dump["kymod_checkpoint_duration"], container["runtime_checkpoint_duration"]);
  EXPECT_GE(container["runtime_checkpoint_duration"], container["criu_statistics"]["frozen_time"]);
  EXPECT_GE(container["criu_statistics"]["pages_written"], 8 * 256);
  EXPECT_FALSE(container["criu_statistics"].contains("pages_lazy"));

  const std::string checkpoint = kymod.job("work")["last_checkpoint"];
  const Outcome restored = kymod.kymo({"restore", "process", checkpoint, "--print-stats"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const json restore = json::parse(restored.out);
  EXPECT_GT(restore["kymod_restore_duration"], 0);
  EXPECT_GT(restore["container_statistics"][0]["criu_statistics"]["pages_restored"], 0);

  // kymo stats reads the same figures from the files.
  const Outcome read = run({KYMO_PROGRAM, "stats", checkpoint, "--json"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const json stats = json::parse(read.out);
  EXPECT_EQ(stats["dump"]["frozen_time_us"], container["criu_statistics"]["frozen_time"]);
  EXPECT_EQ(stats["pages"], container["criu_statistics"]["pages_written"]);
  std::uint64_t sum = 0;
  for (const json& phase : stats["dump_phases"]["phases"])
    sum += phase["duration_us"].get<std::uint64_t>();
  EXPECT_EQ(sum, stats["dump_phases"]["total_us"].get<std::uint64_t>());
}

TEST(TimingTest, TheTreeIsKeptWithTheCheckpointAndLiesOnTheRecordingsClock) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string dir = dump["directory"];
  const json record = json::parse(read_file(dir + "/checkpoint.json"));
  EXPECT_EQ(without_threads(find(record["timing"], "criu")), find(dump["timing"], "criu"));
  EXPECT_GT(record["timing"]["thread"], 0);
  EXPECT_EQ(find(record["timing"], "write record")["unfinished"], true);
  const json metadata = ended_metadata(dump["recording"]);
  EXPECT_EQ(without_threads(find(metadata["about"]["timing"], "criu")),
            find(dump["timing"], "criu"));
  // The recording begins at most one second before the request. No mark may be outside of it.
  const auto begin = metadata["start_monotonic_ns"].get<std::uint64_t>();
  EXPECT_LE(begin, start(dump["timing"]));
  EXPECT_GE(begin + 1'100'000'000, start(dump["timing"]));
  EXPECT_NE(kymod.kymo({"report", dir}).out.find("find process"), std::string::npos);
}

TEST(TimingTest, AFailedCallHasATreeThatEndsWhereItFailed) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const std::string path = kymod.path("failed.json");
  const Outcome outcome =
      kymod.kymo({"dump", "process", "4194303", "--profiling-path", path, "--profiling-detailed"});
  EXPECT_EQ(outcome.exit_code, 1);
  const json timing = json::parse(read_file(path));
  EXPECT_EQ(timing["format_version"], 1);
  const std::string error = timing["error"];
  EXPECT_EQ(outcome.err, "kymo: " + error + "\n");
  EXPECT_EQ(find(timing, "find process")["error"], error);
  EXPECT_EQ(find(timing, "validate").count("error"), 0U);
  EXPECT_TRUE(find(timing, "claim process").is_null());
  EXPECT_EQ(timing["components"].back()["name"], "conclude");
  EXPECT_NE(outcome.out.find("find process (failed)"), std::string::npos) << outcome.out;
}

TEST(TimingTest, ALongMessageArrivesWholeBesideTheTree) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  for (const std::size_t length : {std::size_t{1000}, std::size_t{3000}, std::size_t{4000}}) {
    const std::string name(length, 'x');
    const Outcome outcome = kymod.kymo({"dump", "process", name});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.err.rfind("kymo: no job is named " + name, 0), 0U)
        << length << ": " << outcome.err.substr(0, 100);
  }
}

TEST(TimingTest, AFailedRestoreSaysSoInCriusOwnScope) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string images = dump["images_directory"];
  forget_images(dump["directory"]);
  std::filesystem::resize_file(images + "/timens-0.img", 20);
  const std::string path = kymod.path("failed.json");
  expect_accounted([&] {
    const Outcome outcome =
        kymod.kymo({"restore", "process", dump["directory"], "--profiling-path", path});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.out, "") << "tables of what failed are shown with --profiling-detailed alone";
    json timing = json::parse(read_file(path));
    EXPECT_FALSE(find(timing, "criu")["error"].is_null()) << timing.dump(1);
    EXPECT_TRUE(find(timing, "register job").is_null());
    return timing;
  });
}

TEST(TimingTest, TablesAreShownAsAskedFor) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const Outcome run = kymod.kymo({"run", "process", "--name", "work", "--profiling-detailed",
                                  "--profiling-precision", "us", "--", "/bin/sleep", "100"});
  EXPECT_NE(run.out.find("start process"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(" µs "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("By category"), std::string::npos);
  const Outcome brief = kymod.kymo({"dump", "process", "work", "--leave-running"});
  EXPECT_EQ(brief.out.find("unaccounted"), std::string::npos) << brief.out;
  const Outcome plain = kymod.kymo({"dump", "process", "work", "--leave-running", "--profiling"});
  EXPECT_NE(plain.out.find("unaccounted"), std::string::npos) << plain.out;
  EXPECT_EQ(plain.out.find("By category"), std::string::npos) << plain.out;
  EXPECT_EQ(plain.out.find("The longest phase"), std::string::npos) << plain.out;
  for (const bool first : {true, false}) {  // the same before the verb
    std::vector<std::string> words{"dump", "process", "work", "--leave-running"};
    words.insert(first ? words.begin() : words.end(), "-v");
    const std::string all = kymod.kymo(words).out;
    for (const char* const part : {"The longest phase", "memory: writing pages", "  recording ",
                                   "CRIU's statistics", "unaccounted", "By category"}) {
      EXPECT_NE(all.find(part), std::string::npos) << part << ": " << all;
    }
  }
  const Outcome off =
      kymod.kymo({"dump", "process", "work", "--leave-running", "-v", "--no-profiling"});
  EXPECT_EQ(off.out.find("unaccounted"), std::string::npos);
  ASSERT_EQ(setenv("KYMO_PROFILING", "0", 1), 0);
  const Outcome by_environment = kymod.kymo({"dump", "process", "work", "--leave-running", "-v"});
  ASSERT_EQ(unsetenv("KYMO_PROFILING"), 0);
  EXPECT_EQ(by_environment.exit_code, 0);
  EXPECT_EQ(by_environment.out.find("unaccounted"), std::string::npos);
  std::ofstream(kymod.path("flags")) << "profiling-precision = s\nprofiling-detailed = true\n";
  ASSERT_EQ(setenv("KYMO_CONFIG", kymod.path("flags").c_str(), 1), 0);
  const Outcome by_file = kymod.kymo({"dump", "process", "work", "--leave-running"});
  ASSERT_EQ(unsetenv("KYMO_CONFIG"), 0);
  EXPECT_NE(by_file.out.find("By category"), std::string::npos) << by_file.err;
  const std::size_t tables = by_file.out.find("Where the time went");
  EXPECT_EQ(by_file.out.find(" ms  ", tables), std::string::npos) << by_file.out;
  const Outcome nowhere = kymod.kymo({"ps", "--profiling-path", "/nowhere/at/all.json"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("cannot write into /nowhere/at"), std::string::npos) << nowhere.err;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Checks what kymo prints without -v: at most five lines, and in addition the lines of the verdict about what stands
// out. It has no line that only describes the time. `verdict`: as kymod keeps it.
void expect_brief(const std::string& text, const json& verdict) {
  const std::vector<std::string> shown = lines_of(text);
  const json& findings = verdict["findings"];
  // A finding that took less than a fifth of the time does not stand out.
  const bool named = verdict["short"] != "nothing stands out";
  ASSERT_TRUE(!named || !findings.empty()) << verdict.dump(1);
  std::size_t causes = 0;
  bool stands_out = false;
  for (const std::string line : verdict["lines"]) {
    stands_out =
        stands_out || (named && line.starts_with(findings[0]["evidence"].get<std::string>()));
    const bool is_shown = std::find(shown.begin(), shown.end(), "  " + line) != shown.end();
    EXPECT_EQ(is_shown, stands_out) << line << "\nin: " << text;
    causes += stands_out ? 1 : 0;
  }
  EXPECT_EQ(stands_out, named) << verdict.dump(1);
  EXPECT_LE(shown.size(), 5 + causes) << text;
  EXPECT_EQ(text.find("unaccounted"), std::string::npos) << text;
}

// A dump of 70 ms of which nothing stood out printed 22 lines.
TEST(TimingTest, ADumpAndItsRestoreSayInAFewLinesWhatWasDone) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string dir = kymod.path("one");
  const Outcome dumped = kymod.kymo({"dump", "process", "work", "--dir", dir});
  const json record = json::parse(read_file(dir + "/checkpoint.json"));
  expect_brief(dumped.out, record["verdict"]);
  const std::vector<std::string> parts = {
      "(job work) in ", "; it stood still for ",      "  " + dir + "\n",
      " MiB (",         "kymo restore " + dir + "\n", "kymo explain " + dir};
  for (const std::string& part : parts) {
    EXPECT_NE(dumped.out.find(part), std::string::npos) << part << ": " << dumped.out;
  }
  const Outcome restored = kymod.kymo({"restore", dir});
  const json about = ended_metadata(dir + "/recordings/restore.tsv")["about"];
  expect_brief(restored.out, about["verdict"]);
  EXPECT_TRUE(restored.out.starts_with("restored pid ")) << restored.out;
  // The command that it names shows the lines that it left out.
  const Outcome explained = kymod.kymo({"explain", dir + "/recordings/restore.tsv"});
  EXPECT_NE(restored.out.find("kymo explain " + dir + "/recordings/restore.tsv"),
            std::string::npos);
  EXPECT_TRUE(explained.out.starts_with("  " + about["verdict"]["lines"][0].get<std::string>()))
      << explained.out << explained.err;
}

TEST(TimingTest, ADaemonThatTimesNothingSaysSo) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--no-profiling"});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string path = kymod.path("none.json");
  const Outcome outcome = kymod.kymo({"dump", "process", "work", "--profiling-path", path});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("--no-profiling"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string dir = kymod.job("work")["last_checkpoint"];
  EXPECT_FALSE(json::parse(read_file(dir + "/checkpoint.json")).contains("timing"));
}

}  // namespace
}  // namespace kymo::test
