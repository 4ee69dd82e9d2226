#pragma once

#include <pthread.h>

#include <string>
#include <vector>

namespace kymo {

// Gives `thread` a SCHED_FIFO priority (0: none) and pins it to `cpu` (-1: to none). What the
// system refuses is added to `warnings` as one line with the reason and what would allow it.
void set_up_thread(pthread_t thread, int realtime_priority, int cpu,
                   std::vector<std::string>* warnings);

}  // namespace kymo
