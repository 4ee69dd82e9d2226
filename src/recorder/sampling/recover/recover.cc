#include "kymo/recover.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "base/process_identity.h"
#include "base/quiet_thread.h"
#include "base/recording_name.h"
#include "base/sync.h"
#include "base/text_file.h"
#include "base/zstd_frames.h"
#include "recorder/sampling/files/append_file.h"
#include "recorder/sampling/files/contents.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/output_file.h"
#include "recorder/sampling/files/recording_files.h"
#include "recorder/sampling/files/recording_parts.h"
#include "recorder/sampling/files/tsv_format.h"
#include "recorder/sampling/recover/file_end.h"
#include "recorder/sampling/recover/marked.h"
#include "recorder/sampling/recover/ring_aside.h"
#include "recorder/sampling/ring/ring_description.h"
#include "recorder/sampling/ring/ring_memory.h"
#include "recorder/sampling/ring/ring_reader.h"

namespace kymo {
namespace {

constexpr std::size_t kRowsAtOnce = 1000;

struct OpenedRing {
  std::unique_ptr<RingMemory> ring;
  RingDescription description;
  LeftRows rows;
};

// Holds the lock of a ring. The destructor unlocks it. To close the descriptor would not be enough:
// a forked child may have a copy, which would keep the ring locked.
class RingLock {
 public:
  explicit RingLock(const RingFile& file) : fd_(file.fd.get()) {
    held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  }
  ~RingLock() {
    if (held_) ::flock(fd_, LOCK_UN);
  }
  RingLock(const RingLock&) = delete;
  RingLock& operator=(const RingLock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  int fd_;
  bool held_ = false;
};

// `where`: what the message says of the pid, if it is not one of this pid namespace.
Error in_use(const std::string& ring_path, std::uint32_t pid, const char* where = "") {
  return Error{Code::failed_precondition,
               "the ring " + ring_path + " is in use by process " + std::to_string(pid) + where +
                   "; stop it first",
               0};
}

bool is_of_other_namespace(const RingMemory& ring, const std::string& ring_path) {
  const Result<RingDescription> description = describe(ring, ring_path);
  const std::uint64_t there =
      description ? number_of(member(*description->recording, "process"), "pid_namespace") : 0;
  return there != 0 && there != own_pid_namespace();
}

Result<OpenedRing> open_left(const std::string& ring_path) {
  Result<RingFile> file = RingFile::open(ring_path);
  if (!file) {
    return file.error();
  }
  // Recovery writes to the file that the ring names. A ring of another user could name any of our
  // files, and its owner could truncate it while it is mapped.
  if (const uid_t owner = file->owner; owner != ::geteuid()) {
    return Error{Code::permission_denied,
                 "the ring " + ring_path + " belongs to uid " + std::to_string(owner) +
                     " and this is uid " + std::to_string(::geteuid()) +
                     "; recover it as its owner",
                 EPERM};
  }
  const std::uint32_t pid = file->pid;
  Result<std::unique_ptr<RingMemory>> ring = RingMemory::map(*std::move(file));
  if (!ring) {
    return ring.error();
  }
  if (!(*ring)->try_lock()) {
    return in_use(ring_path, pid,
                  is_of_other_namespace(**ring, ring_path) ? " of another pid namespace" : "");
  }
  Result<RingDescription> description = describe(**ring, ring_path);
  if (!description) {
    return description.error();
  }
  Result<LeftRows> rows = left_rows(**ring, ring_path);
  if (!rows) {
    return rows.error();
  }
  return OpenedRing{*std::move(ring), *std::move(description), *std::move(rows)};
}

// The size of the longest text that is appended at once.
std::size_t longest_append(const OpenedRing& left) {
  return static_cast<std::size_t>(left.ring->header().stride) * kRowsAtOnce * kMaxNumberChars;
}

// Appends all of a text or nothing. Returns 0 or errno.
using Append = std::function<int(std::string_view)>;

// Appends the rows of the ring. Returns their number.
Result<std::uint64_t> append_rows(const OpenedRing& left, const Append& append,
                                  const std::string& path) {
  TsvFormatter formatter(left.ring->header().stride, kRowsAtOnce);
  std::uint64_t rows = 0;
  for (const LeftSlot& slot : left.rows.slots) {
    for (std::size_t first = 0; first < slot.rows.count; first += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, slot.rows.count - first);
      const Rows part{slot.rows.data + first * slot.rows.stride, count, slot.rows.stride};
      if (const int error = append(formatter.format(part, 0)); error != 0) {
        return system_error("cannot write " + path, error);
      }
      rows += count;
    }
  }
  return rows;
}

// The first line of a recording with these columns.
std::string header_of(const RingDescription& description) {
  std::string header = "Time (ns)";
  for (const RingDescription::Column& column : description.columns) {
    header += '\t' + column.name;
  }
  return header + '\n';
}

// Checks that the file begins as the recording that the ring names, within the `kept` bytes that
// stay when the file is truncated. It reads through the descriptor that will be truncated, because
// another file may get the name meanwhile.
Result<void> check_header(const FileDescriptor& recording, const std::string& path,
                          const std::string& header, std::uint64_t kept) {
  FileDescriptor same(::fcntl(recording.get(), F_DUPFD_CLOEXEC, 0));
  if (!same.valid()) {
    return system_error("cannot read " + path, errno);
  }
  Result<TextFile> file = TextFile::over(std::move(same), path, kept);
  if (!file) {
    return file.error();
  }
  std::string begin(header.size(), '\0');
  for (std::size_t filled = 0; filled < begin.size();) {
    const Result<std::size_t> size = file->read(begin.data() + filled, begin.size() - filled);
    if (!size) {
      return size.error();
    }
    if (*size == 0) {
      break;
    }
    filled += *size;
  }
  if (begin == header) {
    return {};
  }
  return Error{
      Code::failed_precondition,
      path +
          " does not begin like the recording that the ring belongs to: it was changed since, it "
          "is another recording, or the ring is damaged; the file was not changed"};
}

// Reads the next bytes of a text. Returns fewer only at its end.
using ReadNext = std::function<Result<std::string>(std::size_t)>;

// Whether this text, to its end, is the beginning of what append_rows() appends.
Result<bool> begins_rows(const OpenedRing& left, const ReadNext& read) {
  bool same = true;
  bool ended = false;
  Result<void> outcome;
  const auto compare = [&](std::string_view text) {
    if (!outcome || !same || ended) return 0;
    const Result<std::string> there = read(text.size());
    if (!there) {
      outcome = there.error();
      return 0;
    }
    same = text.starts_with(*there);
    ended = there->size() < text.size();
    return 0;
  };
  if (const Result<std::uint64_t> compared = append_rows(left, compare, {}); !compared) {
    return compared.error();
  }
  if (outcome && same && !ended) {
    const Result<std::string> more = read(1);
    return more ? Result<bool>(more->empty()) : more.error();
  }
  return outcome ? Result<bool>(same) : outcome.error();
}

// Checks that the bytes behind the accepted position are what the recorder, or an earlier recovery,
// wrote of the rows of the ring. Nothing else may be written over.
Result<void> check_end(const OpenedRing& left, const FileEnd& end, const std::string& path) {
  Result<bool> ours = true;
  if (is_compressed_name(path)) {
    // A frame that is only partly there cannot be compared.
    std::uint64_t most = 0;
    for (const LeftSlot& slot : left.rows.slots) {
      most += slot.rows.count * slot.rows.stride * kMaxNumberChars;
    }
    ours = end.old_bytes() <= most;
  } else {
    std::uint64_t offset = 0;
    ours = begins_rows(left, [&](std::size_t bytes) {
      Result<std::string> there = end.read_old(offset, bytes);
      offset += bytes;
      return there;
    });
  }
  if (!ours) {
    return ours.error();
  }
  if (*ours) {
    return {};
  }
  return Error{Code::failed_precondition,
               "cannot recover into " + path + ": its last " + std::to_string(end.old_bytes()) +
                   " bytes are not rows of the ring: another program has written them; the file "
                   "was not changed; choose another file with --output",
               0};
}

// Whether the recorder had begun, or was just beginning, `tsv` as the part after the accepted one.
bool is_part_after(const OpenedRing& left, const std::string& tsv, const std::string& accepted) {
  const nlohmann::json metadata = metadata_of(tsv);
  if (!metadata.is_object()) {
    const Result<Contents> contents = contents_of(tsv);
    return contents && contents->rows == 0;
  }
  return text_of(member(metadata, "part"), "previous") ==
             std::filesystem::path(accepted).filename() &&
         member(metadata, "start_unix_ns") == member(*left.description.recording, "start_unix_ns");
}

// The next part, if the recorder was killed just after it had begun it; empty if there is none. Its
// rows are in the ring, too. Errors: those of reading; failed_precondition if they are not.
Result<std::string> part_after(const OpenedRing& left, const std::string& accepted) {
  std::string tsv;
  for (std::uint64_t number = left.rows.accepted.file() + 1;
       std::filesystem::exists(tsv = part_path(left.description.output, number)); ++number) {
    if (!is_part_after(left, tsv, accepted)) {
      continue;
    }
    Result<TextFile> file = TextFile::open_regular(tsv);
    if (!file) {
      return file.error();
    }
    const auto read = [&](std::size_t bytes) -> Result<std::string> {
      std::string text(bytes, '\0');
      const Result<std::size_t> size = file->read(text.data(), bytes);
      if (!size) return size.error();
      text.resize(*size);
      return text;
    };
    const std::string header = header_of(left.description);
    const Result<std::string> begin = read(header.size());
    if (!begin) {
      return begin.error();
    }
    if (!header.starts_with(*begin)) {
      continue;
    }
    const Result<bool> ours = begins_rows(left, read);
    if (!ours) {
      return ours.error();
    }
    if (!*ours) {
      return Error{Code::failed_precondition,
                   tsv +
                       " has rows that are not in the ring; nothing was changed; recover the "
                       "ring into another file with --output",
                   0};
    }
    return tsv;
  }
  return std::string();
}

// The part of the recording that the recorder wrote last, checked. Nothing has changed yet.
struct LastPart {
  std::string path;
  FileEnd end;
  std::string part_after;  // part_after()
};

Result<LastPart> check_recording(const OpenedRing& left) {
  const OutputPosition accepted = left.rows.accepted;
  const std::string path = part_path(left.description.output, accepted.file());
  const auto choose_another = [](Error error) {
    error.message += "; choose another file with --output";
    return error;
  };
  Result<FileDescriptor> recording = FileEnd::open_own(path);
  if (!recording) {
    return choose_another(recording.error());
  }
  if (Result<void> ours =
          check_header(*recording, path, header_of(left.description), accepted.bytes());
      !ours) {
    return ours.error();
  }
  Result<FileEnd> end = FileEnd::from(*std::move(recording), path, accepted.bytes());
  if (!end) {
    return choose_another(end.error());
  }
  if (Result<void> ours = check_end(left, *end, path); !ours) {
    return ours.error();
  }
  Result<std::string> after = part_after(left, path);
  if (!after) {
    return after.error();
  }
  return LastPart{path, *std::move(end), *std::move(after)};
}

// Why ticks have neither a row nor a gap. If the recorder was killed while its output refused rows, as
// on a full disk, it is that: such a gap is listed when it is over.
MissCause unlisted_cause(const OpenedRing& left) {
  return left.rows.refused ? MissCause::sink_error : MissCause::late;
}

// The ring holds every row until all of them are on the disk. So a recovery that is killed at any
// instant can be done again.
Result<Recovery> recover_into_recording(const OpenedRing& left) {
  Result<LastPart> last = check_recording(left);
  if (!last) {
    return last.error();
  }
  std::optional<FrameCompressor> compressor;
  if (is_compressed_name(last->path)) {
    Result<FrameCompressor> made = FrameCompressor::make(longest_append(left));
    if (!made) {
      return made.error();
    }
    compressor.emplace(*std::move(made));
  }
  const auto append = [&](std::string_view text) {
    const std::string_view bytes = compressor ? compressor->compress(text) : text;
    return bytes.empty() && !text.empty() ? ENOMEM : last->end.append(bytes);
  };
  Result<std::uint64_t> rows = append_rows(left, append, last->path);
  if (!rows) {
    return rows.error();
  }
  if (Result<void> finished = last->end.finish(); !finished) {
    return finished.error();
  }
  if (!last->part_after.empty()) {
    const std::string stem = recording_stem(last->part_after);
    ::unlink(last->part_after.c_str());
    ::unlink((stem + ".gaps.tsv").c_str());
    ::unlink((stem + ".meta.json").c_str());
  }
  if (Result<void> marked =
          mark_recovered(last->path, *left.description.recording, unlisted_cause(left));
      !marked) {
    return marked.error();
  }
  return Recovery{last->path, *rows, last->end.old_bytes()};
}

Result<Recovery> recover_into_new(const OpenedRing& left, const std::string& output) {
  if (Result<void> named = check_recording_name(output); !named) {
    return named.error();
  }
  const std::string header = header_of(left.description);
  Result<OutputFile> file =
      OutputFile::create(output, std::max(header.size(), longest_append(left)));
  if (!file) {
    return file.error();
  }
  if (const int error = file->append(header); error != 0) {
    return system_error("cannot write " + output, error);
  }
  const auto append = [&](std::string_view text) { return file->append(text); };
  Result<std::uint64_t> rows = append_rows(left, append, output);
  if (!rows) {
    return rows.error();
  }
  if (Result<void> synced = sync_path(output); !synced) {
    return synced.error();
  }
  if (Result<void> marked =
          mark_recovered(output, *left.description.recording, unlisted_cause(left));
      !marked) {
    return marked.error();
  }
  return Recovery{output, *rows, 0};
}

}  // namespace

Result<Recovery> recover_ring(const std::string& ring_path,
                              const std::optional<std::string>& output) {
  const WriteSignalsBlocked no_signals;
  Result<OpenedRing> left = open_left(ring_path);
  if (!left) {
    return left.error();
  }
  if (!output && left->description.output.empty()) {
    return Error{Code::failed_precondition,
                 "the ring " + ring_path + " belongs to no file; name one with --output", 0};
  }
  Result<Recovery> recovery =
      output ? recover_into_new(*left, *output) : recover_into_recording(*left);
  if (!recovery) {
    return recovery;
  }
  // The names of new files must be on the disk, too, before the ring goes.
  const auto folder = std::filesystem::absolute(recovery->output).parent_path();
  if (Result<void> synced = sync_path(folder / "."); !synced) {  // the folder may be a link
    return synced.error();
  }
  left->ring->remove_file();
  return recovery;
}

Result<std::string> move_ring_aside(const std::string& ring_path) {
  if (::access(ring_path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return std::string();
  }
  // The owner of the ring does not matter, because its contents are not used and it is not mapped.
  // The ring stays locked until it has its new name.
  const Result<RingFile> ring = RingFile::open(ring_path);
  if (!ring) {
    return ring.error();
  }
  const RingLock lock(*ring);
  if (!lock.held()) {
    return in_use(ring_path, ring->pid);
  }
  for (int n = 1;; ++n) {
    std::string aside = ring_path + ".left-" + std::to_string(n);
    if (::renameat2(AT_FDCWD, ring_path.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0) {
      return aside;
    }
    if (errno != EEXIST) {
      return system_error("cannot move the ring " + ring_path + " aside to " + aside, errno);
    }
  }
}

}  // namespace kymo
