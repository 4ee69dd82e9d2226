#pragma once

#include <string>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/database/store.h"
#include "daemon/recording/outcome_counts.h"
#include "daemon/request/request.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A request that is refused leaves no checkpoint. So it is noted in the history of its target and in the metrics:
// otherwise nobody would see that, for example, every nightly dump of a job is refused.

// Notes that a request has succeeded, or was refused. `owner`: of the history (store::Run::owner); empty: not known,
// then only the metrics have it. `in_history`: its checkpoint adds the run to the history. `checkpoint`: the id of what
// was to be restored; empty: a dump, or not known. Does nothing for a request that failed otherwise.
// Threads: that of the request. It does not wait for a disk.
void note_ending(const Request& request, const Result<void>& result, const std::string& owner,
                 bool in_history = false, const std::string& checkpoint = {});

// The owner of the history to which a dump belongs whose target was not found, such as a job that does not run. Empty
// if this has no history: a request that names anything must not make one.
std::string owner_of_missing(const Parts& parts, const v1::Target& asked);

// The owner of the history of a job that has a checkpoint in this directory; empty if there is none.
std::string owner_in(store::Store& store, const std::string& directory);

// Continues what the metrics say of the jobs and containers whose refusals and successes earlier runs of kymod have left
// in the history.
void continue_counts(store::Store& store, OutcomeCounts& counts);

}  // namespace kymo::daemon
