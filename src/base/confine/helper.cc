#include "base/confine/helper.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/child.h"
#include "base/confine/answer.h"
#include "base/confine/readers.h"
#include "base/json_text.h"
#include "base/pipe.h"
#include "base/reap.h"

namespace kymo::confine {
namespace {

using nlohmann::json;

constexpr const char* kStart = "start the process that reads foreign files";
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

std::string answer_to(const WorkByName& works, const std::string& text, int answer) {
  const std::size_t line = text.find('\n');
  const json question = parse_json(text.substr(0, line));
  const auto work = works.find(question["work"].get<std::string>());
  if (work == works.end()) {
    return text_of(Error{Code::internal, "the helper process does not know this request"});
  }
  Bounds bounds = bounds_in(question);
  bounds.descriptors = {answer};
  if (Result<void> confined = confine_self(bounds); !confined) {
    return text_of(confined.error());
  }
  try {
    return text_of(work->second(text.substr(line + 1)));
  } catch (const std::bad_alloc&) {
    return text_of(Error{Code::resource_exhausted, "reading it takes more memory than allowed"});
  }
}

// The descriptors that are sent with a question: where the reader writes its answer, and its lifeline (readers.h).
constexpr std::size_t kSent = 2;

// A message for sendmsg(2) and recvmsg(2), with a text and room for the descriptors. It points into
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
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kSent * sizeof(int))> control{};
  msghdr head{};
};

struct Question {
  std::string text;
  FileDescriptor answer_to;
  FileDescriptor lifeline;
};

// Receives one question. Returns false if the program has closed its end of the socket. If the
// descriptors could not be received, they are not valid.
bool receive(int socket, Question& question) {
  question.text.resize(kMaxQuestion);
  Message message(question.text.data(), question.text.size());
  const ssize_t got = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC);
  if (got <= 0) return got < 0 && errno == EINTR;
  question.text.resize(static_cast<std::size_t>(got));
  const cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return true;
  std::array<int, kSent> fds{-1, -1};  // fewer come if the table of open files is full
  std::memcpy(fds.data(), CMSG_DATA(head), std::min(head->cmsg_len - CMSG_LEN(0), sizeof fds));
  question.answer_to = FileDescriptor(fds[0]);
  question.lifeline = FileDescriptor(fds[1]);
  return true;
}

// The life of a reader. It ends with the helper, and so with the program.
int answer(const WorkByName& works, const Question& question) {
  const std::string text = answer_to(works, question.text, question.answer_to.get());
  std::size_t written = 0;
  return write_all(question.answer_to.get(), text, &written);
}

// The main loop of the helper process.
int serve(int socket, const WorkByName& works) {
  prepare();
  Readers readers;
  for (;;) {
    readers.wait_for(socket);
    Question question;
    if (!receive(socket, question)) return 0;
    if (!question.answer_to.valid() || !question.lifeline.valid()) continue;
    const Result<pid_t> reader =
        fork_child({.what = kStart}, [&] { return readers.leave(), answer(works, question); });
    if (reader) {
      readers.add(*reader, std::move(question.lifeline));
      continue;
    }
    std::size_t written = 0;
    static_cast<void>(write_all(question.answer_to.get(), text_of(reader.error()), &written));
  }
}

Result<void> send(int socket, const std::string& text, std::array<int, kSent> descriptors) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): sendmsg(2) changes nothing
  Message message(const_cast<char*>(text.data()), text.size());
  cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(head), descriptors.data(), sizeof descriptors);
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

Result<std::unique_ptr<Helper>> Helper::start(WorkByName works) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error(kStart, errno);
  }
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  const Result<pid_t> pid =
      fork_child({.what = kStart,
                  .name = "kymod-reader",
                  .ends = ChildLife::Ends::by_itself,  // when `ours` is closed
                  .on_duty = true,
                  .silent = true,
                  .keeps = {theirs.get()}},
                 [&] { return serve(theirs.get(), works); });
  if (!pid) return pid.error();
  return std::unique_ptr<Helper>(new Helper(std::move(ours), *pid));
}

Helper::~Helper() {
  socket_.reset();
  reap(pid_);
}

Result<std::string> Helper::ask(const std::string& work, const std::string& request,
                                const Bounds& bounds, const Cancellation* cancel) const {
  const std::string question = question_of(work, request, bounds);
  if (question.size() > kMaxQuestion) {
    return Error{Code::invalid_argument, "the path is too long: " + request.substr(0, 100)};
  }
  Result<Pipe> answers = make_pipe();
  if (!answers) return answers.error();
  Result<Pipe> life = make_pipe();  // closed at the end of this call, whether an answer came or not
  if (!life) return life.error();
  const Result<void> sent = send(socket_.get(), question, {answers->to.get(), life->from.get()});
  if (!sent) return sent.error();
  answers->to.reset();  // so that only the reader has the write end: its exit ends the answer
  life->from.reset();
  Result<std::string> answer =
      read_answer(answers->from.get(), bounds.answer_bytes, end_of(bounds), cancel);
  return answer ? found_in(*answer) : answer;
}

}  // namespace kymo::confine
