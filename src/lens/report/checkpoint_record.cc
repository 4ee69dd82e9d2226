#include "lens/report/checkpoint_record.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/beneath.h"
#include "base/json_object.h"

namespace kymo::report {
namespace {

constexpr char kRecordFile[] = "checkpoint.json";

}  // namespace

Result<nlohmann::json> read_checkpoint_record(const std::string& directory) {
  const std::string path = directory + "/" + kRecordFile;
  const Result<std::string> text = read_beneath(directory, kRecordFile, kMaxRecordBytes);
  if (!text) {
    return Error{text.error().code, "read the checkpoint's record: " + text.error().message,
                 text.error().errno_value};
  }
  nlohmann::json record = parse_object(*text);
  if (!member(record, "format_version").is_number_integer()) {
    return Error{Code::data_loss,
                 "the checkpoint's record " + path + " is damaged: not JSON with a format_version"};
  }
  const auto version = record["format_version"].get<std::int64_t>();
  if (version > kRecordVersion) {
    return Error{Code::unimplemented, "the checkpoint's record " + path + " has format_version " +
                                          std::to_string(version) +
                                          ", newer than this program reads (" +
                                          std::to_string(kRecordVersion) + "): use a newer one"};
  }
  return record;
}

bool is_complete(const nlohmann::json& record, const std::string& directory) {
  const nlohmann::json& state = member(record, "state");
  if (state != "started") return state == "complete";
  std::error_code error;
  return std::filesystem::symlink_status(directory + "/images", error).type() ==
         std::filesystem::file_type::directory;
}

nlohmann::json json_of(const criu::ImageList& list) {
  nlohmann::json images = nlohmann::json::array();
  for (const criu::ListedImage& image : list) {
    nlohmann::json entry{{"name", image.name}};
    if (image.bytes) entry["bytes"] = *image.bytes;
    if (!image.xxh128.empty()) entry["xxh128"] = image.xxh128;
    images.push_back(std::move(entry));
  }
  return images;
}

std::optional<criu::ImageList> image_list_of(const nlohmann::json& record, std::string& fault) {
  if (!record.is_object() || !record.contains(kImages)) return std::nullopt;
  const nlohmann::json& images = record[kImages];
  criu::ImageList list;
  bool damaged = !images.is_array();
  for (const nlohmann::json& entry : images) {
    const nlohmann::json& bytes = member(entry, "bytes");
    std::string name = kymo::text_of(entry, "name");
    if (name.empty() || !bytes.is_number_unsigned()) {
      damaged = true;
      continue;
    }
    list.push_back({std::move(name), bytes.get<std::uint64_t>(), kymo::text_of(entry, "xxh128")});
  }
  if (damaged) fault = "checkpoint.json: its list of images is damaged";
  return list;
}

std::string output_file_at(const nlohmann::json& record, const std::string& path) {
  const std::string id = kymo::text_of(member(record, "job"), "id");
  if (id.empty() || !path.starts_with('/')) return {};
  for (const char* const name : {"stdout", "stderr"}) {
    std::string end = "/jobs/";
    end.append(id).append("/").append(name);
    if (path.ends_with(end)) return name;
  }
  return {};
}

}  // namespace kymo::report
