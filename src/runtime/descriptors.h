#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// Whether CRIU could restore these processes with the file descriptors that it may have when kymod
// starts it. CRIU keeps descriptors of its own above the highest one of each process, in steps of
// 128 (criu/servicefd.c, choose_service_fd_base()). It raises its limit itself if it may
// (CAP_SYS_RESOURCE); otherwise it has kymod's.
//
// Errors: failed_precondition: they are too few; the message begins with `tried`. Threads: any.
// Cost: one look at this program's capabilities; without CAP_SYS_RESOURCE one at each descriptor of
// the processes.
Result<void> check_descriptors(const std::string& tried, const std::vector<pid_t>& tree);

}  // namespace kymo::runtime
