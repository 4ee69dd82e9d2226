#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/runtimes/table.h"
#include "daemon/database/store.h"
#include "daemon/state/foreign.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What became of dumps that were not concluded by their request, because kymod was killed, or
// because it could not be known at that time.
//
// close_cut_short_dump() ends what still runs of a dump, lets frozen processes go on, and decides
// as the end of a request does (dump_end.h). It locks the process meanwhile, so that no other dump
// of it begins. It decides nothing, and only lets the process go on, if another user could lead
// what is written to the directory, or removed from it, to another place, or if the record cannot
// be read now. If the process is being dumped again, it does not even that. If kymod stopped during
// the dump, it also adds the run to the history that the request could not add. A line in the log
// says what it did. `ask_runtime` calls Runtime::settle_dump() of the given kind. `use`: what
// nobody else may have as long as a part of the work goes on; may be null. Returns whether the
// outcome is known now. If the disk of the images does not answer, what was begun there goes on in
// the background.
//
// settle_old_scratch() moves logs that dumps have left in memory to their checkpoints, and removes
// images there, if the outcome of the dump is known. It does not wait for a disk.
//
// Threads: close_cut_short_dump(): any, one for a checkpoint. settle_old_scratch(): one, before any
//          request.
// Errors:  those of the store and of the files.
using SettleDump = std::function<Result<void>(runtime::Kind kind, const runtime::DumpSpec& spec)>;
Result<bool> close_cut_short_dump(store::Store& store, const ForeignFiles& foreign,
                                  const store::Checkpoint& checkpoint,
                                  const SettleDump& ask_runtime,
                                  std::shared_ptr<const void> use = nullptr);
void settle_old_scratch(store::Store& store);
// Whether the outcome of its dump is not known.
bool is_open(const store::Checkpoint& checkpoint);
// Whether it is open because its kymod stopped during the dump, so that no request has counted it.
bool is_lost(const store::Checkpoint& checkpoint);

}  // namespace kymo::daemon
