#include "criu/streamed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "criu/command.h"
#include "criu/image_streamer.h"
#include "criu/log.h"
#include "criu/pstree.h"
#include "criu/sync_images.h"

namespace kymo::criu {
namespace {

constexpr char kStreamedDumpLog[] = "dump.log";
constexpr char kStreamedRestoreLog[] = "restore.log";

// A folder with a short path for criu, because the path of a socket in it must be short.
struct ReachedFolder {
  FileDescriptor fd;
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd.get());
  }
};

Result<ReachedFolder> reach(const std::string& tried, const std::string& path) {
  ReachedFolder folder{FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
  if (!folder.fd.valid()) return system_error(tried + ": cannot open " + path, errno);
  return folder;
}

// Waits until every image is written. This may take long, so it also watches for a cancellation.
Result<void> wait_until_written(ImageStreamer& streamer,
                                std::chrono::steady_clock::time_point until,
                                const Cancellation* cancel) {
  constexpr std::chrono::milliseconds kLookForCancel{20};
  for (;;) {
    const auto next = std::min(until, std::chrono::steady_clock::now() + kLookForCancel);
    Result<void> settled = streamer.wait_until_written(next);
    if (settled || settled.error().code != Code::deadline_exceeded || next == until) {
      return settled;
    }
    if (is_asked(cancel)) return Error{Code::cancelled, "the request was cancelled"};
  }
}

// The error of a failed request. An error of the stream is the cause of criu's error, so it is
// shown instead, except after a cancellation or a timeout. Else the log explains criu's error.
Error streamed_error(const std::string& tried, const Result<Streamed>& stream, Error error,
                     const std::string& log) {
  if (error.code == Code::deadline_exceeded) {
    const std::string last = last_errors(log);
    if (!last.empty()) error.message += "; its log ends with " + last;
  } else if (error.code != Code::cancelled && !stream) {
    error = stream.error();
  } else if (error.code != Code::cancelled) {
    const std::string cause = cause_in(log);
    if (!cause.empty()) error.message = cause + " (log: " + log + ")";
  }
  error.message = tried + ": " + error.message;
  if (error.message.find("No space left") != std::string::npos) {
    error.code = Code::resource_exhausted;
  }
  return error;
}

struct Folders {
  ReachedFolder images;
  ReachedFolder work;
};

Result<Folders> reach_folders(const std::string& tried, const std::string& images,
                              const std::string& work) {
  Result<ReachedFolder> images_folder = reach(tried, images);
  if (!images_folder) return images_folder.error();
  Result<ReachedFolder> work_folder = reach(tried, work);
  if (!work_folder) return work_folder.error();
  return Folders{std::move(images_folder).value(), std::move(work_folder).value()};
}

// Waits for the streamer, and reports what it did while CRIU ran. If CRIU has failed, the rest of the data is of no use.
Result<Streamed> finish(ImageStreamer& streamer, bool done) {
  constexpr std::chrono::minutes kToWriteTheRest{10};
  constexpr std::chrono::milliseconds kToGiveUp{500};
  if (!done) streamer.report();
  Result<Streamed> stream =
      streamer.finish(done ? std::chrono::milliseconds(kToWriteTheRest) : kToGiveUp);
  if (done) streamer.report();
  return stream;
}

void append(std::vector<std::string> more, std::vector<std::string>& arguments) {
  std::move(more.begin(), more.end(), std::back_inserter(arguments));
}

// What a dump and a restore have in common.
std::vector<std::string> arguments_of(const char* verb, const Folders& folders, const char* log,
                                      int log_level) {
  return {verb,
          "--stream",
          "--images-dir",
          folders.images.path(),
          "--work-dir",
          folders.work.path(),
          "--log-file",
          log,
          "-v" + std::to_string(log_level),
          "--file-locks"};
}

}  // namespace

Result<DumpReply> streamed_dump(const ClientOptions& options, const DumpRequest& request,
                                const Notified& notified) {
  const std::string tried = "criu could not dump process " + std::to_string(request.pid);
  // CRIU sees only the work directory, so it never waits for the disk of the images.
  const Result<Folders> folders = reach_folders(tried, request.work_dir, request.work_dir);
  if (!folders) return folders.error();
  Result<std::unique_ptr<ImageStreamer>> streamer = ImageStreamer::capture(
      request.images_dir, request.work_dir, *request.stream, request.streamed, request.held);
  if (!streamer) return streamer.error();
  Command command;
  command.kind = CallKind::dump;
  command.reads_connections = request.options.tcp_established;
  command.arguments = arguments_of("dump", *folders, kStreamedDumpLog, kDumpLogLevel);
  command.arguments.insert(command.arguments.end(), {"--tree", std::to_string(request.pid)});
  if (request.leave_running) command.arguments.emplace_back("--leave-running");
  append(arguments_of(request.options), command.arguments);
  Result<void> refused;  // by what is done before the process ends
  command.passed = [&](std::string_view name,
                       std::chrono::steady_clock::time_point until) -> Result<void> {
    if (notified) notified(name);
    if (name != kAllWritten) return {};
    Result<void> written = wait_until_written(**streamer, until, options.cancel);
    if (!written) return written;
    if (request.sync) refused = sync_in_time(request.images_dir, until);
    if (refused && request.prove) refused = request.prove(left_until(until));
    return refused;
  };
  const Result<CommandEnd> end = run_command(options, command);
  const Result<Streamed> stream = finish(**streamer, end.ok());
  if (!refused) return Error{refused.error().code, tried + ": " + refused.error().message};
  if (!end) {
    return streamed_error(tried, stream, end.error(), request.work_dir + "/" + kStreamedDumpLog);
  }
  DumpReply reply;
  reply.criu_time_ns = end->life_ns;
  reply.criu_major_faults = end->major_faults;
  if (stream) {
    reply.streamed = *stream;
  } else {  // the images are complete: they were settled before CRIU let the process go
    reply.warning = stream.error().message;
  }
  return reply;
}

Result<RestoreReply> streamed_restore(const ClientOptions& options, const RestoreRequest& request,
                                      const Notified& notified) {
  const std::string tried = "criu could not restore " + request.images_dir;
  const Result<Folders> folders = reach_folders(tried, request.images_dir, request.work_dir);
  if (!folders) return folders.error();
  const auto tree = read_pstree(request.images_dir + "/pstree.img");
  if (!tree) return tree.error();
  Result<std::unique_ptr<ImageStreamer>> streamer =
      ImageStreamer::serve(request.images_dir, request.images_dir, request.streamed);
  if (!streamer) return streamer.error();
  Command command;
  command.kind = CallKind::restore;
  command.arguments = arguments_of("restore", *folders, kStreamedRestoreLog, kRestoreLogLevel);
  command.arguments.insert(command.arguments.end(), {"--restore-detached", "--restore-sibling"});
  append(arguments_of(request.options), command.arguments);
  command.passed = [&](std::string_view name, std::chrono::steady_clock::time_point) {
    if (notified) notified(name);
    return Result<void>();
  };
  const Result<CommandEnd> end = run_command(options, command);
  const Result<Streamed> stream = finish(**streamer, end.ok());
  if (!end) {
    return streamed_error(tried, stream, end.error(), request.work_dir + "/" + kStreamedRestoreLog);
  }
  return RestoreReply{tree->front().pid, end->life_ns, end->major_faults};
}

}  // namespace kymo::criu
