#include "daemon/request/dump_outcome.h"

#include <cstdint>
#include <optional>

#include "base/json_text.h"
#include "base/patience.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/preflight/host_names.h"
#include "daemon/request/dump_record.h"
#include "daemon/request/refusal.h"
#include "daemon/request/room.h"
#include "daemon/request/run_record.h"
#include "daemon/request/stream_choice.h"
#include "lens/report/checkpoint_record.h"

namespace kymo::daemon {
namespace {

using nlohmann::json;

json record_of(const DumpContext& c, const Result<void>& result, std::uint64_t duration_ns) {
  json record = entry_of(c, result ? "complete" : "failed");
  record["duration_ns"] = duration_ns;
  record["phases"] = diagnosis::to_json(c.concluded);
  if (c.stood_still_ns != 0) record["stood_still_ns"] = c.stood_still_ns;
  if (!c.verdict.lines.empty()) record["verdict"] = diagnosis::to_json(c.verdict);
  c.add_timing(record);
  if (!result) {
    record["error"] = result.error().message;
    record["failure"] = failures::to_json(failures::of_error(result.error()));
  }
  if (c.settled.fate.images != DumpFate::OfImages::discard) {
    if (c.outcome.stats) record["stats"] = to_json(*c.outcome.stats);
    record["image_bytes"] = c.outcome.image_bytes;
    if (!c.settled.images.is_null()) record[report::kImages] = c.settled.images;
    if (c.stream) {
      record["stream"] = {{"compression", criu::name_of(c.stream->compression)},
                          {"streamed_bytes", c.streamed_bytes}};
      if (is_compressed(c.stream)) record["stream"]["level"] = level_of(*c.stream);
    }
    record["criu_time_ns"] = c.outcome.criu_time_ns;
    if (c.outcome.criu_major_faults) record["criu_major_faults"] = *c.outcome.criu_major_faults;
    if (!c.outcome.pre_dumps.empty()) record["pre_dumps"] = to_json(c.outcome.pre_dumps);
    if (c.outcome.command_time_ns != 0) record["command_time_ns"] = c.outcome.command_time_ns;
  }
  return record;
}

// All images, before compression.
std::uint64_t written_bytes(const DumpContext& c) {
  return c.streamed_bytes != 0 ? c.streamed_bytes : c.outcome.image_bytes;
}

store::Run run_of(const DumpContext& c, const Result<void>& result) {
  store::Run run = common_run(c, result, c.outcome);
  run.id = c.checkpoint.id;
  run.owner = c.owner;
  run.checkpoint_id = c.checkpoint.id;
  run.duration_ns = c.checkpoint.duration_ns;
  run.image_bytes = c.checkpoint.image_bytes;
  run.written_bytes = written_bytes(c);
  run.conditions = conditions_of(c.asked, c.stream, !c.memory_images.empty(), !c.stacks.empty());
  run.stood_still_ns = c.stood_still_ns;
  run.disk = c.disk;
  return run;
}

bool is_unconfirmed(const DumpContext& c) {
  return c.settled.fate.state == store::CheckpointState::unconfirmed;
}

// The directory of a failed dump may be on a disk that does not answer. The client does not wait
// for it for long.
void save(DumpContext& c, const Result<void>& result, std::uint64_t duration_ns) {
  c.checkpoint.error = result ? "" : result.error().message;
  c.checkpoint.image_bytes = c.outcome.image_bytes;
  c.checkpoint.duration_ns = duration_ns;
  c.checkpoint.stood_still_ns = c.stood_still_ns;
  if (c.outcome.stats) c.checkpoint.stats_json = json_text(to_json(*c.outcome.stats));
  const bool durable = result && c.asked.sync();
  constexpr std::uint64_t kDiskAnswersNs = 3 * kNanosPerSecond;
  if (!c.asked_disk) c.asked_disk.emplace(c.directory_claim);
  c.asked_disk->wait_until(monotonic_ns() + kDiskAnswersNs);
  c.warn_unless(carry_out(
      c.parts.store, *c.ended_dump, c.settled, c.checkpoint,
      [&] { return record_of(c, result, duration_ns); }, durable, run_of(c, result),
      *c.asked_disk));
  c.warnings.insert(c.warnings.end(), c.settled.warnings.begin(), c.settled.warnings.end());
  if (std::string warning = unstored_warning(c.parts.store); !warning.empty()) {
    c.warnings.push_back(std::move(warning));
  }
}

}  // namespace

diagnosis::Facts facts_of(const DumpContext& c, const Result<void>& result) {
  diagnosis::Facts facts;
  facts.dump = c.outcome.stats;
  facts.by_containerd = runtime::row_of(c.target.kind).by_containerd;
  facts.ended = result && !c.asked.leave_running();
  if (c.dir) facts.log = c.dir->work() + "/dump.log";
  if (c.stream) {
    facts.streaming =
        diagnosis::Streaming{.compressed = is_compressed(c.stream), .codec = codec_of(c.stream)};
  }
  facts.image_bytes = c.outcome.image_bytes;
  facts.connections = c.asked.options().tcp_established();
  facts.unstreamed_by = excludes_compression(c.asked);
  // The disk of the store may not answer, and the answer of a dump that failed does not wait for it.
  if (result && runtime::row_of(c.target.kind).streams) {
    constexpr std::size_t kEarlier = 50;
    if (auto runs = c.parts.store.runs(c.owner, store::RunKind::dump, kEarlier)) {
      const std::vector<store::Run> earlier = alike(*std::move(runs), c.disk, written_bytes(c));
      if (is_compressed(c.stream)) {
        facts.plain_still_ns = standstill_of(earlier, "");
        return facts;
      }
      const double share = least_share_of(earlier, "zstd");
      if (share > 0) facts.zstd_share = share;
      facts.zstd_still_ns = standstill_of(earlier, "zstd");
    }
  }
  return facts;
}

std::string images_of(const DumpContext& c) {
  return c.dir ? c.dir->images() : "";
}

json entry_of(const DumpContext& c, std::string_view state) {
  json entry{{"state", state},
             {"pid", c.target.process.pid},
             {"start_ticks", c.target.process.start_ticks},
             {"command", c.target.command},
             {"leave_running", c.asked.leave_running()},
             {"created_unix_ns", c.began_unix_ns},
             {"options", options_json(c.asked.options())},
             {"criu", {{"version", c.criu.version.text()}, {"path", c.criu.path}}},
             {"machine", machine_json()}};
  if (c.own_mounts_on_root) entry["options"]["root"] = "/";
  if (!c.target.id.empty()) {
    entry["container"] = container_json(c.target);
    entry["container"]["names"] = preflight::to_json(c.names);
    entry["container"]["renews"] = runtime::row_of(c.target.kind).renews;
  }
  if (c.job) entry["job"] = {{"id", c.job->id}, {"name", c.job->name}};
  return entry;
}

void measure(DumpContext& c) {
  if (!c.begun || is_unconfirmed(c)) return;
  c.stood_still_ns =
      diagnosis::stood_still_ns(c.outcome.stats, c.concluded.empty() ? c.phases() : c.concluded);
  if (c.stood_still_ns != 0) c.parts.metrics.standstills()->add(c.stood_still_ns);
}

void conclude(DumpContext& c, const Result<void>& result) {
  const bool missing = c.owner.empty() && !result;
  note_ending(c, result, missing ? owner_of_missing(c.parts, target_of(c.asked)) : c.owner,
              c.listed);
  if (!c.dir) return;  // the dump was refused before anything was made
  if (!result &&
      !c.listed) {  // the store did not take it: a retry must be able to use the directory
    static_cast<void>(within(kDiskPatience, [dir = *c.dir] {
      clear_unused(dir);
      return true;
    }));
    return;
  }
  if (c.concluded.empty()) c.concluded = c.phases();
  const std::uint64_t duration_ns =
      c.concluded.empty() ? c.duration_ns() : c.concluded.back().end_ns;
  save(c, result, duration_ns);
  if (is_unconfirmed(c)) c.parts.unconfirmed.watch(c.checkpoint.id);
  json about = json::object();
  if (c.outcome.stats) about["stats"] = to_json(*c.outcome.stats);
  if (c.settled.fate.images != DumpFate::OfImages::discard) {
    about["image_bytes"] = c.outcome.image_bytes;
  }
  if (c.stood_still_ns != 0) about["stood_still_ns"] = c.stood_still_ns;
  c.end_recording(result, std::move(about));
  c.ended_dump.reset();
  c.asked_disk.reset();
  c.held.reset();  // so that the disk can be unmounted
}

v1::DumpResponse response_of(const DumpContext& c) {
  v1::DumpResponse response;
  response.set_pid(c.target.process.pid);
  response.set_directory(c.dir->path());
  response.set_images_directory(c.dir->images());
  response.set_image_bytes(c.outcome.image_bytes);
  response.set_streamed_bytes(c.streamed_bytes);
  response.set_forecast(c.forecast);
  response.set_stood_still_ns(c.stood_still_ns);
  response.set_stays_frozen(c.target.frozen && c.asked.leave_running());
  for (const runtime::PreDumpRound& round : c.outcome.pre_dumps) {
    *response.add_pre_dumps() = to_api(round);
  }
  fill_response(response, c, c.outcome, c.target.kind, c.target.id);
  if (!c.target.id.empty()) response.set_container_name(c.target.name);
  return response;
}

}  // namespace kymo::daemon
