#include "checkpoint/failures/root_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "base/beneath.h"

namespace kymo::failures {
namespace {

// Every run, or the clean-up after every failure, writes these; or they advise after the cause.
constexpr std::string_view kNoise[] = {"Can't setup RLIMIT_NOFILE for self",
                                       "Dumping FAILED",
                                       "Pre-dumping FAILED",
                                       "Restoring FAILED",
                                       "Unable to detach from",
                                       "Can't remove the directory /tmp/.criu.",
                                       "cgroupd: recv req error",
                                       "irmap: Can't stat",
                                       "Can't read link of fd -404",
                                       "munmap for remote map",
                                       "POKEDATA failed",
                                       "Can't poke",
                                       "Can't umount",
                                       "Unable to umount",
                                       "Can't unmount",
                                       "Failed to umount",
                                       "In-flight connections can be ignored",
                                       "For Go programs, consider",
                                       "si_code="};

// Tests of features. They are causes only if CRIU then gives up looking at the kernel.
constexpr std::string_view kProbes[] = {
    "Diag module missing", "reported by netlink", "Unable create a network namespace",
    "Unable to create a veth pair", "Can't send request message"};

// Steps that fail because of something written before.
constexpr std::string_view kWrappers[] = {"Dump files (pid",
                                          "Dump core (pid",
                                          "Dump mappings (pid",
                                          "Dump mm (pid",
                                          "Dump pages (pid",
                                          "Dump fs (pid",
                                          "Dump creds (pid",
                                          "Dump ids (pid",
                                          "Dump parasite (pid",
                                          "Dump sigactions (pid",
                                          "Collect mappings (pid",
                                          "Collect fds (pid",
                                          "Can't infect (pid",
                                          "for daemon failed",
                                          "Parasite failed to",
                                          "Unable to open fd=",
                                          "- Can't open vma",
                                          "Can't fixup VMA's fd",
                                          "exited, status=",
                                          "Can't restore tmpfs content",
                                          "killed by signal",
                                          "Restorer fail",
                                          "Can't make NSID id",
                                          "failed when initializing kerndat",
                                          "Could not initialize kernel features detection",
                                          "vdso: Failed to",
                                          "One of more action scripts failed",
                                          "handle_device_vma plugin failed",
                                          "mapfile link",
                                          "bfd: Error flushing image",
                                          "Setting PID failed",
                                          "Dump eventpoll (pid",
                                          "Can't dump tasks",
                                          "Can't collect mappings"};

// Lines that explain a failure though CRIU does not call them errors.
constexpr std::string_view kSilent[] = {"collect procedure family", "kid_lookup_epoll: no match",
                                        "Found VVAR area without support", "`- returned 0"};

// The same without a time: of programs that CRIU started, and of CRIU before it has a log.
constexpr std::string_view kUnstamped[] = {"execvp(\"",
                                           "exec failed: ",
                                           ": Cannot fork: ",
                                           "CRIU needs to have the CAP_",
                                           "tables-restore: invalid option",
                                           "You need to be root"};

constexpr std::string_view kProbingFailed = "failed when initializing kerndat";
constexpr std::string_view kInterrupt = "Unable to interrupt task:";

bool has(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Takes "(00.012345) " off, and says whether it was there.
bool take_time(std::string_view& line) {
  const std::size_t close = line.find(')');
  if (!line.starts_with('(') || close == std::string_view::npos ||
      !is_number(line.substr(1, close - 1))) {
    return false;
  }
  line.remove_prefix(close + 1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return true;
}

// Takes "pie: 12: " off, or " 12: "; returns the pid, 0 if there is none.
std::uint64_t take_pid(std::string_view& line) {
  if (line.starts_with("pie: ")) line.remove_prefix(5);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::uint64_t pid = 0;
  const auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), pid);
  const auto digits = static_cast<std::size_t>(end - line.data());
  if (bad != std::errc() || !line.substr(digits).starts_with(": ")) return 0;
  line.remove_prefix(digits + 2);
  return pid;
}

// The pid in "...  12: ", which stands before an error; 0 if there is none.
std::uint64_t pid_before(std::string_view text) {
  constexpr std::string_view kEnd = ": ";
  if (!text.ends_with(kEnd)) return 0;
  text.remove_suffix(kEnd.size());
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::uint64_t pid = 0;
  std::from_chars(text.data() + digits, text.data() + text.size(), pid);
  return pid;
}

// The text of an error: behind "(FILE:LINE): ".
std::string_view text_of(std::string_view error) {
  const std::size_t place = error.find("): ");
  return place == std::string_view::npos ? error : error.substr(place + 3);
}

bool is_bare_socket(std::string_view text) {
  constexpr std::string_view kUnix = "unix: ";
  return text.starts_with(kUnix) && is_number(text.substr(kUnix.size()));
}

void keep_first(std::optional<std::string>& kept, std::string_view line) {
  if (!kept) kept.emplace(line);
}

}  // namespace

void RootFinder::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (part_.empty() && end != std::string_view::npos) {
      line(piece.substr(0, kMaxLine));
    } else {
      part_.append(piece.substr(0, kMaxLine - std::min(part_.size(), kMaxLine)));
      if (end == std::string_view::npos) return;
      line(part_);
      part_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void RootFinder::line(std::string_view text) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const bool stamped = take_time(text);
  const std::uint64_t pid = take_pid(text);
  is_log_ = is_log_ || stamped;
  if (text.starts_with("Error (") || text.starts_with("Error: ")) {
    return error(text, pid);
  }
  // Another program's line may stand before ours, without an end.
  const std::size_t inside = text.find("Error (");
  if (inside != std::string_view::npos && text.find(".c:", inside) != std::string_view::npos &&
      text.find("): ", inside) != std::string_view::npos) {
    return error(text.substr(inside), pid_before(text.substr(0, inside)));
  }
  if (stamped) return other(text);
  if (has(text, kUnstamped)) keep_first(unstamped_, text);
  other(text);
}

void RootFinder::error(std::string_view text, std::uint64_t pid) {
  is_log_ = true;
  if (pid != 0) about_.pid = pid;
  const std::string_view said = text_of(text);
  if (has(said, "FAILED")) about_.failed = about_.failed || has(said, "ing FAILED");
  if (has(said, kProbingFailed)) probing_failed_ = true;
  if (has(said, kInterrupt)) return keep_first(warning_, text);
  if (has(text, kNoise) || is_bare_socket(said)) return;
  // A restored process tests nothing: what its line says has failed.
  if (pid == 0 && has(text, kProbes)) return keep_first(probe_, text);
  if (has(text, kWrappers)) return keep_first(wrapper_, text);
  keep_first(root_, text);
}

void RootFinder::other(std::string_view text) {
  if (text.starts_with("Dumping processes (pid") || text.starts_with("Reading image tree")) {
    root_ = silent_ = warning_ = probe_ = wrapper_ = unstamped_ = std::nullopt;
    probing_failed_ = false;
    about_ = Root{};
    is_log_ = true;
  }
  if (has(text, "finished successfully")) about_.finished = true;
  if (text.starts_with("Warn") && has(text, kInterrupt)) return keep_first(warning_, text);
  if (has(text, kSilent)) {
    const bool fails = !has(text, "collect procedure family") || has(text, ": -2");
    if (fails) keep_first(silent_, text);
  }
  if (!root_) step(text);
}

void RootFinder::step(std::string_view text) {
  constexpr std::string_view kPid = "(pid: ";
  constexpr std::size_t kMaxStep = 80;
  const std::size_t at = text.find(kPid);
  if (at == std::string_view::npos || text.size() > kMaxStep) return;
  const std::string_view digits = text.substr(at + kPid.size());
  std::uint64_t pid = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (pid == 0) return;
  about_.pid = pid;
  about_.step.assign(text);
}

Root RootFinder::finish() {
  if (!part_.empty()) {
    const std::string last = std::exchange(part_, {});
    line(last);
  }
  if (!about_.failed && !wrapper_) silent_.reset();  // healthy logs have such lines, too
  Root root = about_;
  root.is_log = is_log_;
  const std::optional<std::string>* const found[] = {
      &root_, &unstamped_, &warning_, probing_failed_ ? &probe_ : &silent_, &silent_, &wrapper_};
  for (const std::optional<std::string>* line : found) {
    if (!*line) continue;
    root.line = **line;
    root.only_step = line == &wrapper_;
    root.probe = line == &probe_;
    break;
  }
  return root;
}

Root read_root(int fd) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  RootFinder finder;
  std::vector<char> piece(kPiece);
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return finder.finish();
    finder.add({piece.data(), static_cast<std::size_t>(got)});
  }
}

Root root_of_log(const std::string& path) {
  const Result<FileDescriptor> log = open_no_link(path, O_RDONLY);
  return log ? read_root(log->get()) : Root{};
}

}  // namespace kymo::failures
