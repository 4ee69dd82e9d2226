#include "daemon/request/rehearsal.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/proc/memory_to_dump.h"
#include "checkpoint/criu/drive/scratch_folder.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

// Beside the processes, for CRIU and for what the machine needs meanwhile.
constexpr std::uint64_t kSpareBytes = std::uint64_t{64} << 20U;

// Files that are opened for writing in a folder of `changed` are copied to memory.
std::uint64_t copied_bytes(const ImagesSeen& seen) {
  const criu::Needs& needs = seen.planned.needs;
  std::uint64_t bytes = 0;
  for (const criu::NeededFile& file :
       needs.own_mounts ? std::vector<criu::NeededFile>() : needs.files) {
    std::error_code error;
    const std::string folder = std::filesystem::path(file.path).parent_path();
    const bool copied =
        std::any_of(needs.changed.begin(), needs.changed.end(), [&](const std::string& changed) {
          return folder == changed || folder.starts_with(changed + "/");
        });
    const std::uintmax_t size = copied ? std::filesystem::file_size(file.path, error) : 0;
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace

Result<void> check_rehearsal_memory(std::uint64_t bytes) {
  const std::uint64_t there = probe::available_memory();
  if (bytes + kSpareBytes <= there) return {};
  return Error{Code::resource_exhausted,
               "a rehearsal needs the memory of the processes once more: about " +
                   report::bytes(bytes + kSpareBytes) + ", and " + report::bytes(there) +
                   " are available"};
}

// An older one runs no action script for a container.
Result<void> may_rehearse(runtime::Kind kind, const runtime::CriuProgram& criu) {
  constexpr int kMajor = 4;
  const bool old =
      criu.version.major < kMajor || (criu.version.major == kMajor && criu.version.minor == 0);
  if (!runtime::row_of(kind).containers || !old) return {};
  return Error{Code::failed_precondition,
               "the restore of a container is rehearsed by CRIU 4.1 or later, and " + criu.path +
                   " is CRIU " + criu.version.text()};
}

Result<void> rehearse(const Parts& parts, runtime::Kind kind, runtime::RehearsalSpec spec,
                      const ImagesSeen& seen, std::uint64_t memory_bytes) {
  if (spec.criu) {
    if (Result<void> can = may_rehearse(kind, *spec.criu); !can) return can;
  }
  if (!seen.planned.faults.empty()) {
    return Error{Code::data_loss, "its images are damaged: " + seen.planned.faults.front()};
  }
  if (Result<void> room = check_rehearsal_memory(memory_bytes + copied_bytes(seen)); !room)
    return room;
  const Result<criu::ScratchFolder> work = criu::ScratchFolder::create("kymo-rehearsal-log");
  if (!work) return work.error();
  spec.work_dir = work->path();
  spec.tree = seen.tree;
  spec.changed = seen.planned.needs.changed;
  spec.own_mounts = seen.planned.needs.own_mounts;
  return parts.runtimes.of(kind).rehearse(spec);
}

}  // namespace kymo::daemon
