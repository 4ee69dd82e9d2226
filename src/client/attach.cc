#include "client/attach.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file_follower.h"
#include "client/client.h"

namespace kymo::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLookAtFiles{100};
constexpr milliseconds kLookAtJob{250};

// One line about a change of the job's state. Empty if there is nothing to say.
std::string news(const v1::Job& before, const v1::Job& now) {
  if (now.state() == v1::Job::DUMPED && before.state() != v1::Job::DUMPED) {
    const std::string into = now.pending().empty() ? " into " + now.last_checkpoint() : "";
    return "job " + now.name() + " was dumped" + into + " and ended: waiting for its restore";
  }
  const bool another = now.start_ticks() != before.start_ticks() || now.pid() != before.pid();
  if (now.state() == v1::Job::RUNNING && (another || before.state() == v1::Job::DUMPED)) {
    return "job " + now.name() + " was restored and goes on as pid " + std::to_string(now.pid());
  }
  return {};
}

// Members of --socket-group may not enter the state directory.
bool may_not_read(const std::string& path) {
  return ::access(path.c_str(), R_OK) != 0 && errno == EACCES;
}

// Follows one job. attach() finds the job.
class Follower {
 public:
  Follower(std::string socket, v1::Job job, const AttachOutput& output)
      : socket_(std::move(socket)),
        job_(std::move(job)),
        output_(output),
        by_kymod_(may_not_read(job_.stdout_path())),
        out_(job_.stdout_path()),
        err_(job_.stderr_path()) {}

  Result<void> begin_with(std::uint64_t lines) {
    if (by_kymod_) {
      const Result<bool> found = ask_kymod(lines);
      return found ? Result<void>() : found.error();
    }
    if (Result<void> ok = out_.begin_with(lines); !ok) return ok;
    return err_.begin_with(lines);
  }

  Result<v1::Job> run() {
    auto look = steady_clock::now() + kLookAtJob;
    while (job_.state() != v1::Job::EXITED && !output_.stop()) {
      if (Result<void> ok = pass_on(); !ok) return ok.error();
      std::this_thread::sleep_for(kLookAtFiles);
      if (steady_clock::now() < look) continue;
      look = steady_clock::now() + kLookAtJob;
      if (Result<void> ok = pass_on_from_kymod(); !ok) return ok.error();
      if (Result<void> ok = look_at_job(); !ok) return ok.error();
    }
    // Pass on what the job wrote just before it ended.
    if (Result<void> ok = pass_on(); !ok) return ok.error();
    if (Result<void> ok = pass_on_from_kymod(); !ok) return ok.error();
    return job_;
  }

 private:
  // Reads the files of the output, if this user may.
  Result<void> pass_on() {
    if (by_kymod_) return {};
    for (const auto& [file, sink] :
         {std::pair(&out_, &output_.out), std::pair(&err_, &output_.err)}) {
      for (;;) {
        const Result<std::string> piece = file->next();
        if (!piece) return piece.error();
        if (piece->empty()) break;
        (*sink)(*piece);
      }
    }
    return {};
  }

  // Asks kymod for the output, if this user may not read its files.
  Result<void> pass_on_from_kymod() {
    while (by_kymod_) {
      const Result<bool> more = ask_kymod(std::nullopt);
      if (!more && more.error().code == Code::unavailable) return {};  // look_at_job() says so
      if (!more) return more.error();
      if (!*more) break;
    }
    return {};
  }

  // Passes on what kymod sends. Returns whether it sent something.
  Result<bool> ask_kymod(std::optional<std::uint64_t> tail) {
    Result<Client> client = Client::connect(socket_);
    if (!client) return client.error();
    v1::ReadOutputRequest request;
    request.set_job(job_.id());
    request.set_out_offset(out_offset_);
    request.set_err_offset(err_offset_);
    if (tail) request.set_tail_lines(*tail);
    const Result<v1::ReadOutputResponse> got = client->read_output(request);
    if (!got) return got.error();
    out_offset_ = got->out_offset();
    err_offset_ = got->err_offset();
    if (!got->out().empty()) output_.out(got->out());
    if (!got->err().empty()) output_.err(got->err());
    return !got->out().empty() || !got->err().empty();
  }

  Result<void> look_at_job() {
    Result<v1::InspectResponse> seen = inspect();
    if (!seen && seen.error().code == Code::unavailable) {
      if (!away_) {
        output_.say(by_kymod_ ? "kymod does not answer: waiting until it is back"
                              : "kymod does not answer: the output is still followed, but the "
                                "job's end cannot be seen");
      }
      away_ = true;
      return {};
    }
    if (!seen) return seen.error();
    if (away_) output_.say("kymod is back");
    away_ = false;
    if (const std::string line = news(job_, seen->job()); !line.empty()) output_.say(line);
    job_ = seen->job();
    return {};
  }

  Result<v1::InspectResponse> inspect() const {
    Result<Client> client = Client::connect(socket_);
    if (!client) return client.error();
    return client->inspect(job_.id());
  }

  const std::string socket_;
  v1::Job job_;
  const AttachOutput& output_;
  const bool by_kymod_;
  FileFollower out_;
  FileFollower err_;
  std::uint64_t out_offset_ = 0;  // if kymod reads the output
  std::uint64_t err_offset_ = 0;
  bool away_ = false;
};

}  // namespace

Result<v1::Job> attach(const std::string& socket, const std::string& job,
                       const AttachOptions& options, const AttachOutput& output) {
  Result<Client> client = Client::connect(socket);
  if (!client) return client.error();
  const Result<v1::InspectResponse> found = client->inspect(job);
  if (!found) return found.error();
  if (!found->has_job()) {
    return Error{Code::invalid_argument, "attach to " + job + ": it is a checkpoint, not a job"};
  }
  if (found->job().stdout_path().empty()) {
    const std::string& container = found->job().container();
    return Error{Code::failed_precondition,
                 "attach to job " + found->job().name() +
                     (container.empty() ? ": kymod did not start it, and does not have its output"
                                        : ": it is the container " + container +
                                              ": the runtime has its output, and not kymod (podman "
                                              "logs shows it, runc discards it)")};
  }
  if (found->job().state() == v1::Job::DUMPED) {
    output.say("job " + found->job().name() + " is dumped: waiting for its restore");
  }
  Follower follower(socket, found->job(), output);
  if (options.tail) {
    if (Result<void> ok = follower.begin_with(*options.tail); !ok) return ok.error();
  }
  return follower.run();
}

}  // namespace kymo::client
