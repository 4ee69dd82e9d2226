#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint_named.h"
#include "confined.h"
#include "print.h"
#include "report/human.h"
#include "report/verified_checkpoint.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::string images_text(std::uint64_t count) {
  return report::with_commas(count) +
         (count == 1 ? " compressed image was" : " compressed images were");
}

// What "whole" covers: which contents were compared with checksums.
std::vector<std::string> covered(const report::VerifiedCheckpoint& verdict) {
  const criu::Contents& contents = verdict.contents;
  std::vector<std::string> lines;
  if (verdict.compared) {
    lines.push_back(report::with_commas(verdict.compared->files) +
                    " files compared with their checksums");
  }
  if (contents.compared != 0) {
    lines.push_back(images_text(contents.compared) +
                    " decompressed and compared with the checksums in them");
  }
  if (contents.archive_compared == true) {
    lines.emplace_back("the archive was decompressed and compared with the checksum in it");
  }
  if (contents.without_sums != 0 && !verdict.compared) {
    lines.push_back(images_text(contents.without_sums) +
                    " decompressed, but have no checksums, so not every changed byte is found");
  }
  if (contents.archive_compared == false) {
    lines.emplace_back(
        "the archive was decompressed, but has no checksum, so not every changed byte is found");
  }
  if (!lines.empty()) return lines;
  return {verdict.images.from_archive()
              ? "no checksums, so contents were not compared (compress the archive: zstd adds one)"
              : "no checksums, so contents were not compared (kymo dump --checksums writes them)"};
}

void print(const std::string& path, const report::VerifiedCheckpoint& verdict) {
  std::cout << report::printable(path) << ": " << (verdict.faults.empty() ? "whole" : "damaged")
            << '\n';
  std::vector<std::vector<std::string>> rows;
  for (const std::string& fault : verdict.faults) rows.push_back({"  " + fault});
  rows.push_back({"  " + report::with_commas(verdict.verified.tree.size()) + " processes, " +
                  report::with_commas(verdict.verified.pages) + " pages, " +
                  bytes_text(verdict.images.image_bytes()) + " of images"});
  for (std::string& line : covered(verdict)) rows.push_back({"  " + std::move(line)});
  print_table(rows);
}

nlohmann::json json_of(const std::string& path, const report::VerifiedCheckpoint& verdict) {
  nlohmann::json json{{"path", path},
                      {"whole", verdict.faults.empty()},
                      {"faults", verdict.faults},
                      {"processes", verdict.verified.tree.size()},
                      {"pages", verdict.verified.pages},
                      {"image_bytes", verdict.images.image_bytes()},
                      {"checksums", nullptr},
                      {"compressed_images",
                       {{"compared", verdict.contents.compared},
                        {"without_checksum", verdict.contents.without_sums}}},
                      {"archive_compared", nullptr}};
  if (verdict.contents.archive_compared) {
    json["archive_compared"] = *verdict.contents.archive_compared;
  }
  if (verdict.compared) {
    json["checksums"] = {{"files", verdict.compared->files}, {"bytes", verdict.compared->bytes}};
  }
  return json;
}

void verify_path(Context& context, const std::string& path) {
  const auto verdict = report::verify_checkpoint(path, report::Depth::contents);
  if (!verdict) return fail(context, verdict.error());
  if (context.quiet) {
    // The exit code says it all.
  } else if (context.json) {
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
  CLI::App* verb =
      app.add_subcommand("verify", "Check that a checkpoint is not damaged; exit with 1 if it is");
  auto target = std::make_shared<std::string>();
  verb->fallthrough();
  verb->add_option("checkpoint", *target,
                   "Directory or id of a checkpoint, a job (its last checkpoint), a directory of "
                   "CRIU images, or an archive that podman exported")
      ->required();
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, target] { verify(context, *target); });
}

}  // namespace kymo::cli
