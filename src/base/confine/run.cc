#include "base/confine/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <utility>

#include "base/child.h"
#include "base/confine/answer.h"
#include "base/file.h"

namespace kymo::confine {
namespace {

constexpr int kFailed = 1;

void flush() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

int exit_code_of(const Bounds& bounds, const std::function<int()>& work) {
  if (Result<void> confined = confine_self(bounds); !confined) {
    std::cerr << "kymo: " << confined.error().message << '\n';
    return kFailed;
  }
  try {
    return work();
  } catch (const std::bad_alloc&) {
    std::cerr << "kymo: reading it takes more memory than allowed\n";
  } catch (const std::exception& error) {
    std::cerr << "kymo: " << error.what() << '\n';
  }
  return kFailed;
}

// Kills the child at `end`, unless it has ended before.
void end_until(pid_t child, End end) {
  if (!end) return;
  const FileDescriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!ended.valid()) return;  // before Linux 5.3 only its SIGALRM ends it
  pollfd ready{ended.get(), POLLIN, 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now());
    const int found =
        ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX)));
    if (found > 0) return;
    if (found == 0 && left.count() <= 0) break;
  }
  ::kill(child, SIGKILL);
}

Result<int> exit_code_of(pid_t child, End end) {
  end_until(child, end);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("wait for a restricted process", errno);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return reader_died();
}

}  // namespace

Result<pid_t> start_confined(const Bounds& bounds, const std::function<int()>& work) {
  flush();    // otherwise the child would write buffered output a second time
  ::tzset();  // the child cannot open the file of the time zone
  // It ends with this process, and so closes the files that it writes.
  return fork_child({.what = "start a restricted process"}, [&] {
    const int code = exit_code_of(bounds, work);
    flush();
    return code;
  });
}

Result<int> run_confined(const Bounds& bounds, const std::function<int()>& work) {
  const End end = end_of(bounds);
  const Result<pid_t> child = start_confined(bounds, work);
  return child ? exit_code_of(*child, end) : child.error();
}

Result<Answer> ask_confined(const Bounds& bounds, const std::function<int(std::string&)>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("make a pipe", errno);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  Bounds with_answer = bounds;
  with_answer.descriptors.push_back(to.get());
  const End end = end_of(bounds);
  const Result<pid_t> child = start_confined(with_answer, [&] {
    std::string text;
    const int code = work(text);
    std::size_t written = 0;
    return write_all(to.get(), text, &written) == 0 ? code : kFailed;
  });
  to.reset();  // so that only the child has the write end: its exit ends the answer
  if (!child) return child.error();
  Result<std::string> text = read_answer(from.get(), bounds.answer_bytes, end);
  if (!text) ::kill(*child, SIGKILL);
  const Result<int> code = exit_code_of(*child, end);
  if (!text) return text.error();
  if (!code) return code.error();
  return Answer{*code, *std::move(text)};
}

Result<std::string> read_confined(const Bounds& bounds,
                                  const std::function<Result<std::string>()>& read) {
  const Result<Answer> answer = ask_confined(bounds, [&](std::string& text) {
    try {
      text = text_of(read());
    } catch (const std::bad_alloc&) {
      text = text_of(Error{Code::resource_exhausted, "reading it takes more memory than allowed"});
    }
    return 0;
  });
  return answer ? found_in(answer->text) : answer.error();
}

}  // namespace kymo::confine
