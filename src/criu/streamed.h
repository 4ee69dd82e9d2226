#pragma once

#include <sys/types.h>

#include <string>

#include "criu/client.h"
#include "kymo/result.h"

namespace kymo::criu {

// `criu dump --stream` with an image streamer of ours. What was sent is in files, whole, before the
// process is let go or ended: a full disk, say, fails the dump and the process runs on.
Result<DumpReply> streamed_dump(const ClientOptions& options, const DumpRequest& request,
                                const Notified& notified);
// `criu restore --stream`, fed with the images of such a dump. The process becomes a child of the
// calling one.
Result<RestoreReply> streamed_restore(const ClientOptions& options, const RestoreRequest& request,
                                      const Notified& notified);

}  // namespace kymo::criu
