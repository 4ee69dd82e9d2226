// Dumps: whatever stalls, fails or is killed in them, the process runs or is complete on disk, and
// what kymod says about it is true.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "e2e/faults/promises.h"
#include "e2e/faults/troubles.h"
#include "support/says.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

const Way kStreamWithDeadline{"AStreamWithDeadline", Kind::process, {"--deadline", "1m"}};
const Way kStreamWithChecksums{"AStreamWithChecksums", Kind::process, {"--checksums"}};
const Way kNoStreamWithDeadline{
    "NoStreamWithDeadline", Kind::process, {"--no-stream", "--deadline", "1m"}, true};
const Way kPodmanWithoutDeadline{"PodmanWithoutDeadline", Kind::podman, {}, true};
const Way kContainerdWithoutDeadline{"ContainerdWithoutDeadline", Kind::containerd, {}, true};
const Way kDockerWithoutDeadline{"DockerWithoutDeadline", Kind::docker, {}, true};
// All other ways are slow: of most mechanisms one way is enough in scripts/test.
const std::vector<Way> kOtherProcesses = slow<Way>(
    {that_runs_on(kStream), kStreamWithDeadline, kStreamWithChecksums, kNoStreamWithDeadline});
const std::vector<Way> kOtherDumps =
    kOtherProcesses +
    slow<Way>({kConnection, kRunc, kRuncWithoutDeadline, kPodman, kContainerd, kDocker,
               kPodmanWithoutDeadline, kContainerdWithoutDeadline, kDockerWithoutDeadline});
const std::vector<Point> kDumpPoints{kBeforeItFreezes, kWritesPages, kAllIsWritten, kEnds};
const std::vector<Point> kFewDumpPoints{slow(kBeforeItFreezes), kWritesPages, slow(kAllIsWritten),
                                        kEnds};
constexpr Point kFreezesCgroup{"WhenItFreezesTheCgroup", "freezing cgroup"};
constexpr Point kSeizes{"WhenItSeizes", "Seized task"};
constexpr Point kUnfreezes{"WhenItUnfreezes", "Unfreezing tasks into"};

// CRIU can wait for a disk only if it has a file on it open.
void expect_that_it_waits_for_no_disk(const Scene& scene) {
  const std::string proc = "/proc/" + std::to_string(scene.stopped);
  std::vector<fs::path> links{proc + "/cwd", proc + "/root"};
  for (const auto& open : fs::directory_iterator(proc + "/fd")) links.push_back(open.path());
  for (const fs::path& link : links) {
    const std::string file = fs::read_symlink(link);
    EXPECT_FALSE(file.starts_with(scene.disk->path())) << link << file;
    EXPECT_FALSE(scene.row.moody == Moody::state && file.starts_with(scene.kymod->state()))
        << link << file;
  }
}

// The disk gets the mood, and CRIU goes on.
void go_on_with(Scene& scene, const std::string& mood) {
  if (!scene.way.writes_itself) expect_that_it_waits_for_no_disk(scene);
  scene.disk->be(mood);
  scene.let_criu_go_on();
}

std::function<void(Scene&)> go_on_with(const std::string& mood) {
  return [mood](Scene& scene) { go_on_with(scene, mood); };
}

std::function<void(Scene&)> stall_and_cancel(const std::string& mood) {
  return [mood](Scene& scene) {
    go_on_with(scene, mood);
    if (std::string(scene.point.name) == kWritesPages.name && !scene.of_container()) {
      const pid_t writer = scene.way.writes_itself ? scene.stopped : scene.kymod->pid();
      EXPECT_TRUE(eventually([&] { return waits_for_disk(writer); })) << scene.kymod->log();
    }
    cancel(scene);
  };
}

// The disk takes no pages, and the dump is cancelled when it has begun to write them.
const Trouble kNoPages{"TheDiskTakesNoPages",
                       [](Scene& scene) {
                         EXPECT_TRUE(eventually([&] { return scene.disk->holds_pages(); }))
                             << scene.kymod->log();
                         cancel(scene);
                       },
                       disk_is("stalls-at-pages")};

// The kernel ends a killed kymod only when its disk has answered.
void kill_kymod_on_its_disk(Scene& scene) {
  kill(scene.kymod->pid(), SIGKILL);
  scene.disk->be("well");
  EXPECT_EQ(scene.kymod->stop(SIGKILL), -1);
}

void holds_the_process(Scene& scene) {
  const std::string criu = std::to_string(scene.stopped);
  EXPECT_SAYS(scene.answer.err, "is held by process " + (scene.of_container() ? "" : criu));
  EXPECT_SAYS_NOT(scene.answer.err, "runs on;");
  EXPECT_EQ(scene.checkpoint()["state"], "unconfirmed");
  if (scene.of_container()) return;
  EXPECT_SAYS(scene.job()["held"].get<std::string>(), criu);
  EXPECT_TRUE(eventually([&] {
    return scene.kymod->kymo({"metrics"}).out.find("processes_held") != std::string::npos;
  }));
  // Without its checkpoint, nobody would give back what CRIU has taken from the process.
  const Outcome kept = scene.kymod->kymo({"delete", scene.dir()});
  EXPECT_EQ(kept.exit_code, 1) << kept.out;
  EXPECT_SAYS(kept.err, "is held by process");
}

void holds_nothing(Scene& scene) {
  EXPECT_EQ(scene.job()["held"], "");
}

void refuses_a_restore(Scene& scene) {
  EXPECT_EQ(scene.kymod->kymo({"restore", scene.dir()}).exit_code, 1);
}

void says_that_it_died(Scene& scene) {
  EXPECT_SAYS(scene.answer.err, scene.of_container() ? "its CRIU was killed, or crashed"
                                                     : "was ended by signal 9 (SIGKILL)");
  const Outcome told = scene.kymod->kymo({"explain", scene.dir()});
  EXPECT_SAYS(told.out, "Failure: criu-died");
}

void says_what_was_settled(Scene& scene) {
  EXPECT_TRUE(scene.kymod->logs("dump of ")) << scene.kymod->log();
}

// About a container whose images are only in memory.
void keeps_its_images_in_memory(Scene& scene) {
  EXPECT_EQ(scene.checkpoint()["state"], "unconfirmed");
  const nlohmann::json job = scene.job();
  EXPECT_EQ(job["state"], "dumped");
  EXPECT_SAYS(job["pending"].get<std::string>(), "its whole images are only in memory");
  const Outcome refused = scene.kymod->kymo({"delete", scene.dir()});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_EQ(scene.checkpoint()["state"], "unconfirmed") << refused.err;
}

void is_not_said_to_run_and_is_cancelled(Scene& scene) {
  go_on_with(scene, "stalls");
  EXPECT_TRUE(eventually([&] { return scene.job()["state"] == "dumping"; }));
  EXPECT_SAYS(scene.job()["pending"].get<std::string>(), "its whole images are only in memory");
  EXPECT_SAYS(scene.kymod->kymo({"ps"}).out, " dumping  -  ");
  EXPECT_EQ(scene.kymod->kymo({"kill", scene.name()}).exit_code, 1);
  cancel(scene);
}

// Here, the program that serves the disk is stopped. A killed kymod ends when the disk has answered
// the one call that it may have taken.
void kill_kymod_on_a_dead_disk(Scene& scene) {
  scene.disk->stop();
  scene.let_criu_go_on();
  EXPECT_TRUE(eventually([&] { return scene.job()["state"] == "dumping"; }));
  kill(scene.kymod->pid(), SIGKILL);
  scene.disk->go_on();
  scene.kymod->stop(SIGKILL);
  scene.disk->stop();
  scene.wait_for_answer();
  scene.kymod->start();
}

std::string older(const Scene& scene) {
  return scene.folder.path() + "/older";
}

void restore_the_older_one(Scene& scene) {
  scene.disk->be("stalls");
  scene.let_criu_go_on();
  EXPECT_TRUE(eventually([&] { return scene.job()["state"] == "dumping"; }));
  const Outcome restored = scene.kymod->kymo({"restore", older(scene)});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  scene.disk->be("well");
}

void is_dumped_in_the_end(Scene& scene) {
  EXPECT_TRUE(eventually([&] {
    return scene.kymod->kymo(scene.dump_to(scene.dir())).exit_code == 0;
  })) << scene.kymod->log();
  is_restored(scene);
}

const std::vector<Check> kKept{runs_or_is_restored, leaves_nothing};
const std::vector<Check> kRunsOn{runs_on, leaves_nothing};

std::vector<Row> rows_of_image_disks() {
  const Row stalls{"kymod kills CRIU as above. The process runs on",
                   Request::dump,
                   std::vector<Way>{kStream, slow(kNoStream)} + kOtherDumps,
                   {kBeforeItFreezes, kAllIsWritten, kEnds},
                   {"TheDiskOfTheImagesStalls", stall_and_cancel("stalls")},
                   {tells_the_truth},
                   kKept,
                   {},
                   {},
                   Moody::images};
  Row runs = stalls;
  runs.ways = {kStream};
  runs.points = {kWritesPages};
  runs.meanwhile = {fails, says("; the process runs on"), listed("failed"), runs_on, holds_nothing};
  runs.afterwards = kRunsOn;
  Row takes_no_pages = runs;
  takes_no_pages.points = {kAtOnce};
  takes_no_pages.trouble = kNoPages;
  Row held = runs;
  held.keeps =
      "The process is then [held](jobs.md#when-the-outcome-of-a-dump-is-not-known) until the disk "
      "answers";
  held.ways = {kNoStream};
  held.meanwhile = {fails, holds_the_process};
  held.afterwards = {becomes("failed"), runs_on, holds_nothing, leaves_nothing};
  Row container_held = held;
  container_held.ways = {kRuncWithoutDeadline};
  container_held.points = {kAtOnce};
  container_held.trouble = kNoPages;
  Row container_runs = takes_no_pages;
  container_runs.ways = {that_runs_on(kRunc), slow(that_runs_on(kPodman)),
                         slow(that_runs_on(kContainerd)), slow(that_runs_on(kDocker))};
  container_runs.meanwhile = {fails, says("the container runs on"), listed("failed"), runs_on};
  Row in_memory = container_runs;
  in_memory.keeps =
      "While the disk of a checkpoint does not answer, it is listed as [`unconfirmed`]";
  in_memory.ways = slow<Way>({kRunc, kPodman});
  in_memory.meanwhile = {fails, says("its whole images are in memory, in "),
                         keeps_its_images_in_memory, kill_kymod_on_its_disk};
  in_memory.afterwards = {is_restored, leaves_nothing};
  Row said = in_memory;
  said.ways = {kRunc};
  said.points = {kEnds};
  said.trouble = {"TheDiskStallsBeforeItTakesTheImages", is_not_said_to_run_and_is_cancelled};
  said.meanwhile = {says("its whole images are in memory, in "), keeps_its_images_in_memory};
  Row said_by_the_next = said;
  said_by_the_next.trouble = {"TheDiskIsDeadAndKymodIsKilled", kill_kymod_on_a_dead_disk};
  said_by_the_next.meanwhile = {keeps_its_images_in_memory, [](Scene& scene) {
                                  EXPECT_SAYS(scene.checkpoint()["error"].get<std::string>(),
                                              "the disk has not taken its images yet");
                                }};
  Row confirmed = in_memory;
  confirmed.ways = {kNoStream};
  confirmed.points = {kEnds};
  confirmed.trouble = {"TheDiskOfTheImagesIsDead", [](Scene& scene) {
                         scene.disk->stop();
                         cancel(scene);
                       }};
  confirmed.meanwhile = {fails, says("it is not known yet whether they are whole"),
                         listed("unconfirmed"), refuses_a_restore};
  Row late = stalls;
  late.keeps = "The client gets an answer soon after the deadline";
  late.ways = {slow(kStream)};
  late.points = {kWritesPages};
  late.flags = {"--deadline", "12s"};
  late.trouble = {"TheDiskIsDeadUntilTheDeadline", [](Scene& scene) {
                    scene.disk->stop();
                    scene.let_criu_go_on();
                    scene.wait_for_answer();
                  }};
  late.meanwhile = {fails, says("runs on")};
  late.afterwards = {runs_on, is_dumped_again};
  const Row silent_already{
      "What has no such limit, such as a dump into the state directory, is given up after its "
      "[deadline]",
      Request::dump,
      {kStream},
      {kAtOnce},
      {"TheDiskIsSilentAlready", nullptr, disk_is("is-silent")},
      {fails, says("a disk does not answer"), says("; the process runs on"), runs_on, none_listed},
      {is_dumped_in_the_end, leaves_nothing},
      {"--deadline", "1s"},
      {},
      Moody::images};
  const Row restored_meanwhile{"what became of the process",
                               Request::dump,
                               {kNoStream},
                               {kEnds},
                               {"AnOlderCheckpointIsRestoredMeanwhile", restore_the_older_one,
                                [](Scene& scene) {
                                  std::vector<std::string> words = scene.dump_to(older(scene));
                                  words.emplace_back("--leave-running");
                                  static_cast<void>(scene.kymod->kymo_json(words));
                                }},
                               {succeeds, runs_on},
                               {runs_on},
                               {},
                               {},
                               Moody::images};
  Row silent = stalls;
  silent.ways = slow<Way>({kStream, kNoStream, kRunc});
  silent.points = kDumpPoints;
  silent.trouble = {"TheDiskOfTheImagesIsSilent",
                    stall_and_cancel("is-silent")};  // reads stall, too
  Row failing = stalls;
  failing.keeps = "A failed dump is listed as a failed checkpoint";
  failing.ways = std::vector<Way>{kStream, slow(kNoStream)} + kOtherDumps;
  failing.points = kDumpPoints;
  failing.trouble = {"TheDiskOfTheImagesFails", go_on_with("fails")};
  Row at_pages = stalls;
  at_pages.ways = kOtherDumps;
  at_pages.points = {kWritesPages};
  return {stalls,         at_pages,           runs,   takes_no_pages,   held,      container_held,
          container_runs, in_memory,          said,   said_by_the_next, confirmed, late,
          silent_already, restored_meanwhile, silent, failing};
}

std::vector<Row> rows_of_state_disks() {
  std::vector<Row> rows;
  const std::vector<Way> ways{kStream, slow(kConnection), slow(kNoStream), slow(kRunc)};
  const auto add = [&](const char* name, const char* mood, const std::vector<Way>& by) {
    rows.push_back({.keeps = "kymod keeps the outcome in memory, shows it, says so in the answer "
                             "and the log, and tries each second to store it",
                    .request = Request::dump,
                    .ways = by,
                    .points = kFewDumpPoints,
                    .trouble = {name, go_on_with(mood)},
                    .meanwhile = {tells_the_truth},
                    .afterwards = kKept,
                    .moody = Moody::state});
  };
  // Writes stall; or they fail; or reads stall, too; or only fsync(2) stalls.
  add("TheDiskOfTheStateStalls", "stalls", ways);
  add("TheDiskOfTheStateIsOverQuota", "is-over-quota", ways);
  add("TheDiskOfTheStateIsReadOnly", "is-read-only", slow(ways));
  add("TheDiskOfTheStateIsSilent", "is-silent", slow(ways));
  add("TheDiskOfTheStateDoesNotSync", "stalls-at-sync", slow(ways));
  // The next kymod does not have what this one keeps in memory.
  Row killed = rows.front();
  killed.keeps =
      "If kymod ends before that, the next kymod finds out again what became of the process";
  killed.ways = slow(ways);
  killed.trouble.name = "TheDiskOfTheStateStallsAndKymodIsKilled";
  killed.meanwhile = {tells_the_truth, kill_kymod_on_its_disk};
  rows.push_back(killed);
  return rows;
}

std::vector<Row> rows_of_criu() {
  const Row ends{"refuses, exits or is killed at any notification | the process runs on",
                 Request::dump,
                 {kStream},
                 {kAtOnce},
                 {"CriuEndsAtOnce", nullptr, criu_does("echo 'criu: out of order' >&2; exit 3")},
                 {fails, says("exited with status 3, saying: criu: out of order"),
                  says("; the process runs on"), listed("failed"), runs_on},
                 {runs_on, leaves_nothing, is_dumped_again}};
  Row crashes = ends;
  crashes.points = {kBeforeItFreezes};
  crashes.trouble = {"CriuCrashes", crash_criu};
  crashes.meanwhile = {fails,
                       says("was ended by signal 11 (SIGSEGV)"),
                       says("; the process runs on"),
                       failure("criu-died"),
                       listed("failed"),
                       runs_on};
  Row killed = crashes;
  killed.points = {kBeforeItFreezes, kWritesPages, kAllIsWritten};
  killed.trouble = {"CriuIsKilled", kill_criu};
  killed.meanwhile = {
      fails, says_that_it_died, says(" runs on"), failure("criu-died"), listed("failed"), runs_on};
  Row container = killed;
  container.points = {kWritesPages};
  container.ways = {kRuncWithoutDeadline, kPodmanWithoutDeadline, kContainerdWithoutDeadline};
  container.afterwards = kRunsOn;
  Row at_the_end = killed;
  at_the_end.points = {kEnds};
  at_the_end.meanwhile = {tells_the_truth};
  at_the_end.afterwards = kKept;
  Row others = at_the_end;
  others.ways = std::vector<Way>{kConnection, slow(kRunc), slow(kNoStream)} + kOtherProcesses;
  others.points = {kWritesPages, kAllIsWritten, slow(kBeforeItFreezes), slow(kEnds)};
  Row container_at_others = at_the_end;
  container_at_others.ways = {slow(kRuncWithoutDeadline)};
  container_at_others.points = {kBeforeItFreezes, kAllIsWritten, kEnds};
  Row hangs = ends;
  hangs.keeps =
      "kymod ends CRIU at the deadline or after `--criu-timeout` (default: one hour). The process "
      "runs on";
  // Only a CRIU that hangs gets a short timeout: a busy machine needs more time.
  hangs.daemon = {"--criu-timeout", "5"};
  hangs.meanwhile[1] = says("did not answer within 5 s and was killed");
  hangs.trouble = {"CriuHangs", nullptr, criu_does("sleep 300")};
  Row stops = hangs;
  stops.points = {slow(unseen(kBeforeItFreezes)), unseen(kWritesPages),
                  slow(unseen(kAllIsWritten))};
  stops.trouble = {"CriuHangs", nullptr};
  return {ends, crashes, killed, container, at_the_end, others, container_at_others, hangs, stops};
}

std::vector<Row> rows_of_kills() {
  const Row killed{
      "afterwards, no process stays frozen and no incomplete checkpoint is listed as complete",
      Request::dump,
      {kStream},
      {kBegins, kBeforeItFreezes, kWritesPages, kAllIsWritten, kUnfreezes, kEnds},
      {"KymodIsKilled", kill_kymod},
      {},
      {says("the dump may still go on and end well"), says_what_was_settled, runs_or_is_restored,
       record_agrees, leaves_nothing}};
  Row others = killed;
  others.ways = std::vector<Way>{kConnection,
                                 that_runs_on(kStream),
                                 slow(kNoStream),
                                 slow(kStreamWithDeadline),
                                 slow(kStreamWithChecksums),
                                 slow(kNoStreamWithDeadline)};
  others.points = kFewDumpPoints;
  Row runc = killed;
  runc.ways = {kRunc, slow(kRuncWithoutDeadline), slow(kPodman), slow(kDocker)};
  runc.points = {
      kBeforeCriuBegins,   slow(kBegins), slow(kFreezesCgroup), slow(kSeizes), kWritesPages,
      slow(kAllIsWritten), kEnds};
  Row late = killed;
  late.trouble = {"KymodIsKilledUntilCriuHasEnded", kill_kymod_late};
  late.ways = {that_runs_on(kRuncWithoutDeadline), slow(that_runs_on(kPodmanWithoutDeadline)),
               slow(that_runs_on(kDockerWithoutDeadline))};
  late.points = {slow(kBeforeCriuBegins), kBegins,       slow(kFreezesCgroup), kSeizes,
                 slow(kWritesPages),      kAllIsWritten, slow(kEnds)};
  return {killed, others, runc, late};
}

std::vector<Row> rows_of_killed_runtimes() {
  const Row runc{
      "podman's runc or conmon in a dump: the container runs on, or its checkpoint is complete",
      Request::dump,
      {kPodmanWithoutDeadline},
      {kWritesPages, kEnds},
      {"PodmansRuncIsKilled", kill_parent("runc")},
      {},
      kKept};
  Row conmon = runc;
  conmon.points = {slow(kSeizes), slow(kWritesPages), kAllIsWritten, slow(kEnds)};
  conmon.trouble = {"ConmonIsKilled", kill_parent_of_container("conmon")};
  return {runc, conmon};
}

}  // namespace

std::vector<Row> rows_of_dumps() {
  return rows_of({rows_of_image_disks(), rows_of_state_disks(), rows_of_criu(), rows_of_kills(),
                  rows_of_killed_runtimes()});
}

}  // namespace kymo::test
