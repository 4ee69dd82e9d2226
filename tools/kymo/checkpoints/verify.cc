#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoints/checkpoint_named.h"
#include "client/client.h"
#include "confined.h"
#include "interrupt.h"
#include "jobs/progress.h"
#include "lens/report/human.h"
#include "lens/report/verified_checkpoint.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::string images_text(std::uint64_t count) {
  return report::with_commas(count) +
         (count == 1 ? " compressed image was" : " compressed images were");
}

// Whether an image of pages has neither a checksum of its own nor one in the list.
bool has_unseen_pages(const report::VerifiedCheckpoint& verdict) {
  if (verdict.verified.compared && verdict.verified.compared->pages) return false;
  for (const std::string& name : verdict.images.names()) {
    if (name.starts_with("pages-") && !verdict.images.packed(name)) return true;
  }
  return false;
}

// What "whole" covers, and what it does not.
std::vector<std::string> covered(const report::VerifiedCheckpoint& verdict) {
  const criu::Contents& contents = verdict.contents;
  const std::optional<criu::Compared>& compared = verdict.verified.compared;
  std::vector<std::string> lines;
  if (compared) {
    lines.push_back(report::with_commas(compared->images) +
                    " images are in the list of the dump, " + report::with_commas(compared->files) +
                    " of them were compared with their checksums");
  } else {
    lines.emplace_back(
        verdict.images.from_archive()
            ? "an archive has no list of its images: only what they say of each "
              "other was checked"
            : "this checkpoint has no list of its images: only what they say of each "
              "other was checked");
  }
  lines.insert(lines.end(), verdict.verified.unknown.begin(), verdict.verified.unknown.end());
  if (contents.compared != 0) {
    lines.push_back(images_text(contents.compared) +
                    " decompressed and compared with the checksums in them");
  }
  if (contents.archive_compared == true) {
    lines.emplace_back("the archive was decompressed and compared with the checksum in it");
    return lines;
  }
  if (contents.without_sums != 0 && !(compared && compared->pages)) {
    lines.push_back(images_text(contents.without_sums) +
                    " decompressed, but have no checksums, so not every changed byte is found");
  }
  if (contents.archive_compared == false) {
    lines.emplace_back(
        "the archive was decompressed, but has no checksum, so not every changed byte is found");
  } else if (has_unseen_pages(verdict)) {
    lines.emplace_back(verdict.images.from_archive()
                           ? "no checksums, so contents were not compared (compress the archive: "
                             "zstd adds one)"
                           : "the memory pages have no checksums, so their contents were not "
                             "compared (kymo dump --checksums adds them)");
  }
  return lines;
}

// Whether it is whole. Nothing if that cannot be known.
std::optional<bool> is_whole(const report::VerifiedCheckpoint& verdict) {
  if (!verdict.faults.empty()) return false;
  return verdict.verified.unknown.empty() ? std::optional(true) : std::nullopt;
}

// Not set: none was asked for.
using Rehearsal = std::optional<Result<v1::RestoreResponse>>;

// kymod does it: a restore needs its rights.
Rehearsal rehearse(Context& context, const std::string& path) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  v1::RestoreRequest request;
  request.set_directory(std::filesystem::absolute(path).lexically_normal());
  request.set_rehearse(true);
  request.set_request_id(new_request_id());
  const auto bar = show_progress(context, *client, request);
  const CancelOnInterrupt interrupt(*client, request.request_id());
  return client->restore(request);
}

void print(const std::string& path, const report::VerifiedCheckpoint& verdict,
           const Rehearsal& rehearsal) {
  const std::optional<bool> whole = is_whole(verdict);
  std::cout << report::printable(path) << ": "
            << (!whole   ? "an image may be missing"
                : *whole ? "whole"
                         : "damaged")
            << '\n';
  std::vector<std::vector<std::string>> rows;
  for (const std::string& fault : verdict.faults) rows.push_back({"  " + fault});
  rows.push_back({"  " + report::with_commas(verdict.verified.tree.size()) + " processes, " +
                  report::with_commas(verdict.verified.pages) + " pages, " +
                  bytes_text(verdict.images.image_bytes()) + " of images"});
  for (std::string& line : covered(verdict)) rows.push_back({"  " + std::move(line)});
  if (rehearsal && *rehearsal) {
    rows.push_back({"  rehearsed: restored up to the moment before it runs, and taken back, in " +
                    report::duration((*rehearsal)->duration_ns())});
  }
  print_table(rows);
}

nlohmann::json json_of(const std::string& path, const report::VerifiedCheckpoint& verdict,
                       const Rehearsal& rehearsal) {
  nlohmann::json json{{"path", path},
                      {"whole", nullptr},
                      {"faults", verdict.faults},
                      {"processes", verdict.verified.tree.size()},
                      {"pages", verdict.verified.pages},
                      {"image_bytes", verdict.images.image_bytes()},
                      {"listed_images", nullptr},
                      {"checksums", nullptr},
                      {"unknown", verdict.verified.unknown},
                      {"compressed_images",
                       {{"compared", verdict.contents.compared},
                        {"without_checksum", verdict.contents.without_sums}}},
                      {"archive_compared", nullptr}};
  if (verdict.contents.archive_compared) {
    json["archive_compared"] = *verdict.contents.archive_compared;
  }
  if (const std::optional<bool> whole = is_whole(verdict)) json["whole"] = *whole;
  if (rehearsal) {
    json["rehearsal"] = {{"restorable", rehearsal->ok()}};
    if (*rehearsal) {
      json["rehearsal"]["duration_ns"] = (*rehearsal)->duration_ns();
      json["rehearsal"]["warnings"] = (*rehearsal)->warnings();
    } else {
      json["rehearsal"]["error"] = rehearsal->error().message;
    }
  }
  if (const std::optional<criu::Compared>& compared = verdict.verified.compared) {
    json["listed_images"] = compared->images;
    json["checksums"] = {
        {"files", compared->files}, {"bytes", compared->bytes}, {"pages", compared->pages}};
  }
  return json;
}

void verify_path(Context& context, const std::string& path, const Rehearsal& rehearsal) {
  const auto verdict = report::verify_checkpoint(path, report::Depth::contents);
  if (!verdict) return fail(context, verdict.error());
  if (context.quiet) {
    // The exit code says it all.
  } else if (context.json) {
    print_json(json_of(path, *verdict, rehearsal));
  } else {
    print(path, *verdict, rehearsal);
  }
  const std::optional<bool> whole = is_whole(*verdict);
  context.exit_code = !whole ? kCannotTell : *whole ? 0 : 1;
}

void verify(Context& context, const std::string& target, bool with_rehearsal) {
  const std::string path = checkpoint_named(context, target);
  Rehearsal rehearsal;
  if (with_rehearsal) rehearsal = rehearse(context, path);
  look_confined(context, {path}, [&] { verify_path(context, path, rehearsal); });
  if (!rehearsal) return;
  if (!*rehearsal) return fail(context, rehearsal->error());
  for (const std::string& warning : (*rehearsal)->warnings()) say(warning);
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("verify",
                                      "Check that a checkpoint is not damaged; exit with 1 if it "
                                      "is, and with 3 if that cannot be known");
  auto target = std::make_shared<std::string>();
  verb->fallthrough();
  verb->add_option("checkpoint", *target,
                   "Directory or id of a checkpoint, a job (its last checkpoint), a directory of "
                   "CRIU images, or an archive that podman exported")
      ->required();
  auto with_rehearsal = std::make_shared<bool>(false);
  verb->add_flag(
      "--rehearse", *with_rehearsal,
      "If it is whole, let kymod restore it up to the moment before anything of it runs, "
      "and take that back");
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, target, with_rehearsal] { verify(context, *target, *with_rehearsal); });
}

}  // namespace kymo::cli
