#pragma once

#include "daemon/request/restore_context.h"
#include "kymo/result.h"

// The job of a process or container that is restored.
namespace kymo::daemon {

// Refuses to restore a job that runs, before anything else would refuse it with less to say.
Result<void> check_job(RestoreContext& c);

// Finds the job of the checkpoint, and keeps it from being deleted or changed meanwhile. If this kymod does not know the
// job of a process, because the checkpoint is of another machine or the job was deleted, it is listed as dumped, with its
// old id, and its name if that is free.
Result<void> find_job(RestoreContext& c);

// Sees to the output files of the job, which are kymod's and not the program's. Those that are not in the state directory
// are made. If the process had those of another state directory open, it gets these instead (c.outputs_now). Makes no file
// elsewhere, whatever the checkpoint says.
Result<void> find_output(RestoreContext& c);

// Gives the job the restored process, or makes a new one. The process runs already, so that errors are only warnings.
Result<void> register_job(RestoreContext& c);

// After a failed restore: removes the job and the output files that find_job() and find_output() made.
void drop_new_job(RestoreContext& c);

}  // namespace kymo::daemon
