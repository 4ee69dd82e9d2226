#include "recorder/sampling/profiler/trouble_teller.h"

#include <pthread.h>
#include <unistd.h>

#include <new>
#include <system_error>

#include "base/clock.h"
#include "base/foreign_call.h"
#include "base/quiet_thread.h"

namespace kymo {

Result<void> TroubleTeller::start() {
  if (!tell_) {
    return {};
  }
  try {
    thread_ = quiet_thread([this] {
      ::pthread_setname_np(::pthread_self(), "kymo-trouble");
      bool ended = false;
      while (!ended) {
        ended = end_.wait_until(monotonic_ns() + kLookEveryNs);
        look();
      }
    });
  } catch (const std::system_error& error) {
    return Error{Code::resource_exhausted,
                 std::string("nobody is told of trouble while this recording runs: no thread can "
                             "be made: ") +
                     error.what(),
                 error.code().value()};
  }
  return {};
}

void TroubleTeller::stop() {
  if (thread_.joinable()) {
    end_.signal();
    thread_.join();
  }
}

void TroubleTeller::look() {
  try {
    for (const Trouble& trouble : watch_.look()) {
      tell(trouble);
    }
  } catch (const std::bad_alloc&) {  // the next look tells what goes on then
  }
}

void TroubleTeller::tell(const Trouble& trouble) {
  const std::uint64_t now_ns = monotonic_ns();
  const auto [told, first] = told_ns_.try_emplace(
      KindOfTrouble(trouble.what, trouble.cause, trouble.over, trouble.metric), now_ns);
  if (!tell_ || (!first && now_ns - told->second < kSameAgainNs)) {
    return;
  }
  told->second = now_ns;
  static_cast<void>(call_foreign("on_trouble", sink_, [&]() -> Result<void> {
    tell_(trouble);
    return {};
  }));
}

void tell_on_stderr(const Trouble& trouble) {
  const std::string line = "kymo: " + trouble.text + '\n';
  // One write, so that lines of several threads do not mix. If it fails, there is nobody to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace kymo
