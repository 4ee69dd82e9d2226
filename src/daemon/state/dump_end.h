#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/images/image_list.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "daemon/database/store.h"
#include "daemon/state/asked_disk.h"
#include "daemon/state/checkpoint_dir.h"
#include "daemon/state/dump_fate.h"
#include "daemon/state/foreign.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What becomes of a dump that is over: settle() finds out what is known of it (dump_fate.h has what
// follows from that) and gives whole images their name, carry_out() does the rest. Whoever has a
// dump that is over calls both, one after the other: its request, or close_cut_short_dump()
// (cut_short.h), each second and after a start of kymod.
//
// Threads: any, one for each dump.

struct EndedDump {
  CheckpointDir dir;
  // What was asked of the runtime. `held` is null if its request is not here any more.
  runtime::DumpSpec spec{};
  std::string text{};  // "the process", "podman container web"
  DumpEvidence::Process process = DumpEvidence::Process::unsure;
  std::string why_unsure{};  // "process 12 is held by ..."
  bool failed = false;       // as in DumpEvidence
  // The runtime has reported success to this request. Other images are verified before they count
  // as whole.
  bool succeeded = false;
  // Then also images with their final name are verified: a disk may have lost some of them.
  bool of_earlier_boot = false;
  std::vector<runtime::ProcessId> left{};  // what may be left of processes that are in the images
  std::optional<Error> lost_part{};        // as in runtime::DumpOutcome
  std::optional<Error> out_of_reach{};     // why nothing may be touched in the directory
  // checkpoint.json as it is before the outcome is known.
  nlohmann::json record = nlohmann::json::object();
  criu::Sums sums = criu::Sums::small;  // of the list of the images
};

struct SettledDump {  // NOLINT(bugprone-exception-escape): moving its json does not throw
  DumpEvidence seen;
  DumpFate fate;
  std::optional<Error> why{};  // about the images, if something is to say about them
  nlohmann::json images{};     // their list (report::kImages); null: there is none
  std::vector<std::string> warnings{};
};

// Finds out what is known of the dump, and publishes its images if they are whole. Ends what is
// left of their processes before.
SettledDump settle(const EndedDump& dump, const ForeignFiles& foreign, AskedDisk& disk);

// The clause of a message: what became of the process and of the images. Not for a complete
// checkpoint.
std::string told(const EndedDump& dump, const SettledDump& settled);

// Removes the images if they are worth nothing, and writes the record, unless the outcome is not
// known yet. Then stores the checkpoint, whose other members are set, the state of its job, and the
// run of the history, if there is one. If the disk of a dump that failed does not answer, the files
// follow when it does. `durable`: so is the record.
// Errors: those of the store. Those of the files become warnings.
using MakeRecord = std::function<nlohmann::json()>;
Result<void> carry_out(store::Store& store, const EndedDump& dump, SettledDump& settled,
                       store::Checkpoint& checkpoint, const MakeRecord& make_record, bool durable,
                       const std::optional<store::Run>& run, AskedDisk& disk);

}  // namespace kymo::daemon
