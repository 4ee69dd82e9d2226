#include "daemon/state/dump_fate.h"

#include <cstddef>

namespace kymo::daemon {
namespace {

using OfImages = DumpFate::OfImages;
using OfJob = DumpFate::OfJob;

constexpr DumpFate kComplete{store::CheckpointState::complete, OfImages::publish, OfJob::as_it_is};
constexpr DumpFate kDumped{store::CheckpointState::complete, OfImages::publish, OfJob::dumped};
// It is not known yet. `kSaved`: but the process is in its images, whatever hinders them.
constexpr DumpFate kOpen{store::CheckpointState::unconfirmed, OfImages::keep, OfJob::as_it_is};
constexpr DumpFate kSaved{store::CheckpointState::unconfirmed, OfImages::keep, OfJob::dumped};
constexpr DumpFate kUndone{store::CheckpointState::failed, OfImages::discard, OfJob::as_it_is};
constexpr DumpFate kLost{store::CheckpointState::failed, OfImages::discard, OfJob::not_dumped};
// Somebody may be able to repair the images.
constexpr DumpFate kSpoiled{store::CheckpointState::failed, OfImages::keep, OfJob::not_dumped};

struct FatesOfImages {
  DumpFate ended;      // the process has ended
  DumpFate wanted;     // it runs, and was to run on
  DumpFate worthless;  // it runs: its dump has failed, or was to end it
  DumpFate unsure;     // it is held, or it cannot be seen
};

// One line for each value of DumpEvidence::Images, in their order.
// clang-format off
constexpr FatesOfImages kFates[] = {
    // ended   wanted     worthless  unsure
    {kDumped,  kComplete, kComplete, kComplete},  // published
    {kDumped,  kComplete, kUndone,   kOpen},      // whole
    {kLost,    kUndone,   kUndone,   kOpen},      // partial
    {kSpoiled, kUndone,   kUndone,   kOpen},      // damaged
    {kSpoiled, kUndone,   kUndone,   kOpen},      // changed
    {kSaved,   kOpen,     kUndone,   kOpen},      // written
    {kSaved,   kUndone,   kUndone,   kOpen},      // in_memory
    {kSaved,   kOpen,     kUndone,   kOpen},      // without_part
    {kSaved,   kOpen,     kUndone,   kOpen},      // hindered
    {kOpen,    kOpen,     kUndone,   kOpen},      // unseen
    {kOpen,    kOpen,     kOpen,     kOpen},      // out_of_reach
};
// clang-format on

}  // namespace

DumpFate decide(const DumpEvidence& evidence) {
  const FatesOfImages& fates = kFates[static_cast<std::size_t>(evidence.images)];
  const bool wanted = evidence.leaves && !evidence.failed;
  switch (evidence.process) {
    case DumpEvidence::Process::runs:
      return wanted ? fates.wanted : fates.worthless;
    case DumpEvidence::Process::unsure:
      return fates.unsure;
    case DumpEvidence::Process::ended:
      break;
  }
  DumpFate fate = fates.ended;
  // The process was to run on. So its job has exited by itself.
  if (evidence.leaves && fate.job == OfJob::dumped) fate.job = OfJob::as_it_is;
  return fate;
}

}  // namespace kymo::daemon
