#pragma once

#include <sys/types.h>

#include <string>

#include "criu/client.h"
#include "kymo/result.h"

namespace kymo::criu {

// Runs `criu dump --stream` with our own image streamer. All images are complete in files before
// CRIU lets the process go or ends it. So if the disk is full, for example, the dump fails and the
// process runs on. CRIU itself writes only into the work directory, so if that is on a memory file
// system, CRIU can be ended at any time, also while the disk of the images does not answer.
Result<DumpReply> streamed_dump(const ClientOptions& options, const DumpRequest& request,
                                const Notified& notified);
// Runs `criu restore --stream` and sends it the images of such a dump. The restored process becomes
// a child of the calling process.
Result<RestoreReply> streamed_restore(const ClientOptions& options, const RestoreRequest& request,
                                      const Notified& notified);

}  // namespace kymo::criu
