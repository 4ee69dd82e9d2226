#include "e2e/faults/troubles.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "base/proc/process.h"

namespace kymo::test {
namespace {

// The nearest ancestor of the process with this name. 0 if there is none.
pid_t ancestor(pid_t process, const std::string& name) {
  for (pid_t one = process; one > 1;) {
    const Result<probe::Process> seen = probe::read_process(one);
    if (!seen) return 0;
    if (seen->name == name) return one;
    one = seen->parent;
  }
  return 0;
}

}  // namespace

void kill_criu(Scene& scene) {
  kill(scene.stopped, SIGKILL);
}

void crash_criu(Scene& scene) {
  kill(scene.stopped, SIGSEGV);
  scene.let_criu_go_on();
}

void kill_kymod(Scene& scene) {
  EXPECT_EQ(scene.kymod->stop(SIGKILL), -1);
  scene.let_criu_go_on();
}

void kill_kymod_late(Scene& scene) {
  kill_kymod(scene);
  EXPECT_TRUE(eventually([&] { return !probe::process_lives(scene.stopped, 0); }));
}

void kill_all(Scene& scene) {
  std::vector<pid_t> all{scene.kymod->pid()};
  const std::vector<pid_t> children = probe::children_of(scene.kymod->pid()).value();
  for (const pid_t child : children) {
    if (child != scene.stopped && child != ancestor(scene.stopped, "criu")) all.push_back(child);
  }
  std::vector<pid_t> chain;
  for (pid_t one = scene.stopped; one > 1 && std::find(all.begin(), all.end(), one) == all.end();) {
    chain.push_back(one);
    const Result<probe::Process> seen = probe::read_process(one);
    ASSERT_TRUE(seen.ok());
    one = seen->parent;
  }
  // CRIU last, because its parents would see its end.
  all.insert(all.end(), chain.rbegin(), chain.rend());
  for (const pid_t one : all) kill(one, SIGKILL);
  scene.kymod->stop(SIGKILL);
}

std::function<void(Scene&)> kill_parent(const std::string& program, bool stuck) {
  return [=](Scene& scene) {
    const pid_t killed = ancestor(scene.stopped, program);
    ASSERT_GT(killed, 1) << program << " is not found";
    kill(killed, SIGKILL);
    if (!stuck) scene.let_criu_go_on();
  };
}

std::function<void(Scene&)> kill_parent_of_container(const std::string& program) {
  return [=](Scene& scene) {
    // Once the container has ended, so has its parent, and there is nobody to kill.
    for (const pid_t one : scene.counting->copies()) {
      const pid_t killed = ancestor(one, program);
      EXPECT_GT(killed, 1) << program << " is not found";
      if (killed > 1) kill(killed, SIGKILL);
    }
    scene.let_criu_go_on();
  };
}

void cancel(Scene& scene) {
  static_cast<void>(scene.kymod->kymo({"cancel", scene.name()}));
  scene.wait_for_answer();
}

std::function<void(Scene&)> disk_is(const std::string& mood) {
  return [mood](Scene& scene) { scene.disk->be(mood); };
}

std::function<void(Scene&)> criu_does(const std::string& words) {
  return [words](Scene& scene) { scene.criu.let_do(words); };
}

}  // namespace kymo::test
