#include "daemon/request/freeze.h"

#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "daemon/request/target.h"
#include "daemon/state/kinds.h"

namespace kymo::daemon {

Result<v1::FreezeResponse> set_frozen(const Parts& parts, const v1::Target& asked, bool frozen) {
  const std::uint64_t began_ns = monotonic_ns();
  const std::string verb = frozen ? "freeze" : "unfreeze";
  const Result<Target> target = find_target(parts, verb, asked);
  if (!target) return target.error();
  if (frozen && target->id.empty()) {
    const auto program = runtime::check_program(verb + " " + target->text(), target->process);
    if (!program) return program.error();
  }
  const auto claim = parts.claims.claim("process:" + std::to_string(target->process.pid));
  if (!claim) {
    return Error{Code::failed_precondition,
                 verb + " " + target->text() + ": it is being dumped: wait for that to end"};
  }
  const Result<runtime::DumpLock> lock = lock_target(parts, verb, *target);
  if (!lock) return lock.error();
  runtime::Runtime& runtime = parts.runtimes.of(target->kind);
  const runtime::FreezeSpec spec{target->process, target->id,
                                 target->id.empty() ? "" : target->name};
  const Result<std::string> how = frozen ? runtime.freeze(spec) : runtime.unfreeze(spec);
  if (!how) return how.error();
  spdlog::info("{}: {} {}", verb, target->text(), *how);
  v1::FreezeResponse response;
  response.set_pid(target->process.pid);
  response.set_runtime(to_api(target->kind));
  response.set_container(target->id);
  response.set_how(*how);
  response.set_duration_ns(monotonic_ns() - began_ns);
  return response;
}

}  // namespace kymo::daemon
