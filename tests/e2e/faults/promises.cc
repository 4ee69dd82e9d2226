#include "e2e/faults/promises.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/memory_images.h"
#include "checkpoint/runtimes/shared/scratch.h"
#include "checkpoint/runtimes/shared/session.h"
#include "support/says.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A process, except kymod and the test, that has a file below this folder open, and that file.
// Empty: there is none.
std::string user_of(const std::string& folder, pid_t kymod) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(kymod) || name == std::to_string(getpid())) continue;
    for (const auto& open : fs::directory_iterator(entry.path() / "fd", gone)) {
      const std::string file = fs::read_symlink(open, gone);
      if (file.starts_with(folder + "/")) return name + " " + file;
    }
  }
  return {};
}

// Requests are refused until kymod has seen that the disk of its state answers.
Outcome restored(Scene& scene, bool patiently) {
  Outcome outcome = scene.kymod->kymo({"restore", scene.dir()});
  if (patiently) {
    eventually([&] {
      if (outcome.exit_code != 0) outcome = scene.kymod->kymo({"restore", scene.dir()});
      return outcome.exit_code == 0;
    });
  }
  return outcome;
}

void expect_it_counts_further(Scene& scene) {
  EXPECT_TRUE(scene.counting->counts()) << scene.answer.err << scene.kymod->log();
  EXPECT_GT(scene.counting->number(), scene.number);
}

}  // namespace

void fails(Scene& scene) {
  EXPECT_EQ(scene.answer.exit_code, 1) << scene.answer.out << scene.answer.err;
  // What may be said before the request begins.
  const bool warned = scene.answer.err.starts_with("kymo: kymod cannot say whether the dump");
  EXPECT_EQ(std::count(scene.answer.err.begin(), scene.answer.err.end(), '\n'), warned ? 2 : 1)
      << scene.answer.err;
}

void succeeds(Scene& scene) {
  EXPECT_EQ(scene.answer.exit_code, 0) << scene.answer.err << scene.kymod->log();
}

Check says(std::string text) {
  return [text = std::move(text)](Scene& scene) { EXPECT_SAYS(scene.answer.err, text); };
}

Check does_not_say(std::string text) {
  return [text = std::move(text)](Scene& scene) { EXPECT_SAYS_NOT(scene.answer.err, text); };
}

void tells_the_truth(Scene& scene) {
  const std::string& err = scene.answer.err;
  const std::string state = scene.checkpoint()["state"];
  if (scene.row.request == Request::restore) {
    EXPECT_EQ(state, "complete");
    EXPECT_TRUE(scene.answer.exit_code != 0 || scene.counting->counts()) << err;
    return;
  }
  const bool held = err.find(" is held by process ") != std::string::npos;
  const bool left = err.find("so it is not known yet what became of it") != std::string::npos;
  EXPECT_TRUE(scene.way.writes_itself || !held) << err;
  if (err.find("runs on") != std::string::npos && !held) {
    EXPECT_TRUE(scene.counting->counts()) << err;
    EXPECT_EQ(state, "failed") << err;
  } else if (scene.answer.exit_code == 0) {
    EXPECT_EQ(state, "complete");
  } else {
    // A request that its caller has left goes on.
    EXPECT_TRUE(state == "unconfirmed" || (left && state == "started")) << state << err;
  }
}

Check listed(std::string state) {
  return [state = std::move(state)](Scene& scene) {
    EXPECT_EQ(scene.checkpoint()["state"], state) << scene.answer.err << scene.kymod->log();
  };
}

Check becomes(std::string state) {
  return [state = std::move(state)](Scene& scene) {
    EXPECT_TRUE(eventually([&] { return scene.checkpoint()["state"] == state; }))
        << scene.checkpoint().dump(1) << scene.kymod->log();
  };
}

void record_agrees(Scene& scene) {
  EXPECT_EQ(scene.record()["state"], scene.checkpoint()["state"]) << scene.record().dump(1);
}

Check failure(std::string id) {
  return [id = std::move(id)](Scene& scene) {
    EXPECT_EQ(scene.record()["failure"]["id"], id) << scene.record().dump(1);
  };
}

void none_listed(Scene& scene) {
  EXPECT_TRUE(scene.kymod->kymo_json({"checkpoints"}).empty());
}

Check job_is(std::string state) {
  return [state = std::move(state)](Scene& scene) {
    json job;
    // A runtime may have finished the restore alone. kymod then sees it the next time it looks.
    EXPECT_TRUE(eventually([&] { return (job = scene.job())["state"] == state; })) << job.dump(1);
    if (state == "running") {
      EXPECT_EQ(std::vector<pid_t>{job["pid"].get<pid_t>()}, scene.counting->copies());
    }
    EXPECT_EQ(scene.kymod->kymo_json({"ps"}).size(), 1U) << "it must not have two jobs";
  };
}

void runs_on(Scene& scene) {
  expect_it_counts_further(scene);
  job_is("running")(scene);
}

void is_gone(Scene& scene) {
  EXPECT_TRUE(eventually([&] { return scene.counting->copies().empty(); }))
      << scene.answer.err << scene.kymod->log();
}

void is_restored(Scene& scene) {
  becomes("complete")(scene);
  job_is("dumped")(scene);
  scene.counting->forget();
  const Outcome outcome = restored(scene, scene.row.moody == Moody::state);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << scene.kymod->log();
  runs_on(scene);
}

void runs_or_is_restored(Scene& scene) {
  std::string state;
  ASSERT_TRUE(eventually([&] {
    state = scene.checkpoint()["state"];
    return state == "failed" || state == "complete";
  })) << scene.kymod->log();
  if (scene.answer.err.find("kymod lists the checkpoint as complete") != std::string::npos) {
    EXPECT_EQ(state, "complete") << scene.kymod->log();
  }
  if (state == "failed") return runs_on(scene);
  if (!scene.way.runs_on) return is_restored(scene);
  // It still runs and uses its pids, so it cannot be restored.
  const Outcome verified = scene.kymod->kymo({"verify", scene.dir()});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  runs_on(scene);
}

Check runs_after_restores(int most) {
  return [most](Scene& scene) {
    Outcome outcome;
    int restores = 0;
    EXPECT_TRUE(eventually([&] {
      if (restores <= most && scene.counting->counts()) return true;
      if (restores == most) return false;
      ++restores;
      return (outcome = restored(scene, false)).exit_code == 0;
    })) << scene.answer.err
        << outcome.err << scene.kymod->log();
    EXPECT_EQ(scene.checkpoint()["state"], "complete");
    runs_on(scene);
  };
}

void has_one_connection(Scene& scene) {
  EXPECT_LE(scene.counting->connections(), 1);
}

void is_dumped_again(Scene& scene) {
  scene.number = scene.counting->number();
  const std::string dir = scene.dir() + "-again";
  const Outcome dumped = scene.kymod->kymo(scene.dump_to(dir));
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err << scene.kymod->log();
  scene.counting->forget();
  is_gone(scene);
  const Outcome back = scene.kymod->kymo({"restore", dir});
  EXPECT_EQ(back.exit_code, 0) << back.err << scene.kymod->log();
  runs_on(scene);
}

void leaves_nothing(Scene& scene) {
  const std::string partial = scene.dir() + "/images.partial";
  const json listed = scene.checkpoint();
  EXPECT_TRUE(eventually([&] { return !fs::exists(partial); })) << scene.kymod->log();
  EXPECT_EQ(fs::exists(scene.dir() + "/images/inventory.img") ||
                fs::exists(scene.dir() + "/images/inventory.img.zst"),
            listed["state"] == "complete")
      << listed;
  if (listed["state"] != "none") {
    EXPECT_EQ(runtime::find_memory_images(listed["id"]), "");
    for (const std::string& base : runtime::scratch_bases()) {
      const std::string images = base + "/images-" + listed["id"].get<std::string>() + "/images";
      EXPECT_TRUE(runtime::sessions_with("KYMO_DUMP=" + images).empty());
    }
  }
  EXPECT_TRUE(runtime::sessions_with("KYMO_DUMP=" + partial).empty());
  std::string user;
  // The runtime of a container may have its input open.
  EXPECT_TRUE(scene.of_container() || eventually([&] {
                return (user = user_of(scene.kymod->folder().path(), scene.kymod->pid())).empty() &&
                       (user = user_of(scene.dir(), scene.kymod->pid())).empty();
              }))
      << "a process is left, and has a file: " << user;
  for (const pid_t one : scene.counting->copies()) {
    EXPECT_TRUE(eventually([&] { return probe::stopped_threads(one).empty(); }));
  }
  const std::string notes = scene.kymod->state() + "/restoring";
  const bool storable = scene.row.moody != Moody::state;
  EXPECT_TRUE(!storable || !fs::exists(notes) || fs::is_empty(notes)) << scene.kymod->log();
  EXPECT_FALSE(scene.counting->has_ghost());
  // Those of other tests come and go.
  EXPECT_TRUE(eventually([&] {
    return Scene::leftover_mounts().size() <= scene.mounts_before.size();
  })) << Scene::leftover_mounts();
}

}  // namespace kymo::test
