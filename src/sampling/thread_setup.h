#pragma once

#include <pthread.h>

#include <string>
#include <vector>

namespace kymo {

// Gives `thread` a SCHED_FIFO priority (0: none) and pins it to `cpu` (-1: to none). What the
// system refuses is added to `warnings` as one line with the reason and what would allow it.
void set_up_thread(pthread_t thread, int realtime_priority, int cpu,
                   std::vector<std::string>* warnings);

// Leaves `thread` every CPU that it has but `cpu` (-1: none), if another is left: behind a
// real-time thread that spins there it would not run for most of a second.
void keep_off_cpu(pthread_t thread, int cpu);

}  // namespace kymo
