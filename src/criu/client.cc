#include "criu/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/patience.h"
#include "criu/call_phases.h"
#include "criu/child.h"
#include "criu/config_file.h"
#include "criu/held_images.h"
#include "criu/inherited.h"
#include "criu/log.h"
#include "criu/rehearsal.h"
#include "criu/rpc.pb.h"
#include "criu/scratch_folder.h"
#include "criu/streamed.h"
#include "criu/sync_images.h"

namespace kymo::criu {
namespace {

constexpr char kPreDumpLog[] = "pre-dump.log";
constexpr char kDumpLog[] = "dump.log";
constexpr char kRestoreLog[] = "restore.log";
constexpr char kCheckLog[] = "check.log";

// A folder held open while criu runs: criu reaches it through /proc/<our pid>/fd.
class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), errno_(fd_ < 0 ? errno : 0) {}
  ~OpenDirectory() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int error() const { return errno_; }

 private:
  int fd_;
  int errno_;
};

struct Answer {
  wire::Response response;
  std::uint64_t life_ns = 0;
  std::uint64_t major_faults = 0;
  std::string said;  // its last line on stderr: CRIU writes there until it has its log
};

// Called at each notification of criu. criu waits until it returns, and fails if it returns an
// error.
using Passed = std::function<Result<void>(std::string_view name)>;

// Makes one call: sends the request, answers the notifications, and waits for the last response and
// for the end of the process. The `success` of the response decides whether `options.called` gets
// the call as a success.
Result<Answer> make_call(const ClientOptions& options, CallKind kind, const wire::Request& request,
                         const Passed& passed) {
  const auto started = Child::Clock::now();
  Result<Answer> answer = [&]() -> Result<Answer> {
    CallPhases phases;
    Result<void> refused;
    Result<std::unique_ptr<Child>> started_child =
        Child::start(options.path, options.timeout, options.cancel, options.inherited);
    if (!started_child) {
      return started_child.error();
    }
    Child& child = **started_child;
    if (kind == CallKind::restore) child.may_lose_processes();
    if (kind == CallKind::dump && request.opts().tcp_established()) child.keep_connections();
    if (Result<void> sent = child.send(request); !sent) {
      return sent.error();
    }
    for (;;) {
      Result<wire::Response> response = child.receive();
      if (!response) {
        return response.error();
      }
      if (response->type() != wire::NOTIFY) {
        phases.ends();
        if (response->success()) child.keep_group();  // a restored process may be in it
        const std::uint64_t life_ns = child.finish();
        if (!refused) return refused.error();
        return Answer{std::move(*response), life_ns, child.major_faults(), child.said()};
      }
      phases.after(response->notify().script());
      if (passed && refused) {
        refused = passed(response->notify().script());
      }
      wire::Request go_on;
      go_on.set_type(wire::NOTIFY);
      go_on.set_notify_success(refused.ok());
      if (Result<void> sent = child.send(go_on); !sent) {
        return sent.error();
      }
    }
  }();
  const bool ok = answer.ok() && answer->response.success();
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Child::Clock::now() - started);
  if (options.called) {
    options.called({kind, ok, ok ? answer->life_ns : static_cast<std::uint64_t>(elapsed.count())});
  }
  return answer;
}

// The error for a refusal of criu: the cause in its log, or else its own message, and where the log
// is. If criu could not make its log, the cause is what it wrote to stderr.
Error refused(const std::string& tried, const Answer& answer, const std::string& log,
              const std::string& log_shown) {
  const wire::Response& response = answer.response;
  std::string why = response.cr_errmsg();
  while (!why.empty() && why.back() == '\n') {
    why.pop_back();
  }
  const std::string cause = cause_in(log);
  if (!cause.empty()) {
    why = cause;  // cr_errmsg is the log's first error, which is often not the cause
  }
  const bool silent = why.empty() || is_noise(why);
  if (silent) {
    why = answer.said.empty() ? "CRIU gave no reason" : answer.said;
  }
  Error error{Code::failed_precondition, tried + ": " + why + log_shown};
  // EBADRQC is CRIU's own number for whatever fails before it begins, such as making its log.
  if (response.cr_errno() != 0 && response.cr_errno() != EBADRQC) {
    error = system_error(tried, response.cr_errno());
    error.message += ": " + why + log_shown;
  }
  if (why.find("No space left") != std::string::npos) {
    error.code = Code::resource_exhausted;
    error.errno_value = ENOSPC;
  }
  return error;
}

Error with_context(const std::string& tried, Error error, const std::string& log) {
  error.message = tried + ": " + error.message;
  const std::string errors = error.code == Code::cancelled ? "" : last_errors(log);
  if (!errors.empty()) {
    error.message += "; its log ends with " + errors;
  }
  return error;
}

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

void track_memory(const std::string& parent, wire::Options& opts) {
  opts.set_track_mem(true);
  if (!parent.empty()) {
    opts.set_parent_img(parent);
  }
}

// What a dump and a restore have in common.
struct CriuCall {
  CallKind kind;
  std::string tried;
  std::string log_path;
  const Options& options;
  wire::Request request{};
};

// If the disk of the images is full, adds what of it is used up.
Error with_advice(Error error, const std::string& images_dir) {
  if (error.code != Code::resource_exhausted) return error;
  const auto advice =
      within(kDiskPatience, [images_dir] { return advice_on_full_disk(images_dir, ENOSPC); });
  error.message += advice.value_or("");
  return error;
}

Result<Answer> call_criu(const ClientOptions& options, CriuCall& call,
                         const std::string& images_dir, const std::string& work_dir,
                         const Passed& passed) {
  const OpenDirectory images(images_dir);
  if (images.fd() < 0) {
    return system_error(call.tried + ": cannot open the images directory " + images_dir,
                        images.error());
  }
  const OpenDirectory work_folder(work_dir);
  if (work_folder.fd() < 0) {
    return system_error(call.tried + ": cannot open the work directory " + work_dir,
                        work_folder.error());
  }
  const Result<ConfigFile> config = ConfigFile::make(call.options);
  if (!config) {
    return config.error();
  }
  wire::Options& opts = *call.request.mutable_opts();
  set(call.options, opts);
  if (!config->path().empty()) {
    opts.set_config_file(config->path());
  }
  opts.set_images_dir_fd(images.fd());
  opts.set_work_dir_fd(work_folder.fd());
  if (!opts.has_log_level()) {
    opts.set_log_level(call.kind == CallKind::restore ? kRestoreLogLevel : kDumpLogLevel);
  }
  opts.set_notify_scripts(true);
  // A program that records into a ring file holds a lock on it. Databases lock their files, too.
  opts.set_file_locks(true);
  Result<Answer> answer = make_call(options, call.kind, call.request, passed);
  if (!answer) {
    return with_context(call.tried, answer.error(), call.log_path);
  }
  if (!answer->response.success()) {
    Error error = refused(call.tried, *answer, call.log_path, " (log: " + call.log_path + ")");
    return with_advice(std::move(error), images_dir);
  }
  return answer;
}

Result<DumpReply> dump_reply(const Result<Answer>& answer) {
  if (!answer) {
    return answer.error();
  }
  DumpReply reply;
  reply.criu_time_ns = answer->life_ns;
  reply.criu_major_faults = answer->major_faults;
  return reply;
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
  wire::Request request;
  request.set_type(wire::VERSION);
  const Result<Answer> answer = make_call(options_, CallKind::version, request, nullptr);
  if (!answer) {
    return answer.error();
  }
  if (!answer->response.success() || !answer->response.has_version()) {
    return Error{Code::failed_precondition,
                 "criu '" + options_.path + "' did not report its version"};
  }
  const wire::VersionResponse& v = answer->response.version();
  return Version{v.major_number(), v.minor_number(), v.sublevel(), v.git_id()};
}

Result<Features> Client::features() const {
  wire::Request request;
  request.set_type(wire::FEATURE_CHECK);
  request.mutable_features()->set_mem_track(true);
  request.mutable_features()->set_lazy_pages(true);
  const Result<Answer> answer = make_call(options_, CallKind::check, request, nullptr);
  if (!answer) {
    return answer.error();
  }
  if (!answer->response.success() || !answer->response.has_features()) {
    return Error{Code::failed_precondition,
                 "criu '" + options_.path + "' did not report its features"};
  }
  const wire::FeatureSet& there = answer->response.features();
  return Features{there.mem_track(), there.lazy_pages()};
}

Result<void> Client::check() const {
  const Result<ScratchFolder> folder = ScratchFolder::create("kymo-check");
  if (!folder) return folder.error();
  const std::string log = folder->path() + "/" + kCheckLog;
  const std::string tried = "criu '" + options_.path + "' failed its check of this machine";
  wire::Request request;
  request.set_type(wire::CHECK);
  request.mutable_opts()->set_images_dir_fd(folder->fd());
  request.mutable_opts()->set_log_file(kCheckLog);
  const Result<Answer> answer = make_call(options_, CallKind::check, request, nullptr);
  if (!answer) return with_context(tried, answer.error(), log);
  if (answer->response.success()) return {};
  return refused(tried, *answer, log, "; run 'criu check --all' for more");
}

Result<DumpReply> Client::pre_dump(const PreDumpRequest& request) const {
  CriuCall call{CallKind::pre_dump,
                "criu could not pre-dump process " + std::to_string(request.pid),
                request.work_dir + "/" + kPreDumpLog, request.options};
  call.request.set_type(wire::SINGLE_PRE_DUMP);
  call.request.mutable_opts()->set_pid(request.pid);
  call.request.mutable_opts()->set_log_file(kPreDumpLog);
  track_memory(request.parent, *call.request.mutable_opts());
  return dump_reply(call_criu(limited(options_, request.time_limit, request.cancel), call,
                              request.images_dir, request.work_dir, {}));
}

Result<DumpReply> Client::dump(const DumpRequest& request, const Notified& notified) const {
  const ClientOptions options = limited(options_, request.time_limit, request.cancel);
  if (request.stream) {
    return streamed_dump(options, request, notified);
  }
  CriuCall call{CallKind::dump, "criu could not dump process " + std::to_string(request.pid),
                request.work_dir + "/" + kDumpLog, request.options};
  call.request.set_type(wire::DUMP);
  call.request.mutable_opts()->set_pid(request.pid);
  call.request.mutable_opts()->set_leave_running(request.leave_running);
  call.request.mutable_opts()->set_log_file(kDumpLog);
  if (!request.parent.empty()) {
    track_memory(request.parent, *call.request.mutable_opts());
  }
  const auto until = std::chrono::steady_clock::now() + options.timeout;
  const auto passed = [&](std::string_view name) -> Result<void> {
    if (notified) notified(name);
    if (name != kAllWritten) return {};
    const auto end =
        options.timeout.count() == 0 ? std::chrono::steady_clock::time_point::max() : until;
    Result<void> good = request.held ? check_in_time(request.held, end) : Result<void>();
    if (good && request.sync) good = sync_in_time(request.images_dir, end);
    return good && request.prove ? request.prove(left_until(end)) : good;
  };
  const std::string images_dir = request.held ? request.held->own_path() : request.images_dir;
  return dump_reply(call_criu(options, call, images_dir, request.work_dir, passed));
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
  const ClientOptions options =
      inheriting(limited(options_, std::chrono::milliseconds(0), request.cancel), *files);
  if (request.stream) {
    return streamed_restore(options, request, notified);
  }
  CriuCall call{CallKind::restore, "criu could not restore " + request.images_dir,
                request.work_dir + "/" + kRestoreLog, request.options};
  call.request.set_type(wire::RESTORE);
  call.request.mutable_opts()->set_rst_sibling(true);
  call.request.mutable_opts()->set_log_file(kRestoreLog);
  const auto passed = [&](std::string_view name) {
    if (notified) notified(name);
    return Result<void>();
  };
  const Result<Answer> answer =
      call_criu(options, call, request.images_dir, request.work_dir, passed);
  if (!answer) {
    return answer.error();
  }
  return RestoreReply{answer->response.restore().pid(), answer->life_ns, answer->major_faults};
}

}  // namespace kymo::criu
