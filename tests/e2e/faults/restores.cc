// Restores: whatever stalls or is killed in them, there is exactly one copy of the process, or its
// checkpoint is complete and can be restored, and what kymod says about it is true.

#include <gtest/gtest.h>

#include "base/proc/process.h"
#include "e2e/faults/promises.h"
#include "e2e/faults/troubles.h"
#include "support/says.h"

namespace kymo::test {
namespace {

const Way kCompressed{"ACompressedProcess", Kind::process, {"--compression", "zstd"}};
const Way kRestoredRunc{"Runc", Kind::runc, {}};
const Way kRestoredPodman{"Podman", Kind::podman, {}};
const Way kRestoredContainerd{"Containerd", Kind::containerd, {}};
const Way kRestoredDocker{"Docker", Kind::docker, {}};
const std::vector<Way> kServers{kRestoredPodman, kRestoredContainerd, kRestoredDocker};
const std::vector<Way> kOtherRestores = slow<Way>({kCompressed, kRestoredRunc}) + slow(kServers);
const std::vector<Point> kRestorePoints{kBeforeItForks, kMemoryIsBack, kBeforeItResumes, kRuns};
const std::vector<Point> kFewRestorePoints{slow(kBeforeItForks), kMemoryIsBack,
                                           slow(kBeforeItResumes), kRuns};
constexpr Point kGhostIsMade{"WhenADeletedFileIsBack", "Remap rpath is", Point::At::kChild};
constexpr int kAsNeeded = 30;

Way with_deleted_file(Way way) {
  way.has_deleted_file = true;
  return way;
}

// Nobody is left who could clean up. What CRIU restores is there before it resumes.
void kill_all_at_once(Scene& scene) {
  const std::string point = scene.point.name;
  EXPECT_TRUE((point != kMemoryIsBack.name && point != kBeforeItResumes.name) ||
              !scene.counting->copies().empty())
      << "nothing is half restored";
  kill_all(scene);
}

void has_ended_criu(Scene& scene) {
  EXPECT_FALSE(probe::process_lives(scene.stopped, 0)) << scene.answer.err << scene.kymod->log();
}

void has_no_ghost(Scene& scene) {
  EXPECT_FALSE(scene.counting->has_ghost()) << scene.answer.err << scene.kymod->log();
}

std::vector<Row> rows_of_restores_on_disks() {
  const Row for_a_while{"the same. What CRIU had restored ends once the disk answers",
                        Request::restore,
                        std::vector<Way>{kProcess, slow(kConnection)} + kOtherRestores,
                        kFewRestorePoints,
                        {"TheDiskStallsForAWhile",
                         [](Scene& scene) {
                           scene.disk->be("is-silent");
                           scene.let_criu_go_on();
                           scene.disk->be("well");
                         }},
                        {tells_the_truth},
                        {runs_after_restores(kAsNeeded), leaves_nothing},
                        {},
                        {},
                        Moody::images};
  Row stalls = for_a_while;
  stalls.ways = slow(stalls.ways);
  stalls.trouble = {"TheDiskStalls", [](Scene& scene) {
                      scene.disk->be("is-silent");
                      scene.let_criu_go_on();
                      cancel(scene);
                    }};
  Row state = for_a_while;
  state.keeps = "The answer comes within 15 seconds after the outcome is known";
  state.trouble = {"TheDiskOfTheStateStalls", [](Scene& scene) {
                     scene.disk->be("is-silent");
                     scene.let_criu_go_on();
                   }};
  state.moody = Moody::state;
  Row silent_already = for_a_while;
  silent_already.ways = {kProcess};
  silent_already.points = {kAtOnce};
  silent_already.trouble = {"TheDiskIsSilentAlready", nullptr, disk_is("is-silent")};
  silent_already.flags = {"--deadline", "1s"};
  silent_already.meanwhile = {fails, says("a disk does not answer"), says("; nothing was restored"),
                              job_is("dumped"), is_gone};
  return {for_a_while, stalls, state, silent_already};
}

std::vector<Row> rows_of_killed_restores() {
  const Row kymod{"ends what is left of it. The images can be restored again",
                  Request::restore,
                  {kProcess, slow(kCompressed)},
                  kRestorePoints + std::vector<Point>{slow(kBegins)},
                  {"KymodIsKilled", kill_kymod},
                  {},
                  {runs_after_restores(kAsNeeded), leaves_nothing}};
  Row connection = kymod;
  connection.ways = {kConnection};
  connection.points = {slow(kBeforeItForks), kMemoryIsBack};
  connection.afterwards.emplace_back(has_one_connection);
  Row open_connection = kymod;
  open_connection.ways = {slow(kConnection)};
  open_connection.points = {kBeforeItResumes, kRuns};
  Row runc = kymod;
  runc.ways = {kRestoredRunc};
  runc.points = kFewRestorePoints + std::vector<Point>{slow(kBegins)};
  Row runc_alone = kymod;
  runc_alone.keeps = "runc or podman runs and CRIU has not begun";
  runc_alone.ways = {kRestoredRunc, slow(kRestoredPodman), slow(kRestoredDocker)};
  runc_alone.points = {kBeforeCriuBegins};
  Row servers = kymod;
  servers.keeps =
      "looks each second whether the container runs, and adds the restore to the [history]";
  servers.ways = kServers;
  servers.points = {slow(kBegins), slow(kBeforeItForks), slow(kMemoryIsBack), kBeforeItResumes,
                    slow(kRuns)};
  Row all = kymod;
  all.ways = {kProcess, slow(kConnection)};
  all.points = {slow(kBegins), slow(kBeforeItForks), kMemoryIsBack, kBeforeItResumes, slow(kRuns)};
  all.trouble = {"AllAreKilled", kill_all_at_once};
  Row all_of_containers = all;
  // At later points podman takes a container that runs for ended, because its conmon was killed.
  all_of_containers.ways = {kRestoredRunc, slow(kRestoredPodman)};
  all_of_containers.points = {slow(kBeforeItForks), kMemoryIsBack};
  Row all_of_runc = all;
  all_of_runc.ways = {slow(kRestoredRunc)};
  all_of_runc.points = {kBegins, kBeforeItResumes, kRuns};
  all_of_runc.afterwards = {runs_after_restores(kAsNeeded)};
  Row runtime{"A runc of kymod's own after the container resumes: the restore succeeds",
              Request::restore,
              {kRestoredRunc},
              {kRuns},
              {"KymodsRuncIsKilled", kill_parent("runc")},
              {succeeds},
              {runs_on, is_dumped_again, leaves_nothing}};
  Row runtime_before = runtime;
  runtime_before.points = {slow(kBeforeItForks), kMemoryIsBack, slow(kBeforeItResumes)};
  runtime_before.meanwhile = {tells_the_truth};
  runtime_before.afterwards = {runs_after_restores(1), leaves_nothing};
  Row stuck = runtime_before;
  // CRIU stands still, as if it waited for something, until kymod ends it.
  stuck.points = {kBeforeItResumes};
  stuck.trouble = {"KymodsRuncIsKilledAndCriuIsStuck", kill_parent("runc", true)};
  stuck.meanwhile = {has_ended_criu, tells_the_truth};
  stuck.afterwards = {runs_after_restores(1)};
  return {kymod, connection,        open_connection, runc,    runc_alone,     servers,
          all,   all_of_containers, all_of_runc,     runtime, runtime_before, stuck};
}

std::vector<Row> rows_of_criu_in_restores() {
  const std::string again = "; nothing of the process is left, and it can be restored again";
  const Row ends{"kymod ends what CRIU had restored. The images can be restored again",
                 Request::restore,
                 {kProcess},
                 {kAtOnce},
                 {"CriuEndsAtOnce", nullptr, criu_does("echo 'criu: out of order' >&2; exit 3")},
                 {fails, says("exited with status 3, saying: criu: out of order"), says(again),
                  is_gone, job_is("dumped")},
                 {runs_after_restores(1), leaves_nothing}};
  Row killed = ends;
  killed.ways = {kProcess, slow(kCompressed)};
  killed.points = {kBeforeItForks, kMemoryIsBack, kBeforeItResumes};
  killed.trouble = {"CriuIsKilled", kill_criu};
  killed.meanwhile[1] = says("was ended by signal 9 (SIGKILL)");
  Row connection = killed;
  // CRIU unblocks the network after these points. Later, the other end of the connection sees its
  // end.
  connection.ways = {kConnection};
  connection.points = {slow(kBeforeItForks), kMemoryIsBack};
  connection.afterwards.emplace_back(has_one_connection);
  Row open_connection = killed;
  open_connection.ways = {slow(kConnection)};
  open_connection.points = {kBeforeItResumes};
  Row when_it_runs = killed;
  when_it_runs.ways = {kProcess, slow(kConnection), slow(kCompressed)};
  when_it_runs.points = {kRuns};
  when_it_runs.meanwhile = {tells_the_truth};
  Row container = when_it_runs;
  container.keeps =
      "kymod ends what CRIU has restored, by the container's cgroup, before it answers";
  container.ways = {kRestoredRunc};
  container.points = {slow(kBeforeItForks), kMemoryIsBack, kBeforeItResumes, slow(kRuns)};
  container.afterwards = {runs_after_restores(kAsNeeded), leaves_nothing};
  Row servers = container;
  servers.ways = kServers;
  servers.points = {slow(kBeforeItForks), kMemoryIsBack, slow(kBeforeItResumes), slow(kRuns)};
  Row hangs = ends;
  hangs.keeps = "the same, with what CRIU had restored";
  hangs.daemon = {"--criu-timeout", "5"};
  hangs.trouble = {"CriuHangs", nullptr, criu_does("sleep 300")};
  hangs.meanwhile = {fails, says("did not answer within 5 s and was killed"), does_not_say(again),
                     is_gone, job_is("dumped")};
  Row stops = hangs;
  stops.points = {slow(unseen(kBeforeItForks)), unseen(kMemoryIsBack),
                  slow(unseen(kBeforeItResumes))};
  stops.trouble = {"CriuHangs", nullptr};
  Row late = stops;
  late.ways = {kProcess, kCompressed};
  late.points = {unseen(kMemoryIsBack)};
  late.daemon = {};
  late.flags = {"--deadline", "1s"};
  late.trouble = {"CriuHangsUntilTheDeadline", nullptr};
  late.meanwhile = {fails, says("it did not end within its deadline of 1 s"), is_gone,
                    job_is("dumped")};
  Row container_late = late;
  container_late.ways = std::vector<Way>{kRestoredRunc} + slow(kServers);
  container_late.points = {unseen(kBeforeItForks)};
  container_late.flags = {"--deadline", "3s"};
  container_late.meanwhile = {fails, says("did not end within its deadline of 3 s"), is_gone};
  container_late.afterwards = {runs_after_restores(kAsNeeded), leaves_nothing};
  return {ends,  killed, connection, open_connection, when_it_runs, container, servers,
          hangs, stops,  late,       container_late};
}

// CRIU makes a deleted file that is open again, and removes its name later.
std::vector<Row> rows_of_ghosts() {
  const Row cancelled{"with which the next restore would fail",
                      Request::restore,
                      {with_deleted_file(kProcess), with_deleted_file(kRestoredRunc)},
                      {kGhostIsMade},
                      {"ItIsCancelled", cancel},
                      {fails, has_no_ghost},
                      {has_no_ghost, runs_after_restores(1), leaves_nothing}};
  Row killed = cancelled;
  killed.ways.back().slow = true;
  killed.trouble = {"CriuIsKilled", kill_criu};
  Row all = cancelled;
  all.trouble = {"AllAreKilled", kill_all};
  all.meanwhile = {};
  Row podman = cancelled;
  podman.keeps =
      "In the root of a podman, containerd or Docker container they stay; the restore that finds "
      "them fails, and CRIU removes them then";
  podman.ways = {slow(with_deleted_file(kRestoredPodman))};
  podman.meanwhile = {fails};
  podman.afterwards = {runs_after_restores(2), leaves_nothing};
  Row all_of_podman = podman;
  all_of_podman.ways = {slow(with_deleted_file(kRestoredPodman))};
  all_of_podman.trouble = all.trouble;
  all_of_podman.meanwhile = {};
  return {cancelled, killed, all, podman, all_of_podman};
}

}  // namespace

std::vector<Row> rows_of_restores() {
  return rows_of({rows_of_restores_on_disks(), rows_of_killed_restores(),
                  rows_of_criu_in_restores(), rows_of_ghosts()});
}

}  // namespace kymo::test
