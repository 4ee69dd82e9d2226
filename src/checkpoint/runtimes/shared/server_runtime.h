#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "checkpoint/runtimes/shared/container_calls.h"
#include "checkpoint/runtimes/shared/runtime.h"

namespace kymo::runtime {

// What its server knows of a container.
struct ServedContainer {
  pid_t pid = 0;        // of its first process; 0: it does not run
  bool paused = false;  // the server has frozen it
};

// What the runtimes have in common that are servers, such as containerd: kymod asks them by an API, and they start CRIU
// with nothing of kymod's.
//
// Threads: those of Runtime.
// Errors:  those of Runtime.
class ServerRuntime : public Runtime {
 public:
  // `shown`: the name for messages. `name`: the one in the table.
  ServerRuntime(std::string shown, std::string name, std::chrono::milliseconds timeout)
      : shown_(std::move(shown)), name_(std::move(name)), timeout_(timeout) {}

  Result<std::optional<ProcessId>> process_of(const std::string& id) override;
  Result<std::optional<CriuProgram>> fixed_criu() override;
  Result<DumpOutcome> dump(const DumpSpec& spec, const Observer& observer) override;
  Result<void> settle_dump(const DumpSpec& spec) override;
  Result<void> rehearse(const RehearsalSpec& spec) override;
  Result<bool> settle_restore(const RestoreSpec& spec, std::int64_t) override;
  Result<std::string> freeze(const FreezeSpec& spec) override;
  Result<std::string> unfreeze(const FreezeSpec& spec) override;

 protected:
  static constexpr std::chrono::milliseconds kAnswersWithin{10'000};

  // Errors: not_found if there is no such container and the server says so.
  virtual Result<ServedContainer> look_up(const std::string& id,
                                          std::chrono::milliseconds patience) const = 0;
  // The PATH on which the server's OCI runtime looks for criu.
  [[nodiscard]] virtual Result<std::string> server_path() const = 0;
  [[nodiscard]] virtual Result<void> pause(const std::string& id) const = 0;
  [[nodiscard]] virtual Result<void> resume(const std::string& id) const = 0;
  // The server's dump of the container.
  [[nodiscard]] virtual Result<CommandOutcome> make_images(const DumpSpec& spec, bool leave_running,
                                                           const Command& limits) const = 0;
  // Whether kymod, and not the server, must end the container when its images are whole.
  [[nodiscard]] virtual bool ends_by_kymod(const DumpSpec& spec) const = 0;
  // Where CRIU writes the log of a dump while it runs. Empty: into the work directory.
  [[nodiscard]] virtual std::string dump_log(const DumpSpec& /*spec*/) const { return {}; }
  // Tells the server that kymod has ended the container.
  virtual void note_end(const DumpSpec& /*spec*/) const {}

  // Returns the container that runs as this process. Its id and its name are left to the caller.
  [[nodiscard]] static Container container_that_runs_as(pid_t pid);
  // A call with what a checkpoint and a restore have in common. `verb`: "dump" or "restore".
  template <class Spec>
  [[nodiscard]] ContainerCall call_of(const std::string& verb, const Spec& spec) const {
    ContainerCall call;
    call.runtime = name_;
    call.tried = "could not " + verb + " container " + name_of_container(spec);
    call.command.timeout = timeout_;
    call.images_dir = spec.images_dir;
    call.log_path = spec.work_dir + "/" + verb + ".log";
    call.stats_path = spec.work_dir + "/stats-" + verb;
    call.reason = [](const CommandOutcome& outcome) { return last_line(outcome.errors); };
    return call;
  }
  // Adds the restored process to the outcome of a restore that has succeeded.
  [[nodiscard]] Result<RestoreOutcome> with_process(RestoreOutcome outcome,
                                                    const RestoreSpec& spec) const;
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  [[nodiscard]] Result<CommandOutcome> dump_held(const DumpSpec& spec, const Observer& observer,
                                                 const Command& limits) const;
  void let_run(const DumpSpec& spec) const;

  const std::string shown_;
  const std::string name_;
  const std::chrono::milliseconds timeout_;  // of each dump and restore; 0: none
};

}  // namespace kymo::runtime
