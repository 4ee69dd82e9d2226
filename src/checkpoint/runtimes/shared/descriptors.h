#pragma once

#include <sys/types.h>

#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// Checks whether CRIU could restore a process tree with the file descriptors that it may have when
// kymod starts it. CRIU needs descriptors above the highest one of each process, in steps of 128
// (criu/servicefd.c, choose_service_fd_base()). It raises its limit itself if it has
// CAP_SYS_RESOURCE. Otherwise it has kymod's limit.
//
// Threads: any.
// Errors:  failed_precondition if the limit is too low. The message begins with `tried`.
// Cost:    reads the capabilities of this program; without CAP_SYS_RESOURCE it also looks at each
//          descriptor of each process of the tree.
Result<void> check_descriptors(const std::string& tried, pid_t root);

}  // namespace kymo::runtime
