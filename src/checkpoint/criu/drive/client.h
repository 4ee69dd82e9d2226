#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "checkpoint/criu/drive/options.h"
#include "checkpoint/criu/drive/streamed_file.h"
#include "checkpoint/criu/images/image_codec.h"
#include "kymo/result.h"

namespace kymo::criu {

class HeldImages;

enum class CallKind : std::uint8_t { version, check, pre_dump, dump, restore };
// The names, in the order of CallKind.
inline constexpr std::array<std::string_view, 5> kCallNames{"version", "check", "pre-dump", "dump",
                                                            "restore"};

// One finished call of criu, to be counted.
struct Call {
  CallKind kind = CallKind::version;
  bool ok = false;
  std::uint64_t duration_ns = 0;  // life of the criu process; of a failed call: the whole call
};

struct Version {
  int major = 0;
  int minor = 0;
  int sublevel = 0;
  std::string git_id;

  // "4.1.1"
  [[nodiscard]] std::string text() const;
  // Parses such a text; the last number may be absent. Returns nothing if it is not a version.
  static std::optional<Version> parse(const std::string& text);
};

// Features that a kernel may lack. Plain dumps do not need them.
struct Features {
  bool dirty_tracking = false;  // for pre-dumps: writes only what changed since the parent image
  bool lazy_pages = false;      // for lazy restores: fetches memory after the restore
};

// The default levels of CRIU's log. They are high enough for all marks that phases.h needs. At
// level 4, a dump writes 17 lines for each MiB of memory while the process is frozen
// (docs/performance.md).
inline constexpr int kDumpLogLevel = 3;
inline constexpr int kRestoreLogLevel = 4;

struct ClientOptions {
  std::string path = "criu";  // a file if it has a slash, else looked up on PATH
  // A criu that lives longer is killed with its process group; 0: no limit.
  std::chrono::milliseconds timeout{0};
  // Called on the caller's thread after each call of criu, also after a failed one.
  std::function<void(const Call&)> called;
  // Ends a running criu, like the timeout does. May be null, and must outlive the calls. Dumps and
  // restores use the `cancel` of their request instead.
  const Cancellation* cancel = nullptr;
  // Descriptors of this process that a restore gives to criu. Only restores set it, from the files
  // of their request.
  std::vector<int> inherited{};
};

// Called for each notification; criu waits until it returns.
using Notified = std::function<void(std::string_view name)>;
// Called when criu has got the answer, which may come later.
using Answered = std::function<void()>;

// A round before a dump. It writes only memory, and the process is stopped only for a moment.
struct PreDumpRequest {
  pid_t pid = 0;
  std::string images_dir;
  std::string work_dir;  // pre-dump.log and stats-dump go here
  std::string parent;    // the round before, relative to images_dir; empty: the first
  std::chrono::milliseconds time_limit{0};  // as in DumpRequest
  Options options{};
  const Cancellation* cancel = nullptr;  // as in DumpRequest
};

struct DumpRequest {
  pid_t pid = 0;
  std::string images_dir;
  std::string work_dir;  // dump.log and stats-dump go here
  bool leave_running = false;
  // Make the images durable before the processes end or run on (sync_images.h). If that fails or
  // takes too long, the dump fails and the processes run on.
  bool sync = false;
  // If set, the images pass through an image streamer, which stores them in this encoding. The streamer's thread calls `streamed` as the images arrive.
  std::optional<Encoding> stream = std::nullopt;
  std::function<void(const Streamed& so_far)> streamed = nullptr;
  std::chrono::milliseconds time_limit{0};  // if shorter than the client's timeout; 0: none
  Options options{};
  std::string parent{};  // the last pre-dump, relative to images_dir; empty: there is none
  // If set, the images are written into this folder, and are checked before the processes end or run on. If another
  // program has changed them, the dump fails and the processes run on.
  std::shared_ptr<HeldImages> held{};
  // If set, it is called when all images are written, while the processes stand still. If it returns an
  // error, the dump fails with it and the processes run on. `left`: until the timeout.
  std::function<Result<void>(std::chrono::milliseconds left)> prove{};
  Answered answered{};
  // Called when kymod begins to do this before it answers: kSyncPhase. Empty: it has done it.
  std::function<void(std::string_view what)> working{};
  const Cancellation* cancel = nullptr;  // ends the dump, as in ClientOptions
};

struct RestoreRequest {
  std::string images_dir;
  std::string work_dir;  // restore.log and stats-restore go here
  // Whether the images must pass through an image streamer, because they are compressed.
  bool stream = false;
  std::function<void(const Streamed& so_far)> streamed = nullptr;
  Options options{};
  Answered answered{};
  const Cancellation* cancel = nullptr;  // as in DumpRequest
};

// A restore that is taken back before anything runs (rehearsal.h).
struct RehearsalRequest {
  std::string images_dir;
  std::string work_dir;  // rehearsal.log goes here
  Options options{};
  std::vector<std::string> changed{};       // as Needs::changed
  std::chrono::milliseconds time_limit{0};  // as in DumpRequest
  const Cancellation* cancel = nullptr;     // as in DumpRequest
};

struct DumpReply {
  std::uint64_t criu_time_ns = 0;
  std::uint64_t criu_major_faults = 0;  // as of Child::major_faults()
  Streamed streamed;
  std::string warning;  // what went wrong after all images were written; empty: nothing
};

struct RestoreReply {
  pid_t pid = 0;  // a child of the calling process, which must reap it
  std::uint64_t criu_time_ns = 0;
  std::uint64_t criu_major_faults = 0;
};

// Drives CRIU by its command line and an action script (command.h). A streamed dump or restore runs
// `criu --stream` with our own image streamer. All images are complete in files before CRIU lets the
// process go or ends it. So if the disk is full, for example, the dump fails and the process runs on.
// CRIU itself then writes only into the work directory, so if that is on a memory file system, CRIU can
// be ended at any time, also while the disk of the images does not answer.
//
// Threads:   every member from any thread. The caller's thread blocks until criu has ended.
// Ownership: holds nothing between calls.
// Errors:    one line with criu's answer and the last errors of its log. not_found if there is no
//            such binary; deadline_exceeded if criu took longer than the timeout and was killed;
//            cancelled; unavailable if a signal ended criu; failed_precondition if criu refused. After a failed dump, criu has let the process
//            go (ensure_running() in runtime/process_checks.h checks this).
// Cost:      the start of criu, some milliseconds.
class Client {
 public:
  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Result<Version> version() const;
  // Checks whether this machine's kernel can do what criu needs, as `criu check` does.
  [[nodiscard]] Result<void> check() const;
  // Asks for further features of the kernel. Counted as a call of the kind `check`.
  [[nodiscard]] Result<Features> features() const;
  // Call it only if features() has dirty_tracking.
  [[nodiscard]] Result<DumpReply> pre_dump(const PreDumpRequest& request) const;
  [[nodiscard]] Result<DumpReply> dump(const DumpRequest& request, const Notified& notified) const;
  [[nodiscard]] Result<RestoreReply> restore(const RestoreRequest& request,
                                             const Notified& notified) const;
  [[nodiscard]] Result<void> rehearse(const RehearsalRequest& request) const;

 private:
  ClientOptions options_;
};

}  // namespace kymo::criu
