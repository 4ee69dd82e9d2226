#include "daemon/state/restore_fate.h"

#include <cstddef>

namespace kymo::daemon {
namespace {

// One line for each value of RestoreEvidence::Programs, with one fate for each of Process, in their order.
constexpr RestoreFate kFatesOfRestores[][3] = {
    // runs,                none,                unknown
    {RestoreFate::restored, RestoreFate::failed, RestoreFate::open},  // ended
    {RestoreFate::restored, RestoreFate::open, RestoreFate::open},    // quiet
    {RestoreFate::open, RestoreFate::open, RestoreFate::open},        // go_on
    {RestoreFate::open, RestoreFate::open, RestoreFate::open},        // unknown
};

}  // namespace

RestoreFate decide(const RestoreEvidence& evidence) {
  using Programs = RestoreEvidence::Programs;
  const bool over = evidence.programs == Programs::quiet && evidence.quiet_looks >= kQuietLooks;
  const Programs programs = over ? Programs::ended : evidence.programs;
  return kFatesOfRestores[static_cast<std::size_t>(programs)]
                         [static_cast<std::size_t>(evidence.process)];
}

}  // namespace kymo::daemon
