#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/job_containers.h"
#include "daemon/metrics.h"
#include "kymo/result.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace kymo::daemon {

// The processes that the daemon looks after: started or restored by it, and kept in the store, so
// that they are known after a restart. What runs is asked of the kernel, by pid and start time.
//
// Threads:   every member from any thread. To find or list jobs never waits for a disk.
// Ownership: refers to what it is made of. A Hold must not outlive its Jobs.
// Errors:    those of the store and the runtime, and a name that is malformed or taken.
class Jobs {
 public:
  // While a job is held (its dump or restore runs) nobody else says what state it is in.
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

  // `process_of`: where a container runs, so that jobs follow theirs; none: they do not.
  Jobs(store::Store& store, Metrics& metrics, std::string state_dir,
       JobContainers::ProcessOf process_of = nullptr);

  // Starts a command as a new job, its output in files of the state directory; or a container.
  Result<store::Job> run(const runtime::Runtimes& runtimes, const v1::RunRequest& request);
  // Makes a job of a process that runs and belongs to none; with an empty name, one is made of its
  // program's. It is no child of ours: how it ends is not known.
  Result<store::Job> adopt(const runtime::ProcessId& process, const std::string& name = {});
  // Forgets a job; its process, if it runs, runs on.
  Result<void> remove(const store::Job& job);
  // Which jobs are containers.
  [[nodiscard]] JobContainers& containers() { return containers_; }
  // By name or id.
  Result<store::Job> find(const std::string& id_or_name);
  // The running job whose process this is.
  std::optional<store::Job> of_process(const runtime::ProcessId& process);
  // The newest job, in whatever state, that is this container.
  std::optional<store::Job> of_container(const ContainerOf& container);
  // A job as the API shows it, with its container where it is one.
  v1::Job view(const store::Job& job, const std::string& last_checkpoint = {});
  // Every job as the API shows it, oldest first.
  std::vector<v1::Job> list();

  [[nodiscard]] Hold hold(const std::string& id);
  // A process that the runtime watched has ended.
  void exited(const runtime::ProcessId& process, int wait_status);
  // Finds out which jobs still run. The job of a container that somebody started, or restored,
  // without us runs again, whatever its process is by now.
  void refresh();
  // Tries again to store what the disk had no room for, and logs how that changes. Waits for the
  // disk; one thread.
  void store_the_rest();

 private:
  void note_started_container(store::Job& job, const ContainerOf& container);
  void release(const std::string& id) noexcept;
  Result<void> reserve(store::Job& job, const std::string& base);
  void mark_exited(store::Job job, std::optional<int> wait_status);
  bool follow_container(store::Job job);

  struct Ended {
    runtime::ProcessId process;
    int wait_status = 0;
  };
  struct Held {
    int times = 0;
    std::optional<Ended> ended;  // meanwhile; whether that is the job's end is seen at its release
  };

  store::Store& store_;
  Metrics& metrics_;
  const std::string state_dir_;
  JobContainers containers_;
  std::mutex mutex_;
  std::size_t unstored_ = 0;          // what store_the_rest() said last
  std::map<std::string, Held> held_;  // by id
};

// A job as the API shows it.
v1::Job to_api(const store::Job& job, const std::string& last_checkpoint = {});

}  // namespace kymo::daemon
