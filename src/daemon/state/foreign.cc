#include "daemon/state/foreign.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_object.h"
#include "base/json_text.h"
#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "daemon/state/pieces.h"
#include "lens/analysis/summary.h"
#include "lens/report/checkpoint_diff.h"
#include "lens/report/checkpoint_record.h"
#include "lens/report/checkpoint_stats.h"
#include "lens/report/html_report.h"
#include "lens/report/stack_summary.h"
#include "lens/report/verified_checkpoint.h"
#include "profiler/stacks/profile_text.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Enough for the page of a recording of millions of rows.
constexpr std::uint64_t kMaxPage = std::uint64_t{512} << 20;
constexpr std::uint64_t kPageMemory = std::uint64_t{4} << 30;
// A long time, because the disk limits how fast checksums are compared.
constexpr std::chrono::seconds kChecksumsTime{3600};
constexpr std::chrono::hours kDiskTime{12};

// The functions below run in the helper process.

json json_of(const criu::ImageProcess& process) {
  return {process.pid, process.parent, process.group, process.session, process.threads};
}

Result<std::string> look(const std::string& images_dir) {
  const auto seen = report::verify_checkpoint(images_dir, report::Depth::sums);
  if (!seen) return seen.error();
  json tree = json::array();
  for (const criu::ImageProcess& process : seen->verified.tree) tree.push_back(json_of(process));
  return json_text(json{{"tree", std::move(tree)},
                        {"unknown", seen->verified.unknown},
                        {"planned", runtime::to_json(report::planned_restore(*seen))}});
}

Result<std::string> look_at_shape(const std::string& images_dir) {
  const Result<criu::ImageSet> images = criu::ImageSet::open(images_dir);
  if (!images) return images.error();
  const std::optional<criu::MemoryShape> shape = criu::memory_shape(*images);
  if (!shape) return json_text(json::object());
  return json_text(json{{"processes", shape->processes},
                        {"mappings", shape->mappings},
                        {"runs", shape->runs},
                        {"pages", shape->pages},
                        {"files", shape->files},
                        {"sockets", shape->sockets},
                        {"shared", shape->shared},
                        {"threads", shape->threads}});
}

Result<std::string> read_a_whole_record(const std::string& directory) {
  const Result<json> record = report::read_checkpoint_record(directory);
  return record ? Result<std::string>(json_text(*record)) : record.error();
}

// kymod parses the answer, and needs the list of images in few cases.
Result<std::string> read_a_record(const std::string& directory) {
  Result<json> record = report::read_checkpoint_record(directory);
  if (!record) return record.error();
  record->erase(report::kImages);
  return json_text(*record);
}

Result<std::string> look_at_recording(const std::string& path) {
  const auto recording = analysis::open_recording(path);
  if (!recording) return recording.error();
  json out = json::object();
  if (!recording->metadata) return json_text(out);
  const analysis::Metadata& metadata = *recording->metadata;
  out["state"] = metadata.state;
  out["about"] = *metadata.about;
  json marks = json::array();
  for (const analysis::Mark& mark : metadata.marks) {
    marks.push_back({{"name", mark.name}, {"at_ns", mark.at_ns}});
  }
  out["marks"] = std::move(marks);
  return json_text(out);
}

Result<std::string> read_statistics(const std::string& directory) {
  const Result<report::CheckpointStats> stats = report::read_checkpoint_stats(directory);
  return stats ? Result<std::string>(json_text(report::json_of(*stats))) : stats.error();
}

Result<std::string> compare_statistics(const std::string& request) {
  const json asked = parse_json(request);
  const auto before = report::read_checkpoint_stats(text_of(asked, "before"));
  if (!before) return before.error();
  const auto after = report::read_checkpoint_stats(text_of(asked, "after"));
  if (!after) return after.error();
  report::CheckpointDiff diff = report::diff_of(*before, *after);
  diff.before = text_of(asked, "before_name");
  diff.after = text_of(asked, "after_name");
  return json_text(report::json_of(diff));
}

Result<std::string> make_page_data(const std::string& path) {
  const auto summary = analysis::summarize(path, 1);
  return summary ? report::report_data(*summary, {}) : summary.error();
}

Result<std::string> read_stack_profile(const std::string& request) {
  const json asked = parse_json(request);
  const auto quantity = stacks::quantity_named(text_of(asked, "quantity"));
  if (!quantity) return Error{Code::internal, "no such quantity"};
  const Result<stacks::NamedProfile> profile =
      report::read_stack_file(text_of(asked, "folder"), text_of(asked, "name"), *quantity);
  return profile ? Result<std::string>(stacks::text_of(*profile)) : profile.error();
}

Result<std::string> read_request(const std::string& request) {
  return http::json_of(http::read_head(request));
}

// The functions below run in kymod, which does not trust the answers of the helper.

Result<json> object_in(const Result<std::string>& answer) {
  if (!answer) return answer.error();
  json object = parse_object(*answer);
  if (object.is_object()) return object;
  return Error{Code::data_loss,
               "the process that reads foreign files sent an answer that is not JSON"};
}

// Returns the pid in `said`. Returns nothing if kill(2) would not take it for a single process.
std::optional<pid_t> pid_in(const json& said) {
  if (!said.is_number_unsigned()) return std::nullopt;
  const auto number = said.get<std::uint64_t>();
  const bool is_pid = number > 0 && number <= std::numeric_limits<pid_t>::max();
  return is_pid ? std::optional(static_cast<pid_t>(number)) : std::nullopt;
}

std::optional<criu::ImageProcess> process_in(const json& said) {
  constexpr std::size_t kParts = 5;
  if (!said.is_array() || said.size() != kParts || !said[1].is_number_integer() ||
      !said[2].is_number_integer() || !said[3].is_number_integer() || !said[4].is_array()) {
    return std::nullopt;
  }
  const std::optional<pid_t> pid = pid_in(said[0]);
  if (!pid) return std::nullopt;
  criu::ImageProcess process{
      *pid, said[1].get<pid_t>(), said[2].get<pid_t>(), said[3].get<pid_t>(), {}};
  for (const json& thread : said[4]) {
    const std::optional<pid_t> id = pid_in(thread);
    if (!id) return std::nullopt;
    process.threads.push_back(*id);
  }
  return process;
}

confine::Bounds reading(std::vector<std::string> paths) {
  confine::Bounds bounds;
  bounds.readable = std::move(paths);
  return bounds;
}

// The companion files of a recording are in the same folder and are read, too.
confine::Bounds reading_beside(const std::string& recording) {
  return reading({fs::path(recording).parent_path()});
}

}  // namespace

confine::WorkByName foreign_readers() {
  confine::WorkByName readers{{"look at images", look},
                              {"look at the shape of memory", look_at_shape},
                              {"read a record", read_a_record},
                              {"read a whole record", read_a_whole_record},
                              {"look at a recording", look_at_recording},
                              {"read statistics", read_statistics},
                              {"compare statistics", compare_statistics},
                              {"read a stack profile", read_stack_profile},
                              {"make the data of a page", make_page_data},
                              {"read a request", read_request}};
  add_piece_readers(readers);
  return readers;
}

Result<ImagesSeen> ForeignFiles::look_at_images(const std::string& images_dir,
                                                const Cancellation* cancel) const {
  std::error_code error;
  const fs::path images = fs::canonical(images_dir, error);
  confine::Bounds bounds =
      reading({images_dir, CheckpointDir(error ? "" : images.parent_path()).record()});
  bounds.cpu_time = kChecksumsTime;
  bounds.time = kDiskTime;  // `cancel` may end it before
  const Result<json> answer = object_in(helper_.ask("look at images", images_dir, bounds, cancel));
  if (!answer) return answer.error();
  ImagesSeen seen;
  for (const json& said : member(*answer, "tree")) {
    std::optional<criu::ImageProcess> process = process_in(said);
    if (!process) return Error{Code::data_loss, images_dir + ": its process tree is damaged"};
    seen.tree.push_back(*std::move(process));
  }
  for (const json& said : member(*answer, "unknown")) {
    if (said.is_string()) criu::add_fault(seen.unknown, said.get<std::string>());
  }
  const json& planned = member(*answer, "planned");
  if (!planned.is_object())
    return Error{Code::data_loss, images_dir + ": its faults are not known"};
  seen.planned = runtime::planned_restore_of(planned);
  for (const criu::NeededFile& file : seen.planned.needs.files) {
    const bool may_be = file.path.ends_with("/stdout") || file.path.ends_with("/stderr");
    if (may_be) seen.outputs.push_back(file.path);
  }
  if (seen.tree.empty() && seen.planned.faults.empty()) {
    return Error{Code::data_loss, images_dir + ": it holds no process"};
  }
  return seen;
}

std::optional<criu::MemoryShape> ForeignFiles::memory_shape(const std::string& images_dir) const {
  constexpr std::chrono::seconds kTime{2};
  confine::Bounds bounds = reading({images_dir});
  bounds.cpu_time = kTime;
  bounds.time = kTime;
  const Result<json> said =
      object_in(helper_.ask("look at the shape of memory", images_dir, bounds));
  if (!said || number_of(*said, "processes") == 0) return std::nullopt;
  return criu::MemoryShape{number_of(*said, "processes"), number_of(*said, "mappings"),
                           number_of(*said, "runs"),      number_of(*said, "pages"),
                           number_of(*said, "files"),     number_of(*said, "sockets"),
                           number_of(*said, "threads"),   number_of(*said, "shared")};
}

Result<json> ForeignFiles::read_record(const CheckpointDir& dir, const char* reader,
                                       std::uint64_t most) const {
  constexpr std::chrono::seconds kTime{10};  // kymod reads it also before it serves its API
  confine::Bounds bounds = reading({dir.record()});
  bounds.time = kTime;
  bounds.answer_bytes = 2 * most;  // written anew, it may be a little longer
  return object_in(helper_.ask(reader, dir.path(), bounds));
}

Result<json> ForeignFiles::record(const CheckpointDir& dir) const {
  return read_record(dir, "read a record", report::kMaxRecordWithoutImages);
}

Result<json> ForeignFiles::whole_record(const CheckpointDir& dir) const {
  return read_record(dir, "read a whole record", report::kMaxRecordBytes);
}

Result<json> ForeignFiles::recording(const std::string& path) const {
  return object_in(helper_.ask("look at a recording", path, reading_beside(path)));
}

Result<json> ForeignFiles::statistics(const std::string& directory) const {
  return object_in(helper_.ask("read statistics", directory, reading({directory})));
}

Result<json> ForeignFiles::comparison(const Named& before, const Named& after) const {
  const json request{{"before", before.directory},
                     {"before_name", before.name},
                     {"after", after.directory},
                     {"after_name", after.name}};
  return object_in(helper_.ask("compare statistics", json_text(request),
                               reading({before.directory, after.directory})));
}

Result<stacks::NamedProfile> ForeignFiles::stacks(const std::string& folder,
                                                  const std::string& name,
                                                  stacks::Quantity quantity) const {
  constexpr std::uint64_t kMaxAnswer = std::uint64_t{32} << 20;  // kymod parses it
  constexpr std::chrono::seconds kTime{15};
  confine::Bounds bounds = reading({folder});
  bounds.answer_bytes = kMaxAnswer;
  bounds.cpu_time = kTime;
  bounds.time = kTime;
  const json request{{"folder", folder}, {"name", name}, {"quantity", facts_of(quantity).name}};
  const Result<std::string> answer =
      helper_.ask("read a stack profile", json_text(request), bounds);
  if (answer) return stacks::profile_in(*answer);
  if (answer.error().code != Code::resource_exhausted) return answer.error();
  return Error{
      Code::resource_exhausted,
      name + " has too many stacks for the page, or is damaged: compare it with kymo diff"};
}

Result<http::Head> ForeignFiles::head(const std::string& request) const {
  constexpr std::uint64_t kMaxHead = std::uint64_t{1} << 20;
  constexpr std::chrono::seconds kTime{5};
  confine::Bounds bounds;
  bounds.answer_bytes = kMaxHead;
  bounds.cpu_time = kTime;
  bounds.time = kTime;
  const Result<std::string> answer = helper_.ask("read a request", request, bounds);
  if (!answer) return answer.error();
  std::optional<http::Head> head = http::head_in(*answer);
  if (head) return *std::move(head);
  return Error{Code::internal,
               "the process that reads requests sent an answer that is not a request"};
}

Result<std::string> ForeignFiles::page(const std::string& recording,
                                       const std::string& nonce) const {
  confine::Bounds bounds = reading_beside(recording);
  bounds.memory_bytes = kPageMemory;
  bounds.answer_bytes = kMaxPage;
  const Result<std::string> data = helper_.ask("make the data of a page", recording, bounds);
  return data ? report::report_page(*data, nonce) : data;
}

}  // namespace kymo::daemon
