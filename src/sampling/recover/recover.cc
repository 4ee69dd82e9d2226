#include "kymo/recover.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "base/process_identity.h"
#include "base/quiet_thread.h"
#include "base/recording_name.h"
#include "base/text_file.h"
#include "base/zstd_frames.h"
#include "sampling/files/append_file.h"
#include "sampling/files/metadata.h"
#include "sampling/files/output_file.h"
#include "sampling/files/recording_files.h"
#include "sampling/files/recording_parts.h"
#include "sampling/files/stats_members.h"
#include "sampling/files/tsv_format.h"
#include "sampling/ring/ring_description.h"
#include "sampling/ring/ring_memory.h"
#include "sampling/ring/ring_reader.h"

namespace kymo {
namespace {

constexpr std::size_t kRowsAtOnce = 1000;
constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr std::size_t kMaxBeside = std::size_t{1} << 30U;
constexpr auto kCauses = {MissCause::late, MissCause::ring_full, MissCause::sink_error,
                          MissCause::frozen};

struct OpenedRing {
  std::unique_ptr<RingMemory> ring;
  RingDescription description;
  std::vector<LeftSlot> slots;
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
  OpenedRing left{*std::move(ring), *std::move(description), {}};
  left.slots = left_slots(*left.ring);
  return left;
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
  for (const LeftSlot& slot : left.slots) {
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

std::string metadata_path(const std::string& tsv) {
  return recording_stem(tsv) + ".meta.json";
}

// The contents of the whole file: the number of rows, and the time of the last.
struct Contents {
  std::uint64_t rows = 0;
  std::uint64_t last_ns = 0;
};

// `take` is called with the time of each row.
Result<Contents> contents_of(const std::string& tsv,
                             const std::function<void(std::uint64_t)>& take = nullptr) {
  Result<TextFile> file = TextFile::open_regular(tsv);
  if (!file) {
    return file.error();
  }
  Contents contents;
  std::vector<char> piece(kPieceBytes);
  std::string line;  // the beginning of a line whose end is in the next piece
  for (std::uint64_t lines = 0;;) {
    const Result<std::size_t> size = file->read(piece.data(), piece.size());
    if (!size) {
      return size.error();
    }
    std::string_view text(piece.data(), *size);
    for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      line.append(text.substr(0, end));
      if (lines++ != 0) {  // the first is the header
        contents.last_ns = std::strtoull(line.c_str(), nullptr, 10);
        ++contents.rows;
        if (take) take(contents.last_ns);
      }
      line.clear();
    }
    line.append(text);
    if (*size == 0) {
      return contents;
    }
  }
}

// The text of a file beside the recording; empty if there is none, or if it is not a regular file.
std::string text_beside(const std::string& path) {
  Result<TextFile> file = TextFile::open_regular(path);
  std::string text;
  std::vector<char> piece(kPieceBytes);
  while (file && text.size() < kMaxBeside) {
    const Result<std::size_t> size = file->read(piece.data(), piece.size());
    if (!size || *size == 0) {
      break;
    }
    text.append(piece.data(), *size);
  }
  return text;
}

std::string gaps_path(const std::string& tsv) {
  return recording_stem(tsv) + ".gaps.tsv";
}

// The gaps in the gaps file, by their beginning. The last gaps may be missing, because the recorder
// was killed.
std::vector<Gap> listed_gaps(const std::string& tsv) {
  std::istringstream file(text_beside(gaps_path(tsv)));
  std::string line;
  std::getline(file, line);
  std::vector<Gap> gaps;
  for (Gap gap; file >> gap.start_ns >> gap.end_ns >> gap.ticks >> line;) {
    for (const MissCause cause : kCauses) {
      if (line == name_of(cause) && gap.start_ns < gap.end_ns) {
        gap.cause = cause;
        gaps.push_back(gap);
      }
    }
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
  return gaps;
}

// Finds the ticks that are neither a row nor in a listed gap, from the times of the rows.
class UnlistedGaps {
 public:
  // `listed`: by their beginning; must outlive this.
  UnlistedGaps(const std::vector<Gap>& listed, std::uint64_t interval_ns)
      : listed_(listed), interval_ns_(interval_ns) {}

  void add_row(std::uint64_t time_ns) {
    const std::uint64_t tick = time_ns / interval_ns_;
    if (!begun_) {
      begun_ = true;
      next_ = listed_.empty() ? tick : std::min(tick, listed_.front().start_ns / interval_ns_);
    }
    while (next_ < tick) {
      while (at_ < listed_.size() && listed_[at_].end_ns / interval_ns_ <= next_) ++at_;
      if (at_ == listed_.size() || listed_[at_].start_ns / interval_ns_ >= tick) {
        add(tick);
        break;
      }
      add(listed_[at_].start_ns / interval_ns_);
      next_ = listed_[at_].end_ns / interval_ns_;
    }
    next_ = std::max(next_, tick + 1);
  }
  [[nodiscard]] const std::vector<Gap>& found() const { return found_; }

 private:
  // The ticks from next_ to before `end`.
  void add(std::uint64_t end) {
    if (end <= next_) return;
    found_.push_back({next_ * interval_ns_, end * interval_ns_, end - next_, MissCause::late});
  }

  const std::vector<Gap>& listed_;
  const std::uint64_t interval_ns_;
  std::size_t at_ = 0;      // the first listed gap that may have ticks from next_ on
  std::uint64_t next_ = 0;  // the tick after the last row or gap
  bool begun_ = false;
  std::vector<Gap> found_;
};

// Appends gaps to the gaps file, or makes one. A gap that was half written is cut off before. Does
// nothing if the file is a link or belongs to somebody else: the ticks are counted all the same.
Result<void> list_gaps(const std::vector<Gap>& gaps, const std::string& tsv) {
  const std::string path = gaps_path(tsv);
  const std::string there = text_beside(path);
  const std::size_t whole = there.rfind('\n') + 1;  // 0 if there is no line
  std::string lines;
  if (whole == 0) lines = kGapsHeader;
  for (const Gap& gap : gaps) {
    lines += gap_line(gap);
  }
  if (lines.empty()) {
    return {};
  }
  if (Result<AppendFile> made = AppendFile::create(path)) {
    const int error = made->append(lines);
    return error == 0 ? Result<void>() : system_error("cannot write " + path, error);
  }
  Result<FileDescriptor> own = AppendFile::open_own(path);
  if (!own) {
    return {};
  }
  Result<AppendFile> file = AppendFile::resume(*std::move(own), path, whole);
  if (!file) {
    return file.error();
  }
  const int error = file->append(lines);
  return error == 0 ? Result<void>() : system_error("cannot write " + path, error);
}

// The metadata of the recording; null if there are none.
nlohmann::json metadata_of(const std::string& tsv) {
  const std::string text = text_beside(metadata_path(tsv));
  return text.empty() ? nlohmann::json() : parse_object(text);
}

// The counts of a recovered recording, as far as the files tell them. The others are erased.
void count_anew(const Contents& contents, const std::vector<Gap>& gaps, nlohmann::json& stats) {
  std::map<MissCause, std::uint64_t> missed;
  for (const Gap& gap : gaps) {
    missed[gap.cause] += gap.ticks;
  }
  // Rows that were lost with a file that somebody removed are in no gap.
  missed.try_emplace(MissCause::sink_error, number_of(stats, "missed_sink_error"));
  if (number_of(stats, "missed_late") != missed[MissCause::late]) {
    for (const char* why : {"late_waited", "late_sample", "late_stolen", "late_page_fault"}) {
      stats.erase(why);
    }
  }
  std::uint64_t due = contents.rows;
  for (const MissCause cause : kCauses) {
    stats["missed_" + std::string(name_of(cause))] = missed[cause];
    due += missed[cause];
  }
  stats["ticks_due"] = due;
  stats["rows_written"] = contents.rows;
  const std::uint64_t captured = contents.rows + missed[MissCause::sink_error];
  if (number_of(stats, "rows_captured") != captured) {
    for (const StatsMember& figure : kStatsMembers) {
      if (figure.of_rows) stats.erase(figure.name);
    }
  }
  stats["rows_captured"] = captured;
  stats["duration_ns"] = contents.last_ns;
}

// Marks the recording as recovered, with counts taken from the files. Ticks between the first row
// or gap and the last row that are neither a row nor in a gap become gaps, as late: the recorder
// was killed before it could list them.
Result<void> mark_recovered(const OpenedRing& left, const std::string& tsv) {
  nlohmann::json metadata = metadata_of(tsv);
  if (!metadata.is_object()) {
    metadata = *left.description.recording;
  }
  std::vector<Gap> gaps = listed_gaps(tsv);
  UnlistedGaps unlisted(gaps, std::max<std::uint64_t>(1, number_of(metadata, "interval_ns")));
  const Result<Contents> contents =
      contents_of(tsv, [&](std::uint64_t time_ns) { unlisted.add_row(time_ns); });
  if (!contents) {
    return contents.error();
  }
  const std::vector<Gap> found = unlisted.found();
  if (Result<void> listed = list_gaps(found, tsv); !listed) {
    return listed;
  }
  gaps.insert(gaps.end(), found.begin(), found.end());
  nlohmann::json& stats = metadata["stats"];
  if (!stats.is_object()) {
    stats = nlohmann::json::object();
  }
  count_anew(*contents, gaps, stats);
  std::error_code unknown;
  if (const auto bytes = std::filesystem::file_size(tsv, unknown); !unknown) {
    stats["bytes_written"] = bytes;
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.ticks > b.ticks; });
  gaps.resize(std::min(gaps.size(), kMaxLongestGaps));
  nlohmann::json& longest = metadata["longest_gaps"] = nlohmann::json::array();
  for (const Gap& gap : gaps) {
    longest.push_back(describe_gap(gap));
  }
  if (member(metadata, "part").is_object()) {
    metadata["part"].erase("next");
  }
  metadata["state"] = "recovered";
  return replace_file(metadata_path(tsv), json_text(metadata, 1) + '\n');
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

// Removes the next part if the recorder was killed just after it had begun it. The rows of this
// part are in the ring, too.
void remove_part_after(const OpenedRing& left, std::uint64_t number, const std::string& accepted) {
  for (std::string tsv;
       std::filesystem::exists(tsv = part_path(left.description.output, ++number));) {
    if (is_part_after(left, tsv, accepted)) {
      const std::string stem = recording_stem(tsv);
      ::unlink(tsv.c_str());
      ::unlink((stem + ".gaps.tsv").c_str());
      ::unlink((stem + ".meta.json").c_str());
      return;
    }
  }
}

Result<Recovery> recover_into_recording(const OpenedRing& left) {
  const OutputPosition accepted(left.ring->header().accepted.load(std::memory_order_acquire));
  const std::string output = part_path(left.description.output, accepted.file());
  const auto choose_another = [](Error error) {
    error.message += "; choose another file with --output";
    return error;
  };
  Result<FileDescriptor> recording = AppendFile::open_own(output);
  struct stat status {};
  if (!recording || ::fstat(recording->get(), &status) != 0) {
    return choose_another(recording ? system_error("cannot continue " + output, errno)
                                    : recording.error());
  }
  if (Result<void> ours =
          check_header(*recording, output, header_of(left.description), accepted.bytes());
      !ours) {
    return ours.error();
  }
  std::optional<FrameCompressor> compressor;
  if (is_compressed_name(output)) {
    Result<FrameCompressor> made = FrameCompressor::make(longest_append(left));
    if (!made) {
      return made.error();
    }
    compressor.emplace(*std::move(made));
  }
  Result<AppendFile> file = AppendFile::resume(*std::move(recording), output, accepted.bytes());
  if (!file) {
    return choose_another(file.error());
  }
  const auto append = [&](std::string_view text) {
    const std::string_view bytes = compressor ? compressor->compress(text) : text;
    return bytes.empty() && !text.empty() ? ENOMEM : file->append(bytes);
  };
  Result<std::uint64_t> rows = append_rows(left, append, output);
  if (!rows) {
    return rows.error();
  }
  remove_part_after(left, accepted.file(), output);
  if (Result<void> marked = mark_recovered(left, output); !marked) {
    return marked.error();
  }
  return Recovery{output, *rows, static_cast<std::uint64_t>(status.st_size) - accepted.bytes()};
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
  if (Result<void> marked = mark_recovered(left, output); !marked) {
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
  if (recovery) {
    left->ring->remove_file();
  }
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
