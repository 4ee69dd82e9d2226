#include "recorder/sampling/collect/thread_setup.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/clock.h"
#include "recorder/sampling/collect/pacer.h"

namespace kymo {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Returns 0 or errno.
int set_policy(int policy, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return ::sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &parameters) == 0 ? 0 : errno;
}

// Returns 0 or errno.
int set_nice(int nice) {
  if (const int error = set_policy(SCHED_OTHER, 0); error != 0) {
    return error;
  }
  // On Linux, each thread has its own nice value.
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice) == 0 ? 0 : errno;
}

}  // namespace

void keep_off_cpu(pthread_t thread, int cpu) {
  cpu_set_t cpus;
  if (cpu < 0 || ::pthread_getaffinity_np(thread, sizeof cpus, &cpus) != 0) {
    return;
  }
  CPU_CLR(static_cast<std::size_t>(cpu), &cpus);
  if (CPU_COUNT(&cpus) > 0) {
    static_cast<void>(::pthread_setaffinity_np(thread, sizeof cpus, &cpus));
  }
}

void set_up_this_thread(const ThreadPlace& place, std::vector<std::string>* warnings) {
  int refused = 0;
  if (place.realtime_priority > 0) {
    refused = set_policy(SCHED_FIFO, place.realtime_priority);
    if (refused != 0) {
      warnings->push_back("the collector runs without real-time priority " +
                          std::to_string(place.realtime_priority) + ": " + reason(refused) +
                          " (allow it with CAP_SYS_NICE or 'ulimit -r')");
    }
  }
  if (place.nice != 0 && (place.realtime_priority == 0 || refused != 0)) {
    // A process that may not have the one can seldom have the other, so one warning is enough.
    if (const int error = set_nice(place.nice); error != 0 && refused == 0) {
      warnings->push_back("the collector runs without nice " + std::to_string(place.nice) + ": " +
                          reason(error) + " (allow it with CAP_SYS_NICE or 'ulimit -e')");
    }
  }
  if (place.cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(place.cpu), &cpus);
    if (const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof cpus, &cpus);
        error != 0) {
      warnings->push_back("the collector is not pinned to CPU " + std::to_string(place.cpu) + ": " +
                          reason(error) + " (choose a CPU that the process may run on)");
    }
  }
}

bool leave_realtime(int nice) {
  if ((::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO) {
    return false;
  }
  static_cast<void>(set_nice(nice));
  Pacer::reduce_wakeup_latency();
  return true;
}

double RealtimeBound::look(std::uint64_t now_ns) {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  const std::uint64_t cpu_ns = to_nanos(used);
  const bool measured = begun_ns_ != 0 && now_ns > begun_ns_ && cpu_ns >= cpu_at_begin_ns_;
  const double share = measured ? static_cast<double>(cpu_ns - cpu_at_begin_ns_) /
                                      static_cast<double>(now_ns - begun_ns_)
                                : 0;
  begun_ns_ = now_ns;
  cpu_at_begin_ns_ = cpu_ns;
  return share > max_share_ ? share : 0;
}

}  // namespace kymo
