#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/diagnosis/phases.h"
#include "checkpoint/diagnosis/verdict.h"
#include "daemon/database/store.h"
#include "daemon/request/target.h"
#include "daemon/state/history_owner.h"

namespace kymo::daemon {

// The parts of the record (store::Run) that a request leaves in its job's history.

// The sum of each phase, as JSON for store::Run::phases_json. Times below 0.1 ms are left out.
// With it what CRIU did while the processes of a dump stood still, or in all of a restore, as phases
// named "CRIU: ..." (diagnosis::state_words()).
std::string history_phases(const std::vector<diagnosis::Phase>& phases,
                           const diagnosis::Verdict& verdict, bool restore);

// How fast these dumps have written their memory. Nothing if fewer than five have written 32 MiB.
std::optional<diagnosis::WriteRates> write_rates_of(
    const std::vector<store::Checkpoint>& checkpoints);

v1::Phase to_api(const diagnosis::Phase& phase);

// Whether a dump or restore was cold, and why (docs/diff.md): it was the daemon's first of its
// kind, or CRIU had too many major page faults, because its program had to be read from the disk.
std::string warmth_of(bool first, std::optional<std::uint64_t> criu_major_faults);

// The owner of the history to which a dump belongs, for store::Run::owner: the name of the job, which a
// later job may get as well, or else the container, or else the program, identified by its whole command
// line (docs/diff.md).
std::string history_owner(const Target& target);
std::string history_owner(const store::Job& job);

// How long the processes of a checkpoint have been away at this time, if nobody has restored them: since their dump
// stopped the first of them. 0: it is not known, or they ran on after the dump. `record`: its checkpoint.json, which is not trusted.
std::uint64_t away_until(const nlohmann::json& record, std::int64_t now_unix_ns);

// A warning for a reply, if some changes could not be stored yet. Empty if all are stored.
std::string unstored_warning(store::Store& store);

// A run in the form of the API. Damaged texts of the store are left out.
v1::HistoryRun to_api(const store::Run& run);
std::optional<v1::DumpStats> dump_stats_of(const std::string& text);
std::optional<v1::RestoreStats> restore_stats_of(const std::string& text);

}  // namespace kymo::daemon
