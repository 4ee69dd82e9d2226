#include "criu/verify.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_object.h"
#include "checkpoint_named.h"
#include "confined.h"
#include "criu/checksums.h"
#include "criu/image_set.h"
#include "print.h"
#include "report/checkpoint_record.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

namespace fs = std::filesystem;

// What is wrong with kymod's checkpoint.json beside the images. Empty if nothing is wrong, or if
// there is none because another tool made the checkpoint.
std::string fault_of_record(const std::string& directory) {
  const Result<nlohmann::json> record =
      report::read_checkpoint_record(directory + "/checkpoint.json");
  if (!record) return record.error().code == Code::not_found ? "" : record.error().message;
  const std::string state = text_of(*record, "state");
  return state == "complete" ? "" : "checkpoint.json: the dump is not complete but '" + state + "'";
}

struct Verdict {
  criu::ImageSet images;
  criu::Verified verified{};
  Result<criu::Compared> compared = criu::Compared();  // not_found if there are no checksums
  std::vector<std::string> faults{};
};

Result<Verdict> verdict_of(const std::string& path) {
  Result<criu::ImageSet> images = criu::ImageSet::open(path);
  if (!images) return images.error();
  const std::string inventory = images->where("inventory.img");
  Verdict verdict{*std::move(images)};
  verdict.verified = criu::verify_images(verdict.images);
  verdict.compared = criu::compare_checksums(fs::path(inventory).parent_path());
  verdict.faults = verdict.verified.faults;
  if (verdict.compared) {
    const std::vector<std::string>& changed = verdict.compared->faults;
    verdict.faults.insert(verdict.faults.end(), changed.begin(), changed.end());
  } else if (verdict.compared.error().code != Code::not_found) {
    verdict.faults.push_back(verdict.compared.error().message);
  }
  if (const std::string fault = fault_of_record(path); !fault.empty()) {
    verdict.faults.push_back(fault);
  }
  return verdict;
}

void print(const std::string& path, const Verdict& verdict) {
  std::cout << path << ": " << (verdict.faults.empty() ? "whole" : "damaged") << '\n';
  std::vector<std::vector<std::string>> rows;
  for (const std::string& fault : verdict.faults) rows.push_back({"  " + fault});
  rows.push_back({"  " + grouped(verdict.verified.tree.size()) + " processes, " +
                  grouped(verdict.verified.pages) + " pages, " +
                  bytes_text(verdict.images.image_bytes()) + " of images"});
  rows.push_back(
      {verdict.compared
           ? "  " + grouped(verdict.compared->files) + " files compared with their checksums"
           : "  no checksums: no content was compared (kymo dump --checksums writes them)"});
  print_table(rows);
}

nlohmann::json json_of(const std::string& path, const Verdict& verdict) {
  nlohmann::json json{{"path", path},
                      {"whole", verdict.faults.empty()},
                      {"faults", verdict.faults},
                      {"processes", verdict.verified.tree.size()},
                      {"pages", verdict.verified.pages},
                      {"image_bytes", verdict.images.image_bytes()},
                      {"checksums", nullptr}};
  if (verdict.compared) {
    json["checksums"] = {{"files", verdict.compared->files}, {"bytes", verdict.compared->bytes}};
  }
  return json;
}

void verify_path(Context& context, const std::string& path) {
  const Result<Verdict> verdict = verdict_of(path);
  if (!verdict) return fail(context, verdict.error());
  if (context.json) {
    print_json(json_of(path, *verdict));
  } else {
    print(path, *verdict);
  }
  context.exit_code = verdict->faults.empty() ? 0 : 1;
}

void verify(Context& context, const std::string& target) {
  const std::string path = checkpoint_named(context, target);
  look_confined(context, {path}, [&] { verify_path(context, path); });
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "verify", "Whether a checkpoint is whole; exit code 1 where it is damaged");
  auto target = std::make_shared<std::string>();
  verb->fallthrough();
  verb->add_option(
          "checkpoint", *target,
          "Its directory or id, a job (its last checkpoint), a directory of CRIU images, or "
          "an archive that podman exported")
      ->required();
  verb->add_flag("--json", context.json, "Print JSON");
  verb->callback([&context, target] { verify(context, *target); });
}

}  // namespace kymo::cli
