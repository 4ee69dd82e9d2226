#include "confine/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "confine/answer.h"

namespace kymo::confine {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxQuestion = std::size_t{64} << 10;
// A question: one line of JSON, then the unchanged request.
std::string question_of(const std::string& work, const std::string& request, const Bounds& bounds) {
  const json head{{"work", work},
                  {"readable", bounds.readable},
                  {"memory_bytes", bounds.memory_bytes},
                  {"cpu_seconds", bounds.cpu_time.count()},
                  {"seconds", bounds.time.count()}};
  return json_text(head) + '\n' + request;
}

// Does not check the JSON, because the question comes from this program.
Bounds bounds_in(const json& question) {
  Bounds bounds;
  bounds.readable = question["readable"].get<std::vector<std::string>>();
  bounds.memory_bytes = question["memory_bytes"].get<std::uint64_t>();
  bounds.cpu_time = std::chrono::seconds(question["cpu_seconds"].get<std::int64_t>());
  bounds.time = std::chrono::seconds(question["seconds"].get<std::int64_t>());
  return bounds;
}

std::string answer_to(const Works& works, const std::string& text) {
  const std::size_t line = text.find('\n');
  const json question = parse_json(text.substr(0, line));
  const auto work = works.find(question["work"].get<std::string>());
  if (work == works.end()) {
    return text_of(Error{Code::internal, "the helper process does not know this request"});
  }
  if (Result<void> confined = confine_self(bounds_in(question)); !confined) {
    return text_of(confined.error());
  }
  try {
    return text_of(work->second(text.substr(line + 1)));
  } catch (const std::bad_alloc&) {
    return text_of(Error{Code::resource_exhausted, "reading it takes more memory than allowed"});
  }
}

// A message for sendmsg(2) and recvmsg(2), with a text and room for one descriptor. It points into
// itself and into the text.
struct Message {
  Message(char* text, std::size_t size) : part{text, size} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};
};

// Receives one question: its text, and the descriptor for the answer. Returns false if the program
// has closed its end of the socket.
bool receive(int socket, std::string& text, FileDescriptor& answer_to) {
  text.resize(kMaxQuestion);
  Message message(text.data(), text.size());
  const ssize_t got = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC);
  if (got <= 0) return got < 0 && errno == EINTR;
  text.resize(static_cast<std::size_t>(got));
  const cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
    answer_to = FileDescriptor(fd);
  }
  return true;
}

// Closes all descriptors but this one. Standard input, output and error become /dev/null.
void close_all_but(int socket) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    static_cast<void>(::dup2(nothing, standard));
  }
  const auto kept = static_cast<unsigned>(socket);
  if (kept > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
}

// From now on the kernel ends this process with SIGIO when the other end of the pipe is closed. No
// signal comes if it was closed before, so look once.
void end_when_closed(int pipe) {
  static_cast<void>(::signal(SIGIO, SIG_DFL));
  static_cast<void>(::fcntl(pipe, F_SETOWN, ::getpid()));
  static_cast<void>(::fcntl(pipe, F_SETFL, O_ASYNC));
  pollfd closed{pipe, 0, 0};
  if (::poll(&closed, 1, 0) > 0) ::_exit(0);
}

// The main loop of the helper process.
[[noreturn]] void serve(int socket, const Works& works) {
  static_cast<void>(::prctl(PR_SET_NAME, "kymod-reader"));
  close_all_but(socket);
  prepare();
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    static_cast<void>(::signal(ignored, SIG_IGN));  // it ends when the program closes the socket
  }
  static_cast<void>(::signal(SIGCHLD, SIG_IGN));  // the kernel reaps its children
  std::string text;
  for (;;) {
    FileDescriptor to;
    if (!receive(socket, text, to)) ::_exit(0);
    if (!to.valid()) continue;
    const pid_t reader = ::fork();
    int code = 1;
    if (reader < 0) {
      std::size_t written = 0;
      static_cast<void>(write_all(
          to.get(), text_of(system_error("start the process that reads foreign files", errno)),
          &written));
    }
    if (reader != 0) continue;
    try {
      static_cast<void>(::close(socket));
      end_when_closed(to.get());
      const std::string answer = answer_to(works, text);
      // The kernel would also send SIGIO when the program reads from the pipe.
      static_cast<void>(::fcntl(to.get(), F_SETFL, 0));
      std::size_t written = 0;
      code = write_all(to.get(), answer, &written);
    } catch (const std::exception&) {  // the program gets no answer, and reports that
    }
    ::_exit(code);
  }
}

Result<void> send(int socket, const std::string& text, int answer_to) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): sendmsg(2) changes nothing
  Message message(const_cast<char*>(text.data()), text.size());
  cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &answer_to, sizeof answer_to);
  while (::sendmsg(socket, &message.head, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) {
      return Error{Code::unavailable,
                   "the process that reads foreign files (kymod-reader) is gone: restart kymod"};
    }
    return system_error("ask the process that reads foreign files", errno);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Helper>> Helper::start(Works works) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error("start the process that reads foreign files", errno);
  }
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("start the process that reads foreign files", errno);
  if (pid == 0) {
    ours.reset();
    serve(theirs.get(), works);
  }
  return std::unique_ptr<Helper>(new Helper(std::move(ours), pid));
}

Helper::~Helper() {
  socket_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> Helper::ask(const std::string& work, const std::string& request,
                                const Bounds& bounds, const Cancellation* cancel) const {
  const std::string question = question_of(work, request, bounds);
  if (question.size() > kMaxQuestion) {
    return Error{Code::invalid_argument, "the path is too long: " + request.substr(0, 100)};
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("make a pipe", errno);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  if (Result<void> sent = send(socket_.get(), question, to.get()); !sent) return sent.error();
  to.reset();  // so that only the reader has the write end: its exit ends the answer
  Result<std::string> answer = read_answer(from.get(), bounds.answer_bytes, cancel);
  return answer ? found_in(*answer) : answer;
}

}  // namespace kymo::confine
