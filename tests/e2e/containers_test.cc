// Containers through kymod, with the programs that a user has.

#include "support/containers.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include "counted_job.h"
#include "forget_images.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/containerd.h"
#include "support/real_criu.h"
#include "support/stop_points.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

std::string word_of(Kind kind) {
  return kind == Kind::runc         ? "runc"
         : kind == Kind::podman     ? "podman"
         : kind == Kind::containerd ? "containerd"
                                    : "docker";
}

// Expects that a restore has not changed the images, and that nothing is missing which they name.
void expect_whole(const Kymod& kymod, const std::string& dir) {
  nlohmann::json seen = kymod.kymo_json({"verify", dir});
  EXPECT_EQ(seen["whole"], true) << seen;
  EXPECT_GT(seen["listed_images"], 10);
  EXPECT_EQ(forget_images(dir).size(), seen["listed_images"]);
  seen = kymod.kymo_json({"verify", dir});
  EXPECT_EQ(seen["whole"], true) << seen;
  EXPECT_TRUE(seen["listed_images"].is_null());
}

// Checks what a deadline does to a dump of this container. `flags` are those that `kymo dump` needs
// for it.
void expect_deadline_foretold_and_kept(const Kymod& kymod, const std::string& kind,
                                       const std::string& name) {
  const auto dump = [&](const std::string& deadline) {
    return kymod.kymo({"dump", kind, name, "--leave-running", "--deadline", deadline});
  };
  const Outcome first = dump("30s");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("the deadline of 30 s: there is no earlier dump"), std::string::npos)
      << first.err;
  // Shorter than a dump by any container runtime, also on a fast machine.
  const Outcome late = dump("20ms");
  EXPECT_EQ(late.exit_code, 1);
  for (const char* said : {"the dump will probably not meet the deadline of 20 ms",
                           "did not end within its deadline of 20 ms", "the container runs on"}) {
    EXPECT_NE(late.err.find(said), std::string::npos) << late.err;
  }
  const nlohmann::json failed = kymod.kymo_json({"checkpoints"}).back();
  EXPECT_EQ(failed["state"], "failed") << failed;
  EXPECT_FALSE(fs::exists(failed["directory"].get<std::string>() + "/images"));
  EXPECT_FALSE(fs::exists(failed["directory"].get<std::string>() + "/images.partial"));
  const nlohmann::json in_time =
      kymod.kymo_json({"dump", kind, name, "--leave-running", "--deadline", "1m"});
  EXPECT_NE(in_time["forecast"].get<std::string>().find("the dump will probably meet"),
            std::string::npos)
      << in_time;
}

// A container of each runtime, through kymod.
class ContainerOfEachTest : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Of, ContainerOfEachTest,
                         testing::Values(Kind::runc, Kind::podman, Kind::containerd, Kind::docker),
                         [](const auto& one) { return word_of(one.param); });

TEST_P(ContainerOfEachTest, IsRunListedDumpedFrozenAndRestored) {
  KYMO_NEEDS(GetParam());
  CountedJob started(GetParam());
  const Kymod& kymod = *started.kymod;
  Counting& counting = *started.counting;
  const std::string runtime = word_of(GetParam());
  const bool keeps_statistics = GetParam() != Kind::docker;
  nlohmann::json job = kymod.kymo_json({"ps"}).at(0);
  EXPECT_EQ(job["name"], counting.name());
  EXPECT_EQ(job["runtime"], runtime);
  EXPECT_EQ(job["state"], "running");
  for (const char* option : {"--stream", "--sync"}) {
    const Outcome refused = kymod.kymo({"dump", runtime, counting.name(), option});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(std::string(option) + " is for plain processes"), std::string::npos)
        << refused.err;
  }
  const Outcome unknown = kymod.kymo({"dump", runtime, "kymo-nobody"});
  EXPECT_EQ(unknown.exit_code, 1) << unknown.out;
  EXPECT_EQ(kymod.kymo({"freeze", "process", counting.name()}).exit_code, 0);
  EXPECT_EQ(kymod.kymo({"unfreeze", "process", counting.name()}).exit_code, 0);
  EXPECT_TRUE(counting.counts());

  const std::string dir = started.dir();
  const nlohmann::json dump =
      kymod.kymo_json({"dump", runtime, counting.name(), "--checksums", "--dir", dir});
  EXPECT_EQ(dump["runtime"], runtime);
  EXPECT_EQ(dump["job"], counting.name());
  EXPECT_EQ(dump["container"], job["container"]);
  EXPECT_EQ(dump["warnings"], nlohmann::json::array());
  EXPECT_GT(dump["image_bytes"].get<int>(), 4096);
  const auto took = [&dump](const char* what) { return dump[what].get<std::uint64_t>(); };
  EXPECT_LT(took("command_time_ns"), took("duration_ns"));
  if (keeps_statistics) {
    EXPECT_GT(dump["stats"]["pages_written"].get<int>(), 0);
    EXPECT_GT(dump["stats"]["frozen_time_us"].get<int>(), 0);
    EXPECT_LT(took("criu_time_ns"), took("command_time_ns"));
    EXPECT_GT(took("criu_time_ns"), 0U);
    for (const char* file : {"stats-dump", "dump.log"}) {
      EXPECT_TRUE(fs::exists(fs::path(dir) / "work" / file)) << file;
    }
  }
  if (keeps_statistics && GetParam() != Kind::containerd) {
    // The freezing time counts, too.
    const nlohmann::json& stats = dump["stats"];
    EXPECT_EQ(took("stood_still_ns"), 1000 * (stats["freezing_time_us"].get<std::uint64_t>() +
                                              stats["frozen_time_us"].get<std::uint64_t>()));
  }
  EXPECT_EQ(files_for_others(dir), "");
  const nlohmann::json record = nlohmann::json::parse(read_file(dir + "/checkpoint.json"));
  EXPECT_EQ(record["container"]["runtime"], runtime);
  EXPECT_EQ(record["criu"]["path"], started.criu.path()) << "the criu that the runtime starts";
  EXPECT_EQ(record.value("stats", nlohmann::json()), dump["stats"]);
  const nlohmann::json metadata = ended_metadata(dump["recording"]);
  EXPECT_EQ(metadata["about"]["container"]["name"], counting.name());
  EXPECT_EQ(metadata["marks"][0]["name"], "pre-dump");
  EXPECT_TRUE(eventually([&] { return counting.copies().empty(); }));
  EXPECT_EQ(kymod.kymo_json({"ps"}).at(0)["state"], "dumped");

  const nlohmann::json restored = kymod.kymo_json({"restore", dir});
  EXPECT_EQ(restored["container"], dump["container"]);
  EXPECT_EQ(restored["warnings"], nlohmann::json::array());
  if (keeps_statistics) {
    EXPECT_GT(restored["stats"]["pages_restored"].get<int>(), 0);
  }
  EXPECT_TRUE(counting.counts());
  job = kymod.kymo_json({"ps"}).at(0);
  EXPECT_EQ(job["state"], "running");
  EXPECT_EQ(job["pid"], restored["pid"]);
  expect_whole(kymod, dir);
}

TEST_P(ContainerOfEachTest, ADeadlineIsForetoldAndKeptOrItRunsOn) {
  KYMO_NEEDS(GetParam());
  const CountedJob job(GetParam());
  expect_deadline_foretold_and_kept(*job.kymod, word_of(GetParam()), job.counting->name());
  EXPECT_TRUE(job.counting->counts());
}

// Two processes, each of which writes the longest time between two looks at the clock into /gap-1
// or /gap-2, in hundredths of a second.
constexpr char kLoops[] =
    R"(loop() { most=-1; last=; while true; do read now rest </proc/uptime; now=${now%.*}${now#*.};
  gap=$((now-${last:-$now})); last=$now; if [ $gap -gt $most ]; then most=$gap; echo $most 1<>/gap-$1; fi;
  sleep 0.01; done; }; loop 1 & loop 2)";

// Here CRIU is held in the middle of it.
TEST(ContainersTest, AStandstillThatItsProcessesSeeWhileTheyAreBeingFrozenIsCounted) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const std::string bundle = make_bundle(runc.folder(), "loops", {"/bin/sh", "-c", kLoops});
  ASSERT_TRUE(runc.runc("run -d --bundle '" + bundle + "' kymo-web"));
  const auto gap_ms = [&](int loop) {
    const std::string file = bundle + "/rootfs/gap-" + std::to_string(loop);
    return fs::exists(file) ? 10 * std::atol(read_file(file).c_str()) : -1;
  };
  ASSERT_TRUE(eventually([&] { return gap_ms(1) >= 0 && gap_ms(2) >= 0; }));
  const BreakableCriu criu;
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu.path()});
  kymod.start();
  criu.break_at("Seized task", SIGSTOP);
  auto dump = std::async(std::launch::async, [&] {
    return kymod.kymo_json(
        {"dump", "runc", "kymo-web", "--leave-running", "--dir", kymod.path("one")});
  });
  const pid_t stopped = criu.stopped_unless([&] { return has_ended(dump); });
  ASSERT_NE(stopped, 0) << kymod.log();
  // Both loops stand still from before this until after it. The pause is the time that is measured.
  const std::uint64_t begin_ns = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::uint64_t held_ns = monotonic_ns() - begin_ns;
  criu.mend();
  ::kill(stopped, SIGCONT);
  const nlohmann::json made = dump.get();
  EXPECT_GE(made["stood_still_ns"].get<std::uint64_t>(), held_ns) << made["stats"];
  EXPECT_LE(made["stood_still_ns"].get<std::uint64_t>(), made["duration_ns"].get<std::uint64_t>());
  const auto held_ms = static_cast<long>(held_ns / 1'000'000);
  for (const int loop : {1, 2}) {
    EXPECT_TRUE(eventually([&] { return gap_ms(loop) + 10 >= held_ms; }))
        << "loop " << loop << " saw at most " << gap_ms(loop) << " ms, not " << held_ms;
  }
}

TEST(ContainersTest, ADumpOfARuncContainerHasItsRecordingAndItsTree) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  runc.start("kymo-web");
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const Outcome refused = kymod.kymo({"dump", "runc", "kymo-web", "--stream"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--stream is for plain processes"), std::string::npos) << refused.err;
  const nlohmann::json dump =
      kymod.kymo_json({"dump", "runc", "kymo-web", "--leave-running", "--dir", kymod.path("one")});
  EXPECT_EQ(runc.status("kymo-web"), "running");

  const nlohmann::json metadata = ended_metadata(dump["recording"]);
  EXPECT_EQ(metadata["about"]["container"]["id"], "kymo-web");
  std::vector<std::string> marks;
  for (const auto& mark : metadata["marks"]) marks.push_back(mark["name"]);
  EXPECT_EQ(marks, (std::vector<std::string>{"pre-dump", "post-dump", "request ended"}));
  auto columns = read_recording(dump["recording"]);
  const auto& bytes = columns["image_written_bytes"];
  EXPECT_EQ(bytes.back() - bytes.front(), dump["image_bytes"].get<std::uint64_t>());

  const nlohmann::json record =
      nlohmann::json::parse(read_file(kymod.path("one") + "/checkpoint.json"));
  const std::string tree = record["timing"].dump();
  for (const char* scope :
       {"\"runc\"", "criu's log: freeze", "criu's log: memory: writing pages"}) {
    EXPECT_NE(tree.find(scope), std::string::npos) << scope << ": " << record["timing"].dump(1);
  }
  const Outcome stats = kymod.kymo({"stats", kymod.path("one")});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_NE(stats.out.find("pages_written"), std::string::npos) << stats.out;
}

nlohmann::json run_web(const Kymod& kymod, const std::string& bundle) {
  return kymod.kymo_json({"run", "runc", "--bundle", bundle, "--id", "kymo-web", "--name", "web"});
}

TEST(ContainersTest, ARuncContainerIsAJobFrozenDumpedAndRestoredByItsName) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  const nlohmann::json job = run_web(kymod, bundle);
  EXPECT_EQ(job["name"], "web");
  EXPECT_EQ(job["state"], "running");
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  EXPECT_EQ(kymod.kymo_json({"history", "runc:kymo-web"})["job"], "web");
  EXPECT_EQ(kymod.kymo({"checkpoints", "runc:kymo-web"}).exit_code, 0);
  const Outcome other = kymod.kymo({"history", "podman:kymo-web"});
  EXPECT_EQ(other.err, "kymo: no job is named podman:kymo-web: kymo ps lists the jobs\n");

  const nlohmann::json frozen = kymod.kymo_json({"freeze", "process", "web"});
  EXPECT_EQ(frozen["runtime"], "runc");
  EXPECT_NE(frozen["how"].get<std::string>().find("runc pause"), std::string::npos);
  EXPECT_EQ(runc.status("kymo-web"), "paused");
  EXPECT_EQ(kymod.kymo({"freeze", "runc", "kymo-web"}).exit_code, 1);
  EXPECT_EQ(kymod.kymo({"unfreeze", "runc", "kymo-web"}).exit_code, 0);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));

  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "web"});
  EXPECT_EQ(dump["runtime"], "runc") << "the job must be known as a container";
  EXPECT_EQ(dump["job"], "web");
  EXPECT_EQ(kymod.job("web")["state"], "dumped");
  // Its history was found by this name, but not its newest dump.
  EXPECT_EQ(kymod.kymo_json({"explain", "runc:kymo-web"}), kymod.kymo_json({"explain", "web"}));
  const Outcome wrong = kymod.kymo({"restore", "podman", dump["directory"]});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("dumped as a runc"), std::string::npos) << wrong.err;
  EXPECT_EQ(kymod.kymo({"restore", dump["directory"]}).exit_code, 0);
  EXPECT_EQ(kymod.job("web")["state"], "running");
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainersTest, ACopyOfARuncContainerThatRunsIsAJobOfItsOwn) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  Kymod kymod({"--runc-root", runc.path()});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  const nlohmann::json job = run_web(kymod, bundle);
  const nlohmann::json dump = kymod.kymo_json({"dump", "runc", "kymo-web", "--leave-running"});
  const nlohmann::json copy =
      kymod.kymo_json({"restore", "runc", dump["directory"], "--id", "kymo-web-2"});
  EXPECT_EQ(copy["job"], "kymo-web-2");
  EXPECT_EQ(runc.status("kymo-web-2"), "running");
  EXPECT_EQ(kymod.job("web")["pid"], job["pid"]);
  EXPECT_EQ(kymod.job("kymo-web-2")["pid"], copy["pid"]);
  const std::string noted = kymod.state() + "/jobs/" +
                            kymod.job("kymo-web-2")["id"].get<std::string>() + "/container.json";
  EXPECT_TRUE(std::filesystem::exists(noted)) << noted;
  EXPECT_EQ(kymod.kymo({"kill", "kymo-web-2", "--signal", "KILL", "--wait"}).exit_code, 0);
  EXPECT_EQ(kymod.job("web")["state"], "running");
  const Outcome deleted = kymod.kymo({"delete", "kymo-web-2"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(noted).parent_path()));
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainersTest, AJobFollowsItsContainerThroughPodmansOwnRestore) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  const std::string root = podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const nlohmann::json job = kymod.kymo_json({"adopt", "podman", "kymo-e2e", "--name", "shop"});
  static_cast<void>(podman.podman("container checkpoint kymo-e2e"));
  ASSERT_TRUE(eventually([&] { return kymod.job("shop")["state"] == "exited"; })) << kymod.log();
  static_cast<void>(podman.podman("container restore kymo-e2e"));
  ASSERT_EQ(podman.status("kymo-e2e"), "running");
  ASSERT_TRUE(eventually([&] { return kymod.job("shop")["state"] == "running"; })) << kymod.log();
  const std::string pid = podman.podman("container inspect --format '{{.State.Pid}}' kymo-e2e");
  EXPECT_EQ(kymod.job("shop")["pid"], std::stoi(pid));
  EXPECT_EQ(kymod.job("shop")["container"], job["container"]);
  const Outcome twice = kymod.kymo({"adopt", "podman", "kymo-e2e"});
  EXPECT_NE(twice.err.find("it is job shop already"), std::string::npos) << twice.err;
  // The job knows only the id of the container.
  const Outcome dumped = kymod.kymo({"dump", "process", "shop", "--dir", kymod.path("one")});
  EXPECT_NE(dumped.out.find("podman container kymo-e2e, pid "), std::string::npos) << dumped.out;
  const Outcome restored = kymod.kymo({"restore", kymod.path("one")});
  EXPECT_NE(restored.out.find("podman container kymo-e2e, pid "), std::string::npos)
      << restored.out;
  EXPECT_NE(restored.out.find("(job shop)"), std::string::npos) << restored.out;
  EXPECT_NE(restored.out.find("away for"), std::string::npos) << restored.out;
  const Outcome twice_restored = kymod.kymo({"restore", kymod.path("one")});
  EXPECT_NE(twice_restored.err.find("restore container kymo-e2e: it runs"), std::string::npos)
      << twice_restored.err;
  EXPECT_EQ(kymod.kymo_json({"ps"}).size(), 1U);
  EXPECT_TRUE(counts_on(root));
}

TEST(ContainersTest, AJobThatWasStartedFollowsItsContainer) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  std::vector<std::string> run{"run", "podman", "--name", "kymo-e2e", "--"};
  for (const std::string& word : podman.arguments("kymo-e2e")) run.push_back(word);
  const nlohmann::json ran = kymod.kymo_json(run);
  EXPECT_EQ(ran["name"], "kymo-e2e");
  const std::string id = podman.podman("container inspect --format '{{.Id}}' kymo-e2e");
  EXPECT_EQ(kymod.job("kymo-e2e")["container"], id.substr(0, id.find('\n')));
  ASSERT_TRUE(counts_on(podman.root_of("kymo-e2e")));
  static_cast<void>(podman.podman("container checkpoint kymo-e2e"));
  ASSERT_TRUE(eventually([&] { return kymod.job("kymo-e2e")["state"] == "exited"; }))
      << kymod.log();
  static_cast<void>(podman.podman("container restore kymo-e2e"));
  ASSERT_EQ(podman.status("kymo-e2e"), "running");
  EXPECT_TRUE(eventually([&] { return kymod.job("kymo-e2e")["state"] == "running"; }))
      << kymod.log();
}

// What iptables prints in the network namespace of the process.
std::string rules_of(pid_t pid) {
  const std::string command =
      "nsenter --net=/proc/" + std::to_string(pid) + "/ns/net iptables -w -S 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> rules(popen(command.c_str(), "r"), &pclose);
  std::string text(1 << 16, '\0');
  text.resize(fread(text.data(), 1, text.size(), rules.get()));
  return text;
}

// CRIU blocks a network namespace while it dumps it.
TEST(ContainersTest, ACancellationGivesARuncContainerItsNetworkBack) {
  KYMO_NEEDS_RUNC();
  const RuncFolder runc;
  const BreakableCriu criu;
  Kymod kymod({"--runc-root", runc.path(), "--criu", criu.path()});
  kymod.start();
  const std::string bundle = make_bundle(runc.folder(), "bundle", counting_command());
  nlohmann::json spec = nlohmann::json::parse(read_file(bundle + "/config.json"));
  spec["linux"]["namespaces"].push_back({{"type", "network"}});
  std::ofstream(bundle + "/config.json") << spec;
  const pid_t pid = run_web(kymod, bundle)["pid"];
  criu.break_at("Dumping pages (type", SIGSTOP);
  Outcome outcome;
  std::thread client([&] {
    outcome = kymod.kymo({"dump", "runc", "kymo-web", "--dir", kymod.path("c")});
  });
  EXPECT_NE(criu.stopped(), 0) << kymod.log();
  EXPECT_NE(rules_of(pid).find("-j CRIU"), std::string::npos) << rules_of(pid);
  EXPECT_EQ(kymod.kymo({"cancel", "web"}).exit_code, 0);
  client.join();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("the container runs on"), std::string::npos) << outcome.err;
  EXPECT_EQ(rules_of(pid).find("CRIU"), std::string::npos) << rules_of(pid);
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
}

TEST(ContainersTest, AProcessIsFrozenAndRefusedToBeDumpedMeanwhile) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.churn(8, "work");
  EXPECT_EQ(kymod.kymo({"freeze", "process", "work"}).exit_code, 0);
  const Outcome dump = kymod.kymo({"dump", "process", "work", "--dir", kymod.path("one")});
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_NE(dump.err.find("it is frozen; kymo unfreeze process"), std::string::npos) << dump.err;
  EXPECT_EQ(kymod.kymo({"unfreeze", "process", "work"}).exit_code, 0);
  EXPECT_TRUE(kymod.goes_on(job));
  const Outcome again = kymod.kymo({"unfreeze", "process", "work"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("it is not frozen"), std::string::npos) << again.err;
}

// podman leaves some figures out if they are 0, so they may be in one output and not in the other.
TEST(ContainersTest, PrintStatsSaysWhatPodmansOwnSaysOfTheSameContainer) {
  KYMO_NEEDS_PODMAN();
  PodmanContainers podman;
  podman.start("kymo-e2e");
  Kymod kymod({"--podman-flags=" + PodmanContainers::flags()});
  kymod.start();
  const Outcome printed = kymod.kymo({"dump", "podman", "kymo-e2e", "--leave-running",
                                      "--print-stats", "--dir", kymod.path("one")});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto ours = nlohmann::json::parse(printed.out);
  // What podman printed to kymod, for the same dump.
  const auto same = nlohmann::json::parse(read_file(kymod.path("one/work/podman-checkpoint.json")));
  // What podman prints for a dump that it makes itself.
  const auto theirs = nlohmann::json::parse(
      podman.podman("container checkpoint --leave-running --print-stats kymo-e2e"));

  const auto names = [](const nlohmann::json& object) {
    std::vector<std::string> all;
    for (const auto& [name, value] : object.items()) all.push_back(name);
    return all;
  };
  std::vector<std::string> added = names(ours);
  std::erase(added, "kymod_checkpoint_duration");
  EXPECT_EQ(added, names(theirs));
  const auto& container = ours["container_statistics"][0];
  const auto& its = theirs["container_statistics"][0];
  EXPECT_EQ(names(container), names(its));
  EXPECT_EQ(names(container["criu_statistics"]), names(its["criu_statistics"]));
  EXPECT_EQ(container["Id"], its["Id"]);
  EXPECT_EQ(container["RawInput"], its["RawInput"]);

  const auto& told = same["container_statistics"][0];
  EXPECT_EQ(container["criu_statistics"], told["criu_statistics"]);
  EXPECT_EQ(container["runtime_checkpoint_duration"], told["runtime_checkpoint_duration"]);
  EXPECT_EQ(ours["podman_checkpoint_duration"], same["podman_checkpoint_duration"]);
  EXPECT_GT(ours["kymod_checkpoint_duration"], ours["podman_checkpoint_duration"]);
  // On cgroup version 1, the freezing time is the interval in which CRIU polls the freezer. It is
  // the same in both dumps.
  EXPECT_GT(its["criu_statistics"]["frozen_time"].get<std::uint64_t>(), 0U);
  EXPECT_LT(its["criu_statistics"]["pages_written"].get<std::uint64_t>(),
            container["criu_statistics"]["pages_written"].get<std::uint64_t>() * 2);
  EXPECT_GT(its["criu_statistics"]["pages_written"].get<std::uint64_t>() * 2,
            container["criu_statistics"]["pages_written"].get<std::uint64_t>());
}

// containerd and its runc say nothing of the cause.
TEST(ContainersTest, AFailedDumpOfAContainerOfContainerdIsForeseenAndExplained) {
  KYMO_NEEDS_CONTAINERD();
  const Containerd containerd(fs::path(criu_path()).parent_path());
  Kymod kymod;
  kymod.start();
  const nlohmann::json job = kymod.kymo_json(
      {"run", "containerd", "--name", "kymo-ghost", "--", Containerd::image(), "/bin/sh", "-c",
       "exec 3>/ghost; /bin/busybox dd if=/dev/zero bs=1M count=3 >&3 2>/dev/null; "
       "/bin/busybox rm /ghost; " +
           counting_loop()});
  const std::string root = "/proc/" + std::to_string(job["pid"].get<int>()) + "/root";
  ASSERT_TRUE(counts_on(root));
  const Outcome looked = kymod.kymo({"check", "containerd", "kymo-ghost"});
  EXPECT_EQ(looked.exit_code, 1) << looked.out << looked.err;
  EXPECT_NE(looked.out.find("(failure ghost-big)"), std::string::npos) << looked.out;
  const Outcome forced =
      kymod.kymo({"dump", "containerd", "kymo-ghost", "--force", "--dir", kymod.path("one")});
  EXPECT_EQ(forced.exit_code, 1);
  EXPECT_NE(forced.err.find("(failure ghost-big; CRIU: "), std::string::npos) << forced.err;
  EXPECT_TRUE(counts_on(root));
}

}  // namespace
}  // namespace kymo::test
