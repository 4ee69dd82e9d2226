#include "interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "print.h"

namespace kymo::cli {
namespace {

constexpr int kAskAgainMs = 50;

int interrupts = -1;  // an eventfd that counts SIGINTs; global, because the signal handler needs it

void count_interrupt(int) {
  const int kept = errno;
  const std::uint64_t one = 1;
  static_cast<void>(write(interrupts, &one, sizeof one));
  errno = kept;
}

// Waits for SIGINT and returns how many there were since the last call. 0: the request has ended.
std::uint64_t wait_for_interrupt(int over) {
  for (;;) {
    pollfd fds[] = {{over, POLLIN, 0}, {interrupts, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno == EINTR) continue;
    if (fds[0].revents != 0) return 0;
    std::uint64_t count = 0;
    if (read(interrupts, &count, sizeof count) == sizeof count) return count;
  }
}

}  // namespace

CancelOnInterrupt::CancelOnInterrupt(client::Client& client, std::string request_id)
    : client_(client),
      request_id_(std::move(request_id)),
      over_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (interrupts < 0) interrupts = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!over_.valid() || interrupts < 0) return;  // Ctrl-C ends this program, as by default
  // In a background job of a script, the shell has set SIGINT to be ignored. Keep it so.
  if (std::signal(SIGINT, count_interrupt) == SIG_IGN) {
    std::signal(SIGINT, SIG_IGN);
    return;
  }
  thread_ = std::thread([this] { wait(); });
}

CancelOnInterrupt::~CancelOnInterrupt() {
  if (!thread_.joinable()) return;
  std::signal(SIGINT, SIG_DFL);
  const std::uint64_t one = 1;
  while (write(over_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void CancelOnInterrupt::wait() {
  const std::uint64_t first = wait_for_interrupt(over_.get());
  if (first == 0) return;
  asked_.store(true, std::memory_order_relaxed);
  say("cancelling: waiting for kymod to end the request; press Ctrl-C again to stop waiting");
  std::thread asking([this] { ask(); });
  if (first > 1 || wait_for_interrupt(over_.get()) != 0) _exit(kInterrupted);
  asking.join();
}

// Asks again until the request has reached kymod. The result of cancel() is not needed, because the
// answer to the request itself says how it ended.
void CancelOnInterrupt::ask() {
  pollfd over{over_.get(), POLLIN, 0};
  for (;;) {
    const Result<v1::CancelResponse> response = client_.cancel(request_id_);
    const bool early = !response && response.error().code == Code::not_found;
    if (!early || poll(&over, 1, kAskAgainMs) > 0) return;
  }
}

}  // namespace kymo::cli
