#include "client/attach.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "client/client.h"

namespace kymo::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{1} << 20U;
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

// Follows one job. attach() finds the job.
class Follower {
 public:
  Follower(std::string socket, v1::Job job, const AttachOutput& output)
      : socket_(std::move(socket)),
        job_(std::move(job)),
        output_(output),
        out_(job_.stdout_path()),
        err_(job_.stderr_path()) {}

  Result<void> begin_with(std::uint64_t lines) {
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
      if (Result<void> ok = look_at_job(); !ok) return ok.error();
    }
    // Pass on what the job wrote just before it ended.
    if (Result<void> ok = pass_on(); !ok) return ok.error();
    return job_;
  }

 private:
  Result<void> pass_on() {
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

  Result<void> look_at_job() {
    Result<v1::InspectResponse> seen = inspect();
    if (!seen && seen.error().code == Code::unavailable) {
      if (!away_) {
        output_.say(
            "kymod does not answer: the output is still followed, but the job's end cannot be "
            "seen");
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
  FileFollower out_;
  FileFollower err_;
  bool away_ = false;
};

Error of_output(const Error& error) {
  return {error.code, "read the job's output: " + error.message, error.errno_value};
}

}  // namespace

Result<void> FileFollower::begin_with(std::uint64_t lines) {
  const Result<FileDescriptor> opened = open_regular(path_);
  if (!opened) return of_output(opened.error());
  const FileDescriptor& file = *opened;
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return system_error("read the job's output " + path_, errno);
  std::uint64_t end = static_cast<std::uint64_t>(info.st_size);
  at_ = end;
  std::array<char, 65536> piece{};
  // Search backwards for the line feed before the last `lines` lines.
  for (std::uint64_t feeds = 0; end > 0 && lines > 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, piece.size());
    const ssize_t got = pread(file.get(), piece.data(), end - begin, static_cast<off_t>(begin));
    if (got <= 0) return system_error("read the job's output " + path_, got < 0 ? errno : EIO);
    for (auto i = static_cast<std::uint64_t>(got); i-- > 0;) {
      const bool last = begin + i + 1 == static_cast<std::uint64_t>(info.st_size);
      if (piece.at(i) != '\n' || last || ++feeds < lines) continue;
      at_ = begin + i + 1;
      return {};
    }
    end = at_ = begin;
  }
  return {};
}

Result<std::string> FileFollower::next() {
  const Result<FileDescriptor> opened = open_regular(path_);
  if (!opened && opened.error().errno_value == ENOENT) return std::string();
  if (!opened) return of_output(opened.error());
  const FileDescriptor& file = *opened;
  const bool jumped = skip_removed_part(file.get());
  std::string piece(kPiece, '\0');
  ssize_t got = -1;
  do {
    got = pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(at_));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("read the job's output " + path_, errno);
  piece.resize(static_cast<std::size_t>(got));
  at_ += static_cast<std::uint64_t>(got);
  // A hole ends at the end of a block, so the discarded bytes before that are zeros: remove them.
  if (jumped) piece.erase(0, piece.find_first_not_of('\0'));
  return piece;
}

// kymod limits a job's output (--job-output-bytes): it makes the oldest part a hole, or empties the
// file if the file system does not support holes.
bool FileFollower::skip_removed_part(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return false;
  if (static_cast<std::uint64_t>(info.st_size) < at_) at_ = 0;
  const off_t data = lseek(file, static_cast<off_t>(at_), SEEK_DATA);
  if (data <= static_cast<off_t>(at_)) return false;
  at_ = static_cast<std::uint64_t>(data);
  return true;
}

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
