#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/target.h"
#include "kymo/scope.h"
#include "store/store.h"

namespace kymo::daemon {

// What a request leaves for its job's history.

// What the owner of a program's history begins with.
inline constexpr std::string_view kProgramOwner = "program:";

// Where its time went so far, as store::Run keeps it: each part without its own parts, and what
// CRIU's log adds; what took next to nothing is left out. Empty without a tree.
std::string phases_of(const ScopeTree* timing);

// Whether a dump or restore started from the cold (docs/history.md): it was the daemon's first of
// its kind, or CRIU had to wait for the disk so many times to read itself and what it needs.
std::string warmth_of(bool first, std::optional<std::uint64_t> criu_major_faults);

// Whose history a dump belongs to, as store::Run::job_id: its job's; else the container's, or the
// program's, which its whole command line tells from others (docs/history.md).
std::string history_owner(const Target& target);

// What a request says where it could not store what it changed; empty: it could.
std::string unstored_warning(store::Store& store);

// As the API shows it; what is damaged in the store's texts is left out.
v1::HistoryRun to_api(const store::Run& run);
std::optional<v1::DumpStats> dump_stats_of(const std::string& text);
std::optional<v1::RestoreStats> restore_stats_of(const std::string& text);

}  // namespace kymo::daemon
