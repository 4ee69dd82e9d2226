#include "sampling/thread_setup.h"

#include <sched.h>

#include <system_error>

namespace kymo {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
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

void set_up_thread(pthread_t thread, int realtime_priority, int cpu,
                   std::vector<std::string>* warnings) {
  if (realtime_priority > 0) {
    sched_param parameters{};
    parameters.sched_priority = realtime_priority;
    if (const int error = ::pthread_setschedparam(thread, SCHED_FIFO, &parameters); error != 0) {
      warnings->push_back("the collector runs without real-time priority " +
                          std::to_string(realtime_priority) + ": " + reason(error) +
                          " (it takes CAP_SYS_NICE or a limit by 'ulimit -r')");
    }
  }
  if (cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(cpu), &cpus);
    if (const int error = ::pthread_setaffinity_np(thread, sizeof cpus, &cpus); error != 0) {
      warnings->push_back("the collector is not pinned to CPU " + std::to_string(cpu) + ": " +
                          reason(error));
    }
  }
}

}  // namespace kymo
