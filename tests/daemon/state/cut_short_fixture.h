#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/launch.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/cut_short.h"
#include "support/temporary_directory.h"

// A dump that was cut short, of a real process, for the tests of close_cut_short_dump().
namespace kymo::daemon {

inline Result<std::string> find_no_fault(const std::string& /*images*/) {
  return std::string(R"({"tree":[[7,0,7,7,[7]]],"planned":{"faults":[]}})");
}
inline Result<std::string> find_no_process(const std::string& /*images*/) {
  return std::string(R"({"tree":[],"planned":{"faults":[]}})");
}
inline Result<std::string> find_a_fault(const std::string& /*images*/) {
  return std::string(
      R"({"tree":[[7,0,7,7,[7]]],"planned":{"faults":["pages-1.img is too short"]}})");
}

class CutShort : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::Store::open(folder_.path() + "/kymo.db");
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
  }
  void TearDown() override { end_process(); }

  // Starts a job as kymod does. If `stored` is false, the pid of the job is not in the store.
  void start_job(bool stored) {
    job_.id = "j1";
    job_.name = "work";
    job_.stdout_path = folder_.path() + "/stdout";
    const auto pid = runtime::launch(
        {{"sleep", "600"}, {"PATH=/usr/bin:/bin"}, "/", job_.stdout_path, job_.stdout_path});
    ASSERT_TRUE(pid.ok());
    pid_ = *pid;
    if (stored) {
      job_.pid = pid_;
      job_.start_ticks = probe::read_process(pid_)->start_ticks;
    }
    ASSERT_TRUE(store_->add_job(job_).ok());
  }
  void end_process() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Begins a dump of the job that has written these images so far.
  void begin_dump(std::initializer_list<const char*> images) {
    ASSERT_TRUE(create_checkpoint_dir(dir_).ok());
    for (const char* image : images) {
      static_cast<void>(folder_.file(std::string("c/images.partial/") + image, "12345678"));
    }
    store::Checkpoint checkpoint = begun_;
    checkpoint.id = id_;
    checkpoint.job_id = job_.id;
    checkpoint.pid = pid_;
    checkpoint.directory = dir_.path();
    ASSERT_TRUE(store_->add_checkpoint(checkpoint).ok());
  }
  // Marks the request as ended without a confirmed result, and adds these entries to checkpoint.json.
  void be_unconfirmed(nlohmann::json record) {
    store::Checkpoint checkpoint = store_->checkpoint(id_).value();
    checkpoint.state = store::CheckpointState::unconfirmed;
    ASSERT_TRUE(store_->update_checkpoint(checkpoint).ok());
    record["created_unix_ns"] = 0;
    record["start_ticks"] = job_.start_ticks;
    ASSERT_TRUE(write_record(dir_, record).ok());
  }
  // Real images would need a dump. `look` stands in for the process that reads them.
  void read_images_by(confine::Work look) {
    confine::WorkByName works = foreign_readers();
    works.at("look at images") = look;
    helper_ = confine::Helper::start(std::move(works)).value();
  }
  store::Checkpoint close() {
    const SettleDump settle = [this](runtime::Kind kind, const runtime::DumpSpec& spec) {
      settled_ = {kind, spec};
      return Result<void>();
    };
    const Result<bool> known = close_cut_short_dump(*store_, ForeignFiles(*helper_),
                                                    store_->checkpoint(id_).value(), settle);
    EXPECT_TRUE(known.ok()) << (known ? "" : known.error().message);
    store::Checkpoint after = *store_->checkpoint(id_);
    EXPECT_EQ(*known, after.state != store::CheckpointState::unconfirmed);
    return after;
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<confine::Helper> helper_ = confine::Helper::start(foreign_readers()).value();
  std::unique_ptr<store::Store> store_;
  store::Job job_;
  CheckpointDir dir_{folder_.path() + "/c"};
  const std::string id_ = "c" + std::to_string(::getpid());
  pid_t pid_ = 0;
  store::Checkpoint begun_;  // what the store has of a dump besides what begin_dump() adds
  std::pair<runtime::Kind, runtime::DumpSpec> settled_;  // what the runtime was asked to settle
};

}  // namespace kymo::daemon
