#include "daemon/request/check.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mounts.h"
#include "base/patience.h"
#include "base/proc/memory_to_dump.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/preflight/planned_dump.h"
#include "checkpoint/preflight/preflight.h"
#include "checkpoint/preflight/report_messages.h"
#include "checkpoint/runtimes/host_check.h"
#include "daemon/config/allowed_path.h"
#include "daemon/request/forecast.h"
#include "daemon/request/room.h"
#include "daemon/request/run_record.h"
#include "daemon/request/stream_choice.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

using std::chrono::milliseconds;

// A dump must not wait long for a target with ten thousand files, or for one that has made the list
// of its mappings hard to read.
constexpr milliseconds kReadsFor{500};
constexpr milliseconds kPatience{1000};
constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;

// How many looks may be under way. A look that the target holds up, with a file system of its own,
// outlives its request.
constexpr int kMaxLooks = 16;

// Counts the looks that are under way.
class Look {
 public:
  Look() : mine_(count().fetch_add(1, std::memory_order_relaxed) < kMaxLooks) {}
  ~Look() {
    if (counted_) count().fetch_sub(1, std::memory_order_relaxed);
  }
  Look(Look&& other) noexcept
      : mine_(other.mine_), counted_(std::exchange(other.counted_, false)) {}
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;
  Look& operator=(Look&&) = delete;
  [[nodiscard]] bool allowed() const { return mine_; }

 private:
  // Relaxed: it guards no other memory.
  static std::atomic<int>& count() {
    static std::atomic<int> under_way{0};
    return under_way;
  }
  const bool mine_;
  bool counted_ = true;
};

preflight::Options options_for(const Target& target, const v1::CheckpointOptions& asked,
                               bool leave_running) {
  return preflight::options_of(
      {.asked = asked,
       .container = !target.id.empty(),
       .loses_user_namespace = !runtime::row_of(target.kind).restores_user_namespaces,
       .bundle = target.bundle,
       .renewed = runtime::row_of(target.kind).renews,
       .leave_running = leave_running});
}

Result<preflight::Report> look(const Target& target, const v1::CheckpointOptions& asked,
                               bool leave_running) {
  Look mine;
  const std::string tried = "check " + target.text();
  if (!mine.allowed()) {
    return Error{Code::resource_exhausted, tried + ": too many checks are under way"};
  }
  auto report = within(kPatience, [mine = std::move(mine), target, asked, leave_running] {
    Result<preflight::Report> seen = preflight::look_at(
        target.process.pid, options_for(target, asked, leave_running), {kReadsFor, kMaxBytes});
    const auto beside = runtime::row_of(target.kind).bytes_beside_images;
    if (seen && beside != nullptr) seen->shared_memory_bytes = beside(target.bundle);
    return seen;
  });
  if (report) return *std::move(report);
  return Error{Code::deadline_exceeded, tried + ": /proc or one of its disks does not answer"};
}

void set(const Range& range, v1::Forecast::Range& message) {
  message.set_low(range.low);
  message.set_expected(range.expected);
  message.set_high(range.high);
}

void add_forecast(const Parts& parts, const Target& target, const PlannedDump& planned,
                  v1::Forecast& forecast) {
  const Result<EarlierDumps> earlier =
      earlier_dumps(parts.store, history_owner(target), !target.id.empty(), {});
  if (!earlier) return;
  const DumpTimes times = forecast_times(*earlier, planned);
  forecast.set_of_others(times.of_others);
  forecast.set_dumps(static_cast<std::uint32_t>(times.dumps));
  if (times.dumps == 0) return;
  if (!forecast.of_others()) set(times.written_bytes, *forecast.mutable_written_bytes());
  set(times.stood_still_ns, *forecast.mutable_stood_still_ns());
  set(times.total_ns, *forecast.mutable_total_ns());
}

std::string with_capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Where the dump would go.
Result<std::string> folder_for(const Parts& parts, const v1::CheckRequest& request) {
  if (request.directory().empty()) return parts.config.state_dir + "/checkpoints";
  return allowed_path(parts.config, "check a dump into", request.directory());
}

// A dump is refused with the same figures.
Result<void> add_room(const Parts& parts, const Target& target, const v1::CheckRequest& request,
                      const std::string& folder, preflight::Report& report) {
  const Result<criu::Compression> compression = compression_of(request.compression());
  if (!compression) {
    return Error{compression.error().code, "check: " + compression.error().message};
  }
  if (report.bytes_to_write() == 0) return {};
  PlannedImages planned = plan_images(parts.store, history_owner(target), report.bytes_to_write(),
                                      compression_name(*compression));
  planned.can_compress = runtime::row_of(target.kind).streams;
  const std::optional<NoRoom> none = find_no_room(folder, planned);
  if (!none) return {};
  const std::string remedy = with_capital(none->remedy) + ".";
  report.findings.insert(report.findings.begin(), {preflight::Grade::refuses,
                                                   std::string(preflight::kNoRoom),
                                                   "there is no room for the images",
                                                   remedy,
                                                   1,
                                                   {{0, "", -1, none->figures}}});
  return {};
}

// What the runtime refuses of a container before its dump, such as one that it would remove. Its error is "TRIED: WHY:
// WHAT TO DO", or has no last part.
void add_refusal(const Parts& parts, const Target& target, const v1::CheckRequest& request,
                 preflight::Report& report) {
  if (target.id.empty()) return;
  runtime::DumpSpec spec;
  spec.process = target.process;
  spec.container = target.id;
  spec.container_name = target.name;
  spec.options = to_options(request.options());
  spec.leave_running = request.leave_running();
  spec.frozen = target.frozen;
  const Result<void> may = parts.runtimes.of(target.kind).may_dump(spec);
  if (may) return;
  const std::string& said = may.error().message;
  const std::size_t tried = said.find(": ");
  std::string why = tried == std::string::npos ? said : said.substr(tried + 2);
  std::string remedy = "Change that before the dump";
  std::size_t last = why.rfind(": ");
  while (last != std::string::npos && last > 0 && why[last - 1] == '"') {  // "terminal": true
    last = why.rfind(": ", last - 1);
  }
  if (last != std::string::npos) {
    remedy = with_capital(why.substr(last + 2));
    why.resize(last);
  }
  report.findings.insert(report.findings.begin(), {preflight::Grade::refuses,
                                                   failures::of_error(may.error()).id,
                                                   why,
                                                   remedy + ".",
                                                   1,
                                                   {{0, "", -1, target.text()}}});
}

// What this machine has, as this program sees it: with its environment and its flags.
Result<v1::CheckResponse> check_machine(const Parts& parts) {
  const Look mine;
  if (!mine.allowed()) {
    return Error{Code::resource_exhausted,
                 "check this machine: too many checks are under way: try again in some seconds"};
  }
  const std::vector<runtime::CriuProgram>& crius = parts.crius.programs();
  runtime::RuntimeSettings settings;
  settings.podman_flags = parts.config.podman_flags;
  v1::CheckResponse response;
  for (const runtime::HostFinding& finding : runtime::check_host(
           crius.front().path, crius.size() > 1 ? crius.back().path : std::string(), settings)) {
    v1::HostFinding& out = *response.add_host();
    out.set_what(finding.what);
    static_assert(static_cast<int>(runtime::HostFinding::State::bad) == v1::HostFinding::BAD);
    out.set_state(static_cast<v1::HostFinding::State>(finding.state));
    out.set_detail(finding.detail);
  }
  return response;
}

// A rehearsal does not see that the restore would fail because of these: it has a network of its own, and is made while
// the processes hold their locks.
void refuse_what_a_proof_hides(preflight::Report& report) {
  for (preflight::Finding& finding : report.findings) {
    if (finding.failure == "inet-address" || finding.failure == "lock-wait") {
      finding.grade = preflight::Grade::refuses;
    }
  }
}

}  // namespace

Error refusal(const std::string& tried, const preflight::Report& report,
              const preflight::Finding& first) {
  std::string text = tried + ": it would fail: " + report::printable(line_of(first));
  const std::size_t others = report.refusing() - 1;
  if (others != 0) {
    text += ". " + std::to_string(others) +
            (others == 1 ? " other finding refuses it" : " other findings refuse it") +
            ", too: see kymo check";
  }
  return {Code::failed_precondition, std::move(text)};
}

Result<preflight::Report> refuse_if_sure_to_fail(const Target& target,
                                                 const v1::DumpRequest& request) {
  Result<preflight::Report> report = look(target, request.options(), request.leave_running());
  if (!report) {
    spdlog::info("dump {}: what could make it fail was not checked: {}", target.text(),
                 report.error().message);
    preflight::Report unseen;
    unseen.memory_bytes = probe::memory_to_dump(target.process.pid);
    return unseen;
  }
  if (request.prove()) refuse_what_a_proof_hides(*report);
  for (const preflight::Finding& finding : report->findings) {
    if (finding.grade == preflight::Grade::refuses && !request.force()) {
      Error error = refusal("dump " + target.text(), *report, finding);
      error.message += ". Pass --force to skip this check";
      return error;
    }
    spdlog::debug("dump {}: may fail: {}", target.text(), report::printable(line_of(finding)));
  }
  return report;
}

Error with_places(Error error, const std::vector<preflight::Finding>& seen_before) {
  const std::string failure = failures::of_error(error).id;
  for (const preflight::Finding& finding : seen_before) {
    if (finding.failure != failure) continue;
    error.message += "; seen before the dump: " + report::printable(places_of(finding));
  }
  return error;
}

Error with_possible_causes(Error error, const std::vector<std::string>& seen_before) {
  for (const std::string& line : seen_before) error.message += "; also: " + line;
  return error;
}

Result<v1::CheckResponse> check_target(const Parts& parts, const v1::CheckRequest& request) {
  if (request.target().target_case() == v1::Target::TARGET_NOT_SET) return check_machine(parts);
  const Result<Target> target = find_target(parts, "check", request.target());
  if (!target) return target.error();
  Result<preflight::Report> report = look(*target, request.options(), false);
  if (!report) return report.error();
  add_refusal(parts, *target, request, *report);
  const Result<std::string> folder = folder_for(parts, request);
  if (!folder) return folder.error();
  if (Result<void> room = add_room(parts, *target, request, *folder, *report); !room) {
    return room.error();
  }
  v1::CheckResponse response = to_api(*report);
  add_forecast(parts, *target, {report->bytes_to_write(), disk_of(*folder)},
               *response.mutable_forecast());
  return response;
}

}  // namespace kymo::daemon
