#include "checkpoint/criu/drive/client.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fd_path.h"
#include "base/file.h"
#include "base/patience.h"
#include "checkpoint/criu/drive/command.h"
#include "checkpoint/criu/drive/held_images.h"
#include "checkpoint/criu/drive/image_streamer.h"
#include "checkpoint/criu/drive/inherited.h"
#include "checkpoint/criu/drive/log.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/criu/drive/rehearsal.h"
#include "checkpoint/criu/drive/scratch_folder.h"
#include "checkpoint/criu/drive/sync_images.h"

namespace kymo::criu {
namespace {

// The options with a timeout of at most `limit` (0: unchanged), and with this `cancel`.
ClientOptions limited(ClientOptions options, std::chrono::milliseconds limit,
                      const Cancellation* cancel) {
  options.cancel = cancel;
  if (limit.count() > 0 && (options.timeout.count() == 0 || limit < options.timeout)) {
    options.timeout = limit;
  }
  return options;
}

// The options with files that a restore gives to criu.
ClientOptions inheriting(ClientOptions options, const std::vector<FileDescriptor>& files) {
  for (const FileDescriptor& file : files) options.inherited.push_back(file.get());
  return options;
}

// If the disk of the images is full, adds what of it is used up.
Error with_advice(Error error, const std::string& images_dir) {
  if (error.code != Code::resource_exhausted) return error;
  const auto advice =
      within(kDiskPatience, [images_dir] { return advice_on_full_disk(images_dir, ENOSPC); });
  error.message += advice.value_or("");
  return error;
}

// A call of criu that works with images.
struct ImagesCall {
  std::string tried;
  std::string images_dir;  // where criu itself reads or writes
  std::string work_dir;
  const char* log;  // its name in work_dir
  const Options& options;
  Command command;                            // run() adds what all calls have
  std::shared_ptr<ImageStreamer> streamer{};  // null: criu reads and writes files
  Result<void> refused{};                     // by what is done before the processes end
};

struct ImagesEnd {
  CommandEnd criu;
  Streamed streamed;
  std::string warning;  // of the stream, after all images were written
};

// Waits for the streamer, and reports what it did while CRIU ran. If CRIU has failed, the rest of
// the data is of no use.
Result<Streamed> finish(ImageStreamer& streamer, bool done) {
  constexpr std::chrono::minutes kToWriteTheRest{10};
  constexpr std::chrono::milliseconds kToGiveUp{500};
  if (!done) streamer.report();
  Result<Streamed> stream =
      streamer.finish(done ? std::chrono::milliseconds(kToWriteTheRest) : kToGiveUp);
  if (done) streamer.report();
  return stream;
}

// The error of a failed call. An error of the stream is the cause of criu's error, so it is shown
// instead, except after a cancellation or a timeout. Else the log explains criu's error.
Error failed(const ImagesCall& call, const Result<Streamed>& stream, Error error) {
  const std::string log = call.work_dir + "/" + call.log;
  if (error.code == Code::deadline_exceeded) {
    const std::string last = last_errors(log);
    if (!last.empty()) error.message += "; its log ends with " + last;
  } else if (error.code != Code::cancelled && !stream) {
    error = stream.error();
  } else if (error.code != Code::cancelled) {
    const std::string cause = cause_in(log);
    if (!cause.empty()) error.message = cause + " (log: " + log + ")";
  }
  error.message = call.tried + ": " + error.message;
  if (error.message.find("No space left") != std::string::npos) {
    error.code = Code::resource_exhausted;
    error.errno_value = ENOSPC;
  }
  return error;
}

Result<ImagesEnd> run(const ClientOptions& options, ImagesCall& call) {
  const Result<FileDescriptor> images = open_folder(call.tried, call.images_dir);
  if (!images) return images.error();
  const Result<FileDescriptor> work = open_folder(call.tried, call.work_dir);
  if (!work) return work.error();
  Command& command = call.command;
  const int level = command.kind == CallKind::restore ? kRestoreLogLevel : kDumpLogLevel;
  // A program that records into a ring file holds a lock on it. Databases lock their files, too.
  std::vector<std::string> words{std::string(kCallNames.at(static_cast<std::size_t>(command.kind))),
                                 "--images-dir",
                                 path_through(*images),
                                 "--work-dir",
                                 path_through(*work),
                                 "--log-file",
                                 call.log,
                                 "-v" + std::to_string(level),
                                 "--file-locks"};
  if (call.streamer) words.emplace_back("--stream");
  for (std::string& word : arguments_of(call.options)) words.push_back(std::move(word));
  command.arguments.insert(command.arguments.begin(), std::make_move_iterator(words.begin()),
                           std::make_move_iterator(words.end()));
  Result<CommandEnd> end = run_command(options, command);
  const Result<Streamed> stream =
      call.streamer ? finish(*call.streamer, end.ok()) : Result<Streamed>(Streamed());
  if (!call.refused) {
    Error error = call.refused.error();
    error.message = call.tried + ": " + error.message;
    return error;
  }
  if (!end) return failed(call, stream, end.error());
  // The images are complete: they were settled before CRIU let the process go.
  return ImagesEnd{*std::move(end), stream ? *stream : Streamed(),
                   stream ? "" : stream.error().message};
}

Result<DumpReply> dump_reply(const Result<ImagesEnd>& end, const std::string& images_dir) {
  if (!end) return with_advice(end.error(), images_dir);
  return DumpReply{end->criu.life_ns, end->criu.major_faults, end->streamed, end->warning};
}

void track_memory(const std::string& parent, std::vector<std::string>& arguments) {
  arguments.emplace_back("--track-mem");
  if (!parent.empty()) arguments.insert(arguments.end(), {"--prev-images-dir", parent});
}

}  // namespace

std::string Version::text() const {
  return std::to_string(major) + "." + std::to_string(minor) +
         (sublevel != 0 ? "." + std::to_string(sublevel) : "");
}

std::optional<Version> Version::parse(const std::string& text) {
  Version version;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int* number : {&version.major, &version.minor, &version.sublevel}) {
    const auto [after, error] = std::from_chars(at, end, *number);
    if (error != std::errc()) return std::nullopt;
    if (after == end && number != &version.major) return version;
    if (after == end || *after != '.') return std::nullopt;
    at = after + 1;
  }
  return std::nullopt;
}

Result<Version> Client::version() const {
  constexpr std::string_view kVersion = "Version: ";
  constexpr std::string_view kGitId = "GitID: ";
  const Result<CommandEnd> end = run_command(options_, {CallKind::version, {"--version"}});
  if (!end) return end.error();
  const auto line_after = [&](std::string_view name) {
    const std::size_t at = end->output.find(name);
    if (at == std::string::npos) return std::string();
    const std::size_t from = at + name.size();
    return end->output.substr(from, end->output.find('\n', from) - from);
  };
  std::optional<Version> version = Version::parse(line_after(kVersion));
  if (!version) {
    return Error{Code::failed_precondition,
                 "criu '" + options_.path + "' did not report its version"};
  }
  version->git_id = line_after(kGitId);
  return *std::move(version);
}

Result<Features> Client::features() const {
  Features there;
  for (const auto& [name, has] : {std::pair{"mem_dirty_track", &there.dirty_tracking},
                                  std::pair{"uffd-noncoop", &there.lazy_pages}}) {
    const Result<CommandEnd> end =
        run_command(options_, {CallKind::check, {"check", "--feature", name}});
    if (!end && end.error().code != Code::failed_precondition) return end.error();
    *has = end.ok();
  }
  return there;
}

Result<void> Client::check() const {
  constexpr const char* kLog = "check.log";
  const Result<ScratchFolder> folder = ScratchFolder::create("kymo-check");
  if (!folder) return folder.error();
  const Result<CommandEnd> end = run_command(
      options_, {CallKind::check, {"check", "--work-dir", folder->path(), "--log-file", kLog}});
  if (end) return {};
  const std::string log = folder->path() + "/" + kLog;
  const std::string cause = cause_in(log);
  const std::string last = cause.empty() ? last_errors(log) : "";
  const std::string why = !cause.empty() ? cause : !last.empty() ? last : end.error().message;
  return Error{end.error().code, "criu '" + options_.path + "' failed its check of this machine: " +
                                     why + "; run 'criu check --all' for more"};
}

Result<DumpReply> Client::pre_dump(const PreDumpRequest& request) const {
  const std::string pid = std::to_string(request.pid);
  ImagesCall call{"criu could not pre-dump process " + pid,
                  request.images_dir,
                  request.work_dir,
                  "pre-dump.log",
                  request.options,
                  {CallKind::pre_dump, {"--tree", pid}}};
  track_memory(request.parent, call.command.arguments);
  return dump_reply(run(limited(options_, request.time_limit, request.cancel), call),
                    request.images_dir);
}

Result<DumpReply> Client::dump(const DumpRequest& request, const Notified& notified) const {
  const ClientOptions options = limited(options_, request.time_limit, request.cancel);
  const std::string pid = std::to_string(request.pid);
  ImagesCall call{"criu could not dump process " + pid,
                  request.held ? request.held->own_path() : request.images_dir,
                  request.work_dir,
                  "dump.log",
                  request.options,
                  {CallKind::dump, {"--tree", pid}, request.options.tcp_established}};
  if (request.stream) {
    Result<std::unique_ptr<ImageStreamer>> streamer = ImageStreamer::capture(
        request.images_dir, request.work_dir, *request.stream, request.streamed, request.held);
    if (!streamer) return streamer.error();
    call.streamer = *std::move(streamer);
    // CRIU sees only the work directory, so it never waits for the disk of the images.
    call.images_dir = request.work_dir;
  }
  if (request.leave_running) call.command.arguments.emplace_back("--leave-running");
  if (!request.parent.empty()) track_memory(request.parent, call.command.arguments);
  call.command.answered = request.answered;
  call.command.passed = [&](std::string_view name, const WaitingCriu& criu) -> Result<void> {
    if (notified) notified(name);
    if (name != kAllWritten) return {};
    if (call.streamer) {
      Result<void> written =
          criu.wait_for("image stream: the images were not written in time",
                        [streamer = call.streamer] { return streamer->wait_until_written(); });
      if (!written) return written;
    } else if (request.held) {
      call.refused = criu.wait_for("the disk of the images does not answer in time",
                                   [held = request.held] { return held->check_before_end(); });
    }
    if (call.refused && request.sync) {
      if (request.working) request.working(kSyncPhase);
      call.refused = criu.wait_for("the images are not durable: their disk does not answer in time",
                                   [dir = request.images_dir] { return sync_images(dir); });
      if (request.working) request.working("");
    }
    if (call.refused && request.prove) call.refused = request.prove(criu.time_left());
    return call.refused;
  };
  return dump_reply(run(options, call), request.images_dir);
}

Result<void> Client::rehearse(const RehearsalRequest& request) const {
  const Result<std::vector<FileDescriptor>> files = open_inherited(request.options.inherited);
  if (!files) return files.error();
  return criu::rehearse(inheriting(limited(options_, request.time_limit, request.cancel), *files),
                        request);
}

Result<RestoreReply> Client::restore(const RestoreRequest& request,
                                     const Notified& notified) const {
  const Result<std::vector<FileDescriptor>> files = open_inherited(request.options.inherited);
  if (!files) return files.error();
  ImagesCall call{"criu could not restore " + request.images_dir,
                  request.images_dir,
                  request.work_dir,
                  "restore.log",
                  request.options,
                  {CallKind::restore, {"--restore-detached", "--restore-sibling"}}};
  if (request.stream) {
    Result<std::unique_ptr<ImageStreamer>> streamer =
        ImageStreamer::serve(request.images_dir, request.images_dir, request.streamed);
    if (!streamer) return streamer.error();
    call.streamer = *std::move(streamer);
  }
  call.command.answered = request.answered;
  call.command.passed = [&](std::string_view name, const WaitingCriu&) {
    if (notified) notified(name);
    return Result<void>();
  };
  const Result<ImagesEnd> end = run(
      inheriting(limited(options_, std::chrono::milliseconds(0), request.cancel), *files), call);
  if (!end) return with_advice(end.error(), request.images_dir);
  if (end->criu.root == 0) {
    return Error{Code::internal, call.tried + ": criu did not say which process it has restored"};
  }
  return RestoreReply{end->criu.root, end->criu.life_ns, end->criu.major_faults};
}

}  // namespace kymo::criu
