#include "checkpoint/criu/images/verify.h"

#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_references.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"
#include "checkpoint/criu/images/memory.h"
#include "checkpoint/criu/images/pstree.h"

namespace kymo::criu {
namespace {

// criu/include/magic.h and image.h. An inventory has no word for its family. Version 2 is the
// format since CRIU 1.1.
constexpr std::uint32_t kInventoryMagic = 0x58313116;
constexpr std::uint32_t kNewestVersion = 2;

// The first message of an image. If there is none, adds a fault and returns nothing.
std::span<const std::byte> first_message(std::span<const std::byte> image, const ImageKind& kind,
                                         const std::string& name,
                                         std::vector<std::string>& faults) {
  const auto messages = image_messages(image, kind, name);
  if (!messages || messages->empty()) {
    add_fault(faults, messages ? name + ": it is empty" : messages.error().message);
    return {};
  }
  return messages->front();
}

std::string fault_of_inventory(std::span<const std::byte> image) {
  std::uint32_t head[2] = {};  // magic and the message's size
  if (image.size() < sizeof head) {
    return "it is cut short";
  }
  std::memcpy(head, image.data(), sizeof head);
  wire::InventoryEntry inventory;
  const auto message = image.subspan(sizeof head);
  if (head[0] != kInventoryMagic || head[1] > message.size() ||
      !parse_message(message.first(head[1]), inventory)) {
    return "it is not an inventory of CRIU, or it is damaged";
  }
  if (inventory.img_version() == 0 || inventory.img_version() > kNewestVersion) {
    return "its format is version " + std::to_string(inventory.img_version()) +
           ", which this kymo does not know";
  }
  return {};
}

class Look {
 public:
  Look(const ImageSet& images, const Contents* contents) : images_(images), contents_(contents) {}

  Verified verified() {
    if (contents_ != nullptr) found_.faults = contents_->faults;
    look_for_other_files(folder(), "");
    look_at_inventory();
    look_at_processes();
    look_at_pagemaps();
    look_at_parents();
    return std::move(found_);
  }

 private:
  void fault(const std::string& text) { add_fault(found_.faults, text); }

  // The bytes of an image. If it cannot be read, adds a fault, unless its contents have one, and returns nothing.
  std::vector<std::byte> read(const std::string& name) {
    if (contents_ != nullptr && contents_->damaged.contains(name)) return {};
    Result<std::vector<std::byte>> bytes = images_.read(name);
    if (!bytes) {
      fault(images_.has(name) ? bytes.error().message : name + ": it is missing");
      return {};
    }
    return *std::move(bytes);
  }

  // Empty if the images are in an archive.
  [[nodiscard]] std::filesystem::path folder() const { return images_.folder(); }

  // CRIU waits for ever if an image is a pipe, also in the parents of these images.
  void look_for_other_files(const std::filesystem::path& images, const std::string& within) {
    namespace fs = std::filesystem;
    constexpr std::size_t kMaxDepth = 64 * std::string_view("parent/").size();
    std::error_code error;
    for (fs::directory_iterator it(images, error), end; !error && it != end; it.increment(error)) {
      std::error_code gone;
      const fs::file_status status = it->status(gone);
      if (fs::exists(status) && fs::is_other(status) && !fs::is_socket(status)) {
        fault(within + it->path().filename().string() + ": it is a pipe or a device, and no file");
      }
    }
    if (fs::is_directory(images / "parent", error) && within.size() < kMaxDepth) {
      look_for_other_files(images / "parent", within + "parent/");
    }
  }

  void look_at_inventory() {
    const std::vector<std::byte> image = read("inventory.img");
    if (image.empty()) return;
    if (const std::string why = fault_of_inventory(image); !why.empty()) {
      fault("inventory.img: " + why);
    }
  }

  void look_at_processes() {
    const std::vector<std::byte> image = read("pstree.img");
    if (image.empty()) return;
    Result<std::vector<ImageProcess>> tree = parse_pstree(image, images_.where("pstree.img"));
    if (!tree) {
      fault(tree.error().message);
      return;
    }
    found_.tree = *std::move(tree);
    for (const ImageProcess& process : found_.tree) look_at_process(process);
  }

  void look_at_process(const ImageProcess& process) {
    const auto pid = static_cast<std::uint64_t>(process.pid);
    if (!look_at_core(pid)) return;
    for (const pid_t thread : process.threads) {
      if (thread != process.pid) look_at_core(static_cast<std::uint64_t>(thread));
    }
    const std::string memory = numbered("mm-", pid);
    const std::vector<std::byte> map = read(memory);
    if (!map.empty()) {
      if (const auto mappings = parse_mappings(map, memory); !mappings) {
        fault(mappings.error().message);
      }
    }
    if (const std::string pagemap = numbered("pagemap-", pid); !images_.has(pagemap)) {
      fault(pagemap + ": it is missing");
    }
  }

  // Checks a core image. Returns whether its process has memory, that is, had not ended.
  bool look_at_core(std::uint64_t id) {
    const std::string name = numbered("core-", id);
    const std::vector<std::byte> image = read(name);
    if (image.empty()) return false;
    const auto message = first_message(image, kCoreImage, name, found_.faults);
    wire::CoreEntry core;
    if (message.empty()) return false;
    if (!parse_message(message, core)) {
      fault(name + ": it is damaged");
      return false;
    }
    return !has_ended(core.tc().task_state());
  }

  void look_at_pagemaps() {
    for (const std::string& name : images_.names()) {
      if (name.starts_with("pagemap-")) look_at_pagemap(name);
    }
  }

  // CRIU reads for ever if an image of pages in a parent is cut short. A parent that must not be read is left out.
  void look_at_parents() {
    constexpr int kMost = 64;
    std::filesystem::path at = folder();
    std::set<std::string> wanted = std::exchange(in_parent_, {});
    std::string within;
    for (int depth = 0; depth < kMost && !at.empty() && !wanted.empty(); ++depth) {
      at /= "parent";
      within += "parent/";
      std::error_code error;
      if (!std::filesystem::is_directory(at, error)) return;  // look_for_parent() says so
      const Result<ImageSet> images = ImageSet::open(at.string());
      if (!images) {
        if (images.error().code == Code::not_found) {
          fault(within + "*: there are no images, and a later image refers to pages in them");
        }
        return;
      }
      Look parent(*images, nullptr);
      parent.look_at_pagemaps();
      for (const std::string& name : wanted) {
        if (!images->has(name))
          fault(within + name + ": it is missing, and a later image refers to pages in it");
      }
      for (const std::string& text : parent.found_.faults) fault(within + text);
      wanted = std::move(parent.in_parent_);
    }
  }

  void look_at_pagemap(const std::string& name) {
    const std::vector<std::byte> image = read(name);
    if (image.empty()) return;
    const auto id = parse_pages_id(image, name);
    const auto runs = parse_pagemap(image, name);
    if (!id || !runs) {
      fault(id ? runs.error().message : id.error().message);
      return;
    }
    PageCounts counts;
    for (const PageRun& run : *runs) counts.add(run.state, run.pages);
    found_.pages += counts.present;
    look_at_pages(name, numbered("pages-", *id), counts.present);
    if (counts.in_parent == 0) return;
    in_parent_.insert(name);
    look_for_parent(name);
  }

  void look_at_pages(const std::string& pagemap, const std::string& name, std::uint64_t pages) {
    if (pages == 0) return;
    if (!images_.has(name)) {
      fault(name + ": it is missing, and " + pagemap + " lists " + std::to_string(pages) +
            " pages in it");
    } else if (const auto bytes = bytes_of(name); bytes && *bytes != pages * kPageBytes) {
      fault(name + ": it has " + std::to_string(*bytes) + " bytes, and " + pagemap + " lists " +
            std::to_string(pages) + " pages in it, which are " +
            std::to_string(pages * kPageBytes));
    }
  }

  // The size of an image, decompressed. Nothing if it is not known.
  std::optional<std::uint64_t> bytes_of(const std::string& name) {
    if (!images_.packed(name)) return images_.size(name);
    if (contents_ == nullptr) return std::nullopt;
    const auto found = contents_->sizes.find(name);
    return found == contents_->sizes.end() ? std::nullopt : std::optional(found->second);
  }

  // Checks only in a folder: links in an archive are not followed.
  void look_for_parent(const std::string& pagemap) {
    const std::filesystem::path images = folder();
    std::error_code error;
    if (std::filesystem::is_directory(images, error) &&
        !std::filesystem::is_directory(images / "parent", error)) {
      fault("parent: it is missing, and " + pagemap + " refers to pages in it");
    }
  }

  const ImageSet& images_;
  const Contents* const contents_;  // null: they were not read
  Verified found_;
  std::set<std::string> in_parent_;  // the pagemaps that refer to pages in a parent
};

}  // namespace

Result<Verified> verify_images(const ImageSet& images, const KnownOfImages& known) {
  Verified found = Look(images, known.contents).verified();
  if (known.list == nullptr) {
    References references = check_references(images, found.tree);
    for (std::string& fault : references.faults) add_fault(found.faults, std::move(fault));
    found.unknown = std::move(references.unknown);
    return found;
  }
  Result<Compared> compared = compare_images(images.folder(), *known.list, known.sums);
  if (!compared) return compared.error();
  if (!compared->faults.empty()) found.faults = compared->faults;
  found.compared = *std::move(compared);
  return found;
}

}  // namespace kymo::criu
