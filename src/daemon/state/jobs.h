#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "daemon/database/store.h"
#include "daemon/recording/metrics.h"
#include "daemon/state/job_containers.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The job of this id as it is now, if this process is its newest one. It is another one once the job was restored from
// an older checkpoint.
std::optional<store::Job> job_with(store::Store& store, const std::string& id,
                                   const runtime::ProcessId& process);

// Whether kymod could have made this id: "j" and twelve hexadecimal digits. Others may not become part of a path.
bool is_job_id(const std::string& id);
// Gives the job this process, which runs in the present boot.
void give_process(store::Job& job, const runtime::ProcessId& process);
// Whether the job's process still runs. After a restart of the machine, another one that has its pid and start time is
// not taken for it.
probe::Life life_of(const store::Job& job);

// The jobs: processes and containers that kymod started, restored or adopted. The store keeps them,
// so the next kymod knows them too. The kernel tells, by pid and start time, which ones run.
//
// Threads:   every member from any thread. find() never waits for a disk. list() only waits for one
//            when it reads the container.json of a job for the first time.
// Ownership: refers to the arguments of its constructor. A Hold must not outlive its Jobs.
// Errors:    those of the store and the runtime; a job name that is malformed or taken.
class Jobs {
 public:
  // Why a job is held. cut_short_restore: an earlier kymod stopped during its restore, which may go on.
  enum class Doing : std::uint8_t { start, dump, restore, cut_short_restore };
  // Holds a job while it is started, dumped or restored. Meanwhile exited() and refresh() do not
  // change its state, and list() says what goes on.
  class Hold {
   public:
    Hold() = default;
    Hold(Jobs* jobs, std::string id) : jobs_(jobs), id_(std::move(id)) {}
    Hold(Hold&& other) noexcept
        : jobs_(std::exchange(other.jobs_, nullptr)), id_(std::move(other.id_)) {}
    Hold& operator=(Hold&& other) noexcept {
      release();
      jobs_ = std::exchange(other.jobs_, nullptr);
      id_ = std::move(other.id_);
      return *this;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { release(); }

   private:
    void release() {
      if (jobs_ != nullptr) std::exchange(jobs_, nullptr)->release(id_);
    }

    Jobs* jobs_ = nullptr;
    std::string id_;
  };

  // `process_of` returns the process of a container, so that jobs can follow their containers. If
  // it is null, they do not.
  Jobs(store::Store& store, Metrics& metrics, std::string state_dir,
       JobContainers::ProcessOf process_of = nullptr);

  // Starts a command or a container as a new job. The output of a command goes to files in the
  // state directory.
  Result<store::Job> run(const runtime::Runtimes& runtimes, const v1::RunRequest& request);
  // Makes a job of a running process that belongs to no job. If `name` is empty, the job's name is
  // made from that of the program. The process is not kymod's child, so its exit status will not be
  // known.
  Result<store::Job> adopt(const runtime::ProcessId& process, const std::string& name = {});
  // Lists a job that this kymod does not know as dumped. Its id must be one (is_job_id()), and no request may list the same
  // one at the same time. It gets its name if that is possible and free, else one that is made from it.
  Result<store::Job> take_over(store::Job job);
  // The folder of the files of the job with this id.
  [[nodiscard]] std::string folder_of(const std::string& id) const {
    return state_dir_ + "/jobs/" + id;
  }
  // Forgets a job. Its process runs on if it runs.
  Result<void> remove(const store::Job& job);
  // Which jobs are containers.
  [[nodiscard]] JobContainers& containers() { return containers_; }
  // Finds a job by its name or id.
  Result<store::Job> find(const std::string& id_or_name);
  // Returns the running job that has this process.
  std::optional<store::Job> of_process(const runtime::ProcessId& process);
  // Returns the newest job of this container, in any state.
  std::optional<store::Job> of_container(const ContainerOf& container);
  // A job in the form of the API, with its container if it has one.
  v1::Job view(const store::Job& job, const std::string& last_checkpoint = {});
  // Every job in the form of the API, oldest first.
  std::vector<v1::Job> list();

  [[nodiscard]] Hold hold(const std::string& id, Doing doing);
  // The runtime calls this when a process that it watches has ended.
  void exited(const runtime::ProcessId& process, int wait_status);
  // Finds out which jobs still run. If somebody started or restored the container of a job without
  // kymod, the job runs again, with the process that the container has now. If that cannot be found out, list() says so.
  void refresh();
  // Tries again to store the changes for which the disk had no room, and logs when their number
  // changes.
  // Threads: one; waits for the disk.
  void retry_unstored();

 private:
  struct Ended {
    runtime::ProcessId process;
    int wait_status = 0;
  };

  Result<void> store_started_container(store::Job& job, runtime::Runtime& runtime,
                                       ContainerOf container);
  void release(const std::string& id) noexcept;
  void note_end(const Ended& ended);
  [[nodiscard]] bool is_any_started() const;
  Result<void> reserve(store::Job& job, const std::string& base);
  void mark_exited(store::Job job, std::optional<int> wait_status);
  bool follow_container(store::Job job);
  [[nodiscard]] std::optional<Doing> doing_with(const std::string& id);
  [[nodiscard]] std::string why_not_known(const std::string& id);
  void show_pending(const store::Job& job, const store::Checkpoint* open, v1::Job& out);

  struct Holding {
    int times = 0;
    Doing doing = Doing::start;  // the newest
    std::optional<Ended> ended;  // a process ended while the job was held; release() handles it
  };

  store::Store& store_;
  Metrics& metrics_;
  const std::string state_dir_;
  JobContainers containers_;
  std::mutex mutex_;
  std::size_t unstored_ = 0;             // the number that retry_unstored() logged last
  std::map<std::string, Holding> held_;  // by id
  // Processes that ended before the store knew whose they are, while some job was given a process.
  std::vector<Ended> early_ends_;
  // By id: why the last refresh() could not tell whether the job's container runs.
  std::map<std::string, std::string> not_known_;
};

// A job in the form of the API, without its container.
v1::Job to_api(const store::Job& job, const std::string& last_checkpoint = {});

}  // namespace kymo::daemon
