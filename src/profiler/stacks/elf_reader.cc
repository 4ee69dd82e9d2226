#include "profiler/stacks/elf_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/confine/run.h"
#include "profiler/stacks/elf_file.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{64} << 10U;  // 1024 segments have 24 KiB

// Bounds of the process's whole life. A question has bounds of its own.
confine::Bounds bounds_with(int socket) {
  confine::Bounds bounds;
  bounds.descriptors = {socket};
  bounds.memory_bytes = std::uint64_t{2} << 30U;
  bounds.cpu_time = std::chrono::hours(24 * 365);
  bounds.time = std::chrono::seconds(0);
  bounds.receives_files = true;
  return bounds;
}

// A message for sendmsg(2) and recvmsg(2) with room for one descriptor. It points into itself.
struct Message {
  Message(void* bytes, std::size_t size) : part{bytes, size} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  void make_room() {
    head.msg_control = control.data();
    head.msg_controllen = control.size();
  }

  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};
};

}  // namespace

struct ElfReader::Question {
  Asked asked = Asked::open;
  bool vdso = false;
  std::uint64_t id = 0;
  std::uint64_t address = 0;
};

ElfReader::ElfReader(Patience patience) : patience_(patience) {
  start();
}

ElfReader::~ElfReader() {
  end();
}

void ElfReader::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor others(ends[1]);
  const Result<pid_t> pid =
      confine::start_confined(bounds_with(others.get()), [&] { return serve(others.get()); });
  if (!pid) return socket_.reset();
  pid_ = *pid;
  ++started_;
}

void ElfReader::end() {
  socket_.reset();
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  rusage used{};
  int status = 0;
  while (::wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
  }
  // The process could not restrict itself on this machine, and said so by its exit status.
  unable_ = !answered_ && WIFEXITED(status) && WEXITSTATUS(status) != 0;
  constexpr std::uint64_t kMicrosecond = 1000;
  for (const timeval& time : {used.ru_utime, used.ru_stime}) {
    ended_cpu_ns_ += static_cast<std::uint64_t>(time.tv_sec) * kNanosPerSecond +
                     static_cast<std::uint64_t>(time.tv_usec) * kMicrosecond;
  }
  pid_ = 0;
}

std::uint64_t ElfReader::child_cpu_ns() const {
  clockid_t clock = 0;
  timespec used{};
  if (pid_ == 0 || ::clock_getcpuclockid(pid_, &clock) != 0) return 0;
  return ::clock_gettime(clock, &used) == 0 ? to_nanos(used) : 0;
}

std::uint64_t ElfReader::cpu_ns() const {
  return ended_cpu_ns_ + child_cpu_ns();
}

bool ElfReader::send(int socket, const Question& question, int fd) {
  Question copy = question;
  Message message(&copy, sizeof copy);
  if (fd >= 0) {
    message.make_room();
    cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  constexpr int kRoomWithinMs = 1000;  // many files may be forgotten at once
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message.head, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent == static_cast<ssize_t>(sizeof copy);
    pollfd ready{socket, POLLOUT, 0};
    if (errno == EAGAIN && ::poll(&ready, 1, kRoomWithinMs) > 0) continue;
    if (errno != EINTR) return false;
  }
}

// Returns false if the process has ended, or has no patience left.
bool ElfReader::wait_for_answer() const {
  constexpr int kLookMs = 100;
  const std::uint64_t begin_ns = monotonic_ns();
  const std::uint64_t begin_cpu_ns = child_cpu_ns();
  const auto ns_of = [](std::chrono::milliseconds time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  };
  pollfd ready{socket_.get(), POLLIN, 0};
  for (;;) {
    const int got = ::poll(&ready, 1, kLookMs);
    if (got > 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (monotonic_ns() - begin_ns >= ns_of(patience_.time) ||
        child_cpu_ns() - begin_cpu_ns >= ns_of(patience_.cpu)) {
      return false;
    }
  }
}

// Returns the answer. If there is none, ends the process and returns nothing.
std::optional<std::string> ElfReader::ask(const Question& question, int fd) {
  if (pid_ == 0) return std::nullopt;
  std::string answer(kMaxAnswerBytes, '\0');
  ssize_t got = -1;
  if (send(socket_.get(), question, fd) && wait_for_answer()) {
    got = ::recv(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  }
  if (got <= 0) {
    end();
    return std::nullopt;
  }
  answer.resize(static_cast<std::size_t>(got));
  answered_ = true;
  return answer;
}

// Somebody may have killed it.
bool ElfReader::runs() const {
  siginfo_t info{};
  return pid_ != 0 &&
         ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::optional<std::vector<Segment>> ElfReader::open(File& file) {
  if (!runs()) end();
  if (pid_ == 0 && !unable_) start();
  file.given = started_;
  const auto answer = ask({Asked::open, file.fd < 0, file.id, 0}, file.fd);
  return answer ? segments_in(*answer) : std::nullopt;
}

std::optional<FrameRow> ElfReader::row_at(File& file, std::uint64_t address) {
  if (!runs() || file.given != started_) static_cast<void>(open(file));
  const auto answer = ask({Asked::row, false, file.id, address}, -1);
  return answer ? row_in(*answer, address) : std::nullopt;
}

void ElfReader::forget(const File& file) {
  if (pid_ == 0 || file.given != started_) return;
  if (!send(socket_.get(), {Asked::forget, false, file.id, 0}, -1)) end();
}

// The life of the process.
int ElfReader::serve(int socket) {
  struct Opened {
    FileDescriptor file;
    std::unique_ptr<ElfFile> elf;
  };
  std::map<std::uint64_t, Opened> files;
  for (;;) {
    Question question;
    Message message(&question, sizeof question);
    message.make_room();
    const ssize_t got = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof question)) return 0;
    FileDescriptor file;
    if (const cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
        head != nullptr && head->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
      file = FileDescriptor(fd);
    }
    if (question.asked == Asked::forget) {
      files.erase(question.id);
      continue;
    }
    Opened& opened = files[question.id];
    std::string answer;
    if (question.asked == Asked::open) {
      opened.elf.reset();
      opened.file = std::move(file);
      opened.elf = question.vdso ? ElfFile::vdso() : ElfFile::open(opened.file);
      answer = message_of(opened.elf == nullptr ? std::optional<std::vector<Segment>>()
                                                : opened.elf->segments());
    } else {
      answer = message_of(opened.elf == nullptr ? std::optional<FrameRow>()
                                                : opened.elf->row_at(question.address));
    }
    if (::write(socket, answer.data(), answer.size()) != static_cast<ssize_t>(answer.size())) {
      return 0;
    }
  }
}

}  // namespace kymo::stacks
