#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "criu/image_codec.h"
#include "criu/streamed_file.h"
#include "kymo/result.h"

namespace kymo::criu {

enum class CallKind : std::uint8_t { version, check, pre_dump, dump, restore };
// By kind.
inline constexpr std::array<std::string_view, 5> kCallNames{"version", "check", "pre-dump", "dump",
                                                            "restore"};

// One finished call of criu, for whoever counts them.
struct Call {
  CallKind kind = CallKind::version;
  bool ok = false;
  std::uint64_t duration_ns = 0;  // life of the criu process
};

struct Version {
  int major = 0;
  int minor = 0;
  int sublevel = 0;
  std::string git_id;

  // "4.1.1"
  [[nodiscard]] std::string text() const;
  // From such a text, also without its last number; none where it is no version.
  static std::optional<Version> parse(const std::string& text);
};

// What a kernel may lack and plain dumps do without.
struct Features {
  bool dirty_tracking = false;  // pre-dump: only what changed since the parent image is written
  bool lazy_pages = false;      // restore first, fetch memory afterwards
};

// Of CRIU's log, if nothing is said: with every mark that tells phases apart. At level 4 a dump
// writes 17 lines for each MiB of memory while the process is frozen (docs/performance.md).
inline constexpr int kDumpLogLevel = 3;
inline constexpr int kRestoreLogLevel = 4;

struct ClientOptions {
  std::string path = "criu";  // with a slash a file, else looked up on PATH
  // A criu that lives longer is killed with its process group; 0: no limit.
  std::chrono::milliseconds timeout{0};
  // Called after each call of criu, on the caller's thread, failed ones included.
  std::function<void(const Call&)> called;
  // Ends a criu that runs, as the timeout does. Null: nobody can. Must outlive the calls.
  const Cancellation* cancel = nullptr;
};

// Called for each notification; criu waits until it returns.
using Notified = std::function<void(std::string_view name)>;

// What a dump, and its restore, is told besides.
struct SharedOptions {
  bool tcp_established = false;
  bool shell_job = false;
  std::vector<std::string> external;  // mnt[PATH]:NAME at a dump, mnt[NAME]:PATH at a restore
  int log_level = 0;                  // of CRIU's log; 0: the default
  bool ext_unix_sk = false;           // with what is connected to datagram sockets of others
  std::string root;                   // of a restore, of its mount namespace; empty: as it is
};

// A round before a dump: memory alone is written, while the process runs but for a moment.
struct PreDumpRequest {
  pid_t pid = 0;
  std::string images_dir;
  std::string work_dir;  // pre-dump.log and stats-dump go here
  std::string parent;    // the round before, relative to images_dir; empty: the first
  std::chrono::milliseconds time_limit{0};  // as of a dump
  SharedOptions options{};
  const Cancellation* cancel = nullptr;  // as of a dump
};

struct DumpRequest {
  pid_t pid = 0;
  std::string images_dir;
  std::string work_dir;  // dump.log and stats-dump go here
  bool leave_running = false;
  // The images are made durable before the processes end or run on (sync_images.h). Where that
  // fails or does not end in time, the dump fails and they run on.
  bool sync = false;
  // Set: through an image streamer, which keeps the images so (streamed.h); `streamed` is then
  // called as they come, on a thread of the streamer's.
  std::optional<Encoding> stream = std::nullopt;
  std::function<void(const Streamed& so_far)> streamed = nullptr;
  std::vector<std::string> arguments{};     // of a streamed one: more for criu's command line
  std::chrono::milliseconds time_limit{0};  // shorter than the client's timeout; 0: none
  SharedOptions options{};                  // of one that is not streamed
  std::string parent{};  // the last pre-dump, relative to images_dir; empty: there is none
  const Cancellation* cancel = nullptr;  // ends it, as of ClientOptions
};

struct RestoreRequest {
  std::string images_dir;
  std::string work_dir;  // restore.log and stats-restore go here
  // Whether the images must go through an image streamer: they are compressed.
  bool stream = false;
  std::function<void(const Streamed& so_far)> streamed = nullptr;
  std::vector<std::string> arguments{};  // with it: more for criu's command line
  SharedOptions options{};               // of one that is not streamed
  const Cancellation* cancel = nullptr;  // as of a dump
};

struct DumpReply {
  std::uint64_t criu_time_ns = 0;
  std::uint64_t criu_major_faults = 0;  // how often criu waited for the disk to have its own files
  Streamed streamed;
  std::string warning;  // what went wrong once all was written; empty: nothing
};

struct RestoreReply {
  pid_t pid = 0;  // a child of the calling process, which must reap it
  std::uint64_t criu_time_ns = 0;
  std::uint64_t criu_major_faults = 0;
};

// Drives CRIU by its RPC: each call starts a `criu swrk` of its own and ends it.
//
// Threads:   every member from any thread. The caller's thread blocks until criu has ended.
// Ownership: holds nothing between calls.
// Errors:    one line with what criu answered and the last errors of its log. not_found: no such
//            binary; deadline_exceeded: it took longer than the timeout and was killed; cancelled;
//            unavailable: it ended without an answer; failed_precondition, or what criu's errno
//            means: it refused. After a failed dump criu has let the process go; see runtime for
//            the check of that.
// Cost:      starting criu, some milliseconds.
class Client {
 public:
  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Result<Version> version() const;
  // Whether this machine's kernel can do what criu needs: `criu check`.
  [[nodiscard]] Result<void> check() const;
  // What else it can do; counted as a check.
  [[nodiscard]] Result<Features> features() const;
  // Only where features() has dirty_tracking.
  [[nodiscard]] Result<DumpReply> pre_dump(const PreDumpRequest& request) const;
  [[nodiscard]] Result<DumpReply> dump(const DumpRequest& request, const Notified& notified) const;
  [[nodiscard]] Result<RestoreReply> restore(const RestoreRequest& request,
                                             const Notified& notified) const;

 private:
  ClientOptions options_;
};

}  // namespace kymo::criu
