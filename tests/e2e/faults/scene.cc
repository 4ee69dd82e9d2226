#include "e2e/faults/scene.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/proc/process.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

}  // namespace

Scene::Scene(const Row& of, const Way& by, const Point& at) : row(of), way(by), point(at) {}

Scene::~Scene() {
  criu.mend();
  if (disk) {
    disk->go_on();
    disk->be("well");
  }
  if (client_.joinable()) client_.join();
  second_.reset();
  if (!kymod) return;
  if (kymod->running()) kymod->stop(SIGTERM);
  if (counting) {
    for (const pid_t one : counting->copies()) kill(one, SIGKILL);
  }
  if (row.moody == Moody::state) umount2(kymod->state().c_str(), MNT_DETACH);
}

void Scene::play() {
  ASSERT_NO_FATAL_FAILURE(start());
  if (row.request == Request::restore) {
    ASSERT_NO_FATAL_FAILURE(dump_first());
  }
  if (!row.daemon.empty()) kymod->restart(row.daemon);
  if (row.trouble.prepare) row.trouble.prepare(*this);
  if (point.at == Point::At::kText || point.at == Point::At::kUnseen) {
    criu.break_at(point.text, SIGSTOP);
  }
  if (point.at == Point::At::kWrapper) criu.stop_at_once(of_container() ? "runc" : "");
  if (point.at == Point::At::kChild) criu.wait_at(point.text);
  begin();
  if (point.at != Point::At::kNone && point.at != Point::At::kUnseen) {
    ASSERT_NO_FATAL_FAILURE(stop_at_point());
  }
  if (row.trouble.make) row.trouble.make(*this);
  wait_for_answer();
  for (const Check& check : row.meanwhile) check(*this);
  end_trouble();
  for (const Check& check : row.afterwards) check(*this);
}

void Scene::start() {
  if (row.moody != Moody::none) {
    disk.emplace(disk_folder);
    ASSERT_TRUE(disk->mounted()) << "FUSE does not work here";
  }
  mounts_before = leftover_mounts();
  counting = Counting::make(way.kind, criu, way.has_deleted_file);
  std::vector<std::string> flags = counting->flags();
  flags.insert(flags.end(), {"--criu", criu.path()});
  kymod.emplace(flags);
  if (row.moody == Moody::state) {
    fs::create_directory(kymod->state());
    ASSERT_EQ(mount(disk->path().c_str(), kymod->state().c_str(), "", MS_BIND, nullptr), 0);
  }
  kymod->start();
  requester = &*kymod;
  restore_from = dir();
  static_cast<void>(kymod->kymo_json(counting->run()));
  // The program of a container starts only after its start was answered.
  ASSERT_TRUE(eventually([&] { return counting->counts(); })) << kymod->log();
  number = counting->number();
}

void Scene::dump_first() {
  const Outcome dumped = kymod->kymo(dump_to(dir()));
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  counting->forget();
  ASSERT_TRUE(eventually([&] { return counting->copies().empty(); })) << kymod->log();
}

void Scene::begin() {
  std::vector<std::string> words = row.request == Request::dump
                                       ? dump_to(dir())
                                       : std::vector<std::string>{"restore", restore_from};
  words.insert(words.end(), row.flags.begin(), row.flags.end());
  client_ = std::thread([this, words] { answer = requester->kymo(words); });
}

void Scene::stop_at_point() {
  if (point.at == Point::At::kChild) {
    EXPECT_TRUE(eventually([&] { return counting->has_ghost(); })) << kymod->log();
    stopped = std::atoi(read_file(criu.folder() + "/pid").c_str());
  } else {
    stopped = criu.stopped();
  }
  criu.mend();
  ASSERT_GT(stopped, 1) << kymod->log();
}

void Scene::end_trouble() {
  criu.mend();
  if (disk) {
    disk->be("well");
    disk->go_on();
  }
  if (!kymod->running()) {
    kymod->start();
    EXPECT_TRUE(stopped == 0 || eventually([&] { return !probe::process_lives(stopped, 0); }));
  } else if (!row.daemon.empty()) {
    kymod->restart();
  }
}

json Scene::checkpoint() const {
  const json all = kymod->kymo_json({"checkpoints"});
  return all.empty() ? json{{"state", "none"}, {"error", ""}} : all.back();
}

json Scene::record() const {
  return json::parse(read_file(dir() + "/checkpoint.json"), nullptr, false);
}

std::vector<std::string> Scene::dump_to(const std::string& directory) const {
  std::vector<std::string> words{"dump", "process", name(), "--dir", directory};
  words.insert(words.end(), way.flags.begin(), way.flags.end());
  return words;
}

void Scene::let_criu_go_on() const {
  if (stopped > 1) kill(stopped, SIGCONT);
}

void Scene::wait_for_answer() {
  if (client_.joinable()) client_.join();
}

Kymod& Scene::second() {
  if (!second_) {
    std::vector<std::string> flags = counting->flags();
    flags.insert(flags.end(), {"--criu", criu.path()});
    second_.emplace(flags);
    second_->start();
  }
  return *second_;
}

std::string Scene::leftover_mounts() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string found;
  for (std::string line; std::getline(mounts, line);) {
    const bool left = line.find(".criu.cgyard.") != std::string::npos ||
                      line.find("/criu-root ") != std::string::npos;
    if (left) found += line + "\n";
  }
  return found;
}

}  // namespace kymo::test
