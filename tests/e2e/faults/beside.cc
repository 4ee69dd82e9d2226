// Other requests and signals while a request runs: what would disturb it is refused in one line,
// and changes nothing.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/proc/process.h"
#include "e2e/faults/promises.h"
#include "e2e/faults/troubles.h"
#include "support/says.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

void expect_refused(const Kymod& kymod, const std::vector<std::string>& words,
                    const std::string& why) {
  const Outcome refused = kymod.kymo(words);
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_SAYS(refused.err, why);
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

std::string copy_of(const Scene& scene) {
  return scene.folder.path() + "/copy";
}

std::string link_to(const Scene& scene) {
  return scene.folder.path() + "/link";
}

void copy(Scene& scene) {
  wait_until_recorded(scene.dir(), {"dump"});
  fs::copy(scene.dir(), copy_of(scene), fs::copy_options::recursive);
}

// The client of the request, which is a child of the test.
pid_t client() {
  const std::vector<pid_t> children = probe::children_of(getpid()).value();
  for (const pid_t child : children) {
    const Result<probe::Process> seen = probe::read_process(child);
    if (seen && seen->name == "kymo") return child;
  }
  ADD_FAILURE() << "there is no client";
  return 0;
}

void signal_client(Scene& /*scene*/, int signal) {
  if (const pid_t found = client(); found > 0) kill(found, signal);
}

Check counts_in(const std::string& metric) {
  return [metric](Scene& scene) {
    const auto value_of = [&](const std::string& column) -> std::uint64_t {
      for (const nlohmann::json& one : scene.kymod->kymo_json({"metrics"})) {
        for (const nlohmann::json& value : one["values"]) {
          if (value["column"] == column) return value["value"];
        }
      }
      ADD_FAILURE() << "no " << column;
      return 0;
    };
    EXPECT_EQ(value_of(metric + "[cancelled]"), 1U);
    EXPECT_EQ(value_of(metric + "[error]"), 0U);
  };
}

void cancels(Scene& scene) {
  const Outcome cancelled = scene.kymod->kymo({"cancel", scene.name()});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.err;
  EXPECT_SAYS(cancelled.out, " of job kymo-web was cancelled");
  scene.wait_for_answer();
  expect_refused(*scene.kymod, {"cancel", scene.name()}, "no dump or restore of it is running");
}

std::vector<Row> rows_of_cancellations() {
  const Row dump{.keeps = "So do not kill CRIU by hand. Use `kymo cancel`",
                 .request = Request::dump,
                 .ways = {kStream},
                 .points = {kWritesPages},
                 .trouble = {"ItIsCancelled", cancels},
                 .meanwhile = {fails, says("the request was cancelled; the process runs on"),
                               listed("failed"), counts_in("dumps")},
                 .afterwards = {runs_on, leaves_nothing}};
  Row interrupted = dump;
  interrupted.trouble = {"TheClientIsInterrupted",
                         [](Scene& scene) { signal_client(scene, SIGINT); }};
  interrupted.meanwhile = {[](Scene& scene) { EXPECT_EQ(scene.answer.exit_code, 130); },
                           says("cancelling: waiting for kymod"),
                           says("the request was cancelled; the process runs on"),
                           counts_in("dumps")};
  Row restore = dump;
  restore.request = Request::restore;
  restore.ways = {kProcess};
  restore.points = {kMemoryIsBack};
  restore.trouble.make = [](Scene& scene) {
    EXPECT_FALSE(scene.counting->copies().empty()) << "the process was not restored";
    cancels(scene);
  };
  restore.meanwhile = {fails, says("the request was cancelled"), is_gone, job_is("dumped"),
                       counts_in("restores")};
  restore.afterwards = {runs_after_restores(1), leaves_nothing};
  // Nobody is told how the dump ends.
  Row killed = dump;
  killed.keeps = "its dump or restore goes on, and `kymo checkpoints` lists the result";
  killed.points = {slow(kBeforeItFreezes), kWritesPages, slow(kAllIsWritten), kEnds};
  killed.trouble = {"TheClientIsKilled", [](Scene& scene) {
                      signal_client(scene, SIGKILL);
                      scene.wait_for_answer();
                      scene.let_criu_go_on();
                    }};
  killed.meanwhile = {becomes("complete")};
  killed.afterwards = {is_restored, leaves_nothing};
  return {dump, interrupted, restore, killed};
}

// The request goes on after the deed, and succeeds.
Row while_it_runs(Row row, const char* name, const std::function<void(Scene&)>& deed,
                  const std::function<void(Scene&)>& prepare = nullptr) {
  row.trouble = {name,
                 [deed](Scene& scene) {
                   deed(scene);
                   scene.let_criu_go_on();
                 },
                 prepare};
  return row;
}

std::vector<Row> rows_of_other_requests() {
  const Row dump{.keeps =
                     "Two kymods of one machine do not dump the same process at the same time: the "
                     "second one refuses",
                 .request = Request::dump,
                 .ways = {that_runs_on(kStream)},
                 .points = {kWritesPages},
                 .meanwhile = {succeeds, listed("complete")},
                 .afterwards = {runs_on}};
  Row connection = dump;
  connection.ways = {kConnection};
  connection.afterwards = {is_restored, has_one_connection};
  Row restore = dump;
  restore.keeps =
      "While a runtime still restores a container, the next kymod neither deletes the checkpoint "
      "nor restores it again";
  restore.request = Request::restore;
  restore.ways = {kProcess};
  restore.points = {kBeforeItForks};
  restore.meanwhile = {succeeds};
  Row of_runc = restore;
  of_runc.ways = {{"Runc", Kind::runc, {}}};
  const auto by_another = [](const char* suffix) {
    return [suffix](Scene& scene) {
      scene.restore_from = scene.dir() + suffix;
      scene.requester = &scene.second();
    };
  };
  const auto deletes = [](Scene& scene) {
    expect_refused(*scene.kymod, {"delete", scene.dir()}, "another kymod");
    expect_refused(*scene.kymod, {"delete", scene.name(), "--all"}, "another kymod");
    EXPECT_TRUE(fs::exists(scene.dir() + "/images/inventory.img"));
  };
  Row deleted_by_another = while_it_runs(restore, "AnotherKymodsDeletion", deletes, by_another(""));
  deleted_by_another.afterwards = {[](Scene& scene) { EXPECT_TRUE(scene.counting->counts()); }};
  return {while_it_runs(dump, "OthersOfItsProcessAndDirectory",
                        [](Scene& scene) {
                          expect_refused(*scene.kymod, {"dump", "process", scene.name()},
                                         "is being dumped already");
                          static_cast<void>(scene.kymod->kymo_json(
                              {"run", "process", "--name", "other", "--", "sleep", "1000"}));
                          expect_refused(*scene.kymod,
                                         {"dump", "process", "other", "--dir", scene.dir()},
                                         "is in use by another request");
                          expect_refused(*scene.kymod, {"restore", "process", scene.dir()},
                                         "another request uses it");
                          static_cast<void>(scene.kymod->kymo_json({"dump", "process", "other"}));
                          static_cast<void>(scene.kymod->kymo_json({"delete", "other", "--all"}));
                        }),
          // `--force` is needed because the check before a dump would refuse a traced process.
          while_it_runs(connection, "ADumpByAnotherKymod",
                        [](Scene& scene) {
                          expect_refused(scene.second(),
                                         {"dump", "process", scene.job()["pid"].dump(),
                                          "--tcp-established", "--force"},
                                         "it is being dumped by another kymod");
                          EXPECT_TRUE(scene.second().kymo_json({"checkpoints"}).empty());
                        }),
          // Before its processes are there, only kymod's claims can refuse the others.
          while_it_runs(
              restore, "OthersOfItsCheckpoint",
              [](Scene& scene) {
                const Kymod& kymod = *scene.kymod;
                expect_refused(kymod, {"restore", scene.dir()},
                               "restore " + scene.dir() + ": another request uses it");
                expect_refused(kymod, {"restore", link_to(scene)},
                               "restore " + link_to(scene) + ": another request uses it");
                expect_refused(kymod, {"restore", copy_of(scene)},
                               "/images: another restore that is running needs the same pids");
                expect_refused(kymod, {"delete", scene.name(), "--all"},
                               "delete job kymo-web: it is being restored: wait for that to end");
                EXPECT_TRUE(fs::exists(scene.dir() + "/images/inventory.img"));
              },
              [](Scene& scene) {
                copy(scene);
                fs::create_directory_symlink(scene.dir(), link_to(scene));
              }),
          while_it_runs(
              restore, "ADeletionAndItComesThroughALink",
              [](Scene& scene) {
                expect_refused(*scene.kymod, {"delete", scene.dir()},
                               "a dump or restore uses " + scene.dir());
                EXPECT_TRUE(fs::exists(scene.dir() + "/images/inventory.img"));
              },
              [](Scene& scene) {
                fs::create_directory_symlink(scene.dir(), link_to(scene));
                scene.restore_from = link_to(scene);
              }),
          while_it_runs(
              restore, "ADeletionOfItsJobAndItComesFromACopy",
              [](Scene& scene) {
                expect_refused(*scene.kymod, {"delete", scene.name()}, "it is being restored");
              },
              [](Scene& scene) {
                copy(scene);
                EXPECT_EQ(scene.kymod->kymo({"delete", scene.dir()}).exit_code, 0);
                scene.restore_from = copy_of(scene);
              }),
          deleted_by_another,
          [&] {
            Row row = deleted_by_another;
            row.trouble.name = "AnotherKymodsDeletionAndItsImagesAreNamed";
            row.trouble.prepare = by_another("/images");
            return row;
          }(),
          while_it_runs(
              of_runc, "OthersOfItsContainer",
              [](Scene& scene) {
                const std::string why = "is under way, here or by another kymod";
                expect_refused(scene.second(), {"restore", scene.dir()}, why);
                expect_refused(scene.second(), {"restore", copy_of(scene)}, why);
                expect_refused(*scene.kymod, {"restore", copy_of(scene)}, why);
              },
              copy)};
}

}  // namespace

std::vector<Row> rows_of_requests_beside() {
  return rows_of({rows_of_cancellations(), rows_of_other_requests()});
}

}  // namespace kymo::test
