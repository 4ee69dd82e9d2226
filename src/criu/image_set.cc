#include "criu/image_set.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "criu/images.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInventory = "inventory.img";
constexpr std::array kStatistics{"stats-dump", "stats-restore"};
// Of an archive: what is kept at once, and how many members one can have.
constexpr std::size_t kMostKept = std::size_t{256} << 20;
constexpr std::size_t kMostMembers = 1'000'000;
constexpr std::size_t kMostLeftOut = 20;
constexpr std::size_t kReadBytes = std::size_t{256} << 10;
// Where podman's archives, and ours, have them.
constexpr std::array<std::string_view, 4> kMemberFolders{"", "checkpoint", "images", "work"};

bool ends_with(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() && name.substr(name.size() - ending.size()) == ending;
}

// Whether a file's content is looked at; memory pages are not.
bool is_read(std::string_view name) {
  const auto begins = [name](std::string_view prefix) {
    return name.substr(0, prefix.size()) == prefix;
  };
  return begins("stats-") || ends_with(name, ".log") ||
         (ends_with(name, ".img") && !begins("pages-") && !begins("ghost-file"));
}

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, CloseArchive>;

Error damaged(const std::string& path, archive* a, std::size_t members) {
  const char* said = archive_error_string(a);
  return Error{Code::data_loss,
               "cannot read " + path + " beyond its first " + std::to_string(members) +
                   " files: " + (said != nullptr ? said : "it is damaged or cut short")};
}

Result<Archive> open_tar(const std::string& path) {
  Archive a(archive_read_new());
  if (a == nullptr) {
    return Error{Code::resource_exhausted, "cannot read " + path + ": out of memory"};
  }
  archive_read_support_filter_gzip(a.get());
  archive_read_support_filter_zstd(a.get());
  archive_read_support_filter_xz(a.get());
  archive_read_support_filter_bzip2(a.get());
  archive_read_support_format_tar(a.get());
  if (archive_read_open_filename(a.get(), path.c_str(), kReadBytes) != ARCHIVE_OK) {
    const char* said = archive_error_string(a.get());
    return Error{Code::invalid_argument, "cannot read " + path +
                                             ": it is neither a folder nor a tar archive (" +
                                             (said != nullptr ? said : "unknown format") + ")"};
  }
  return a;
}

Result<std::vector<std::byte>> member_bytes(archive* a, const std::string& path,
                                            std::size_t members) {
  std::vector<std::byte> bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + kReadBytes);
    const la_ssize_t n = archive_read_data(a, bytes.data() + had, kReadBytes);
    bytes.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n < 0) {
      return damaged(path, a, members);
    }
    if (n == 0) {
      return bytes;
    }
    if (bytes.size() > kLargestImage) {
      return Error{Code::out_of_range, "cannot read " + path + ": a file in it is larger than " +
                                           "any CRIU image of its kind"};
    }
  }
}

}  // namespace

Result<ImageSet> ImageSet::open(const std::string& path) {
  ImageSet set;
  set.path_ = path;
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) {
    return system_error("cannot read " + path, errno);
  }
  if (Result<void> opened = S_ISDIR(st.st_mode) ? set.open_folder() : set.open_archive(); !opened) {
    return opened.error();
  }
  if (set.image_files_ == 0 && std::none_of(kStatistics.begin(), kStatistics.end(),
                                            [&](const char* name) { return set.has(name); })) {
    return Error{Code::not_found, "no CRIU images and no statistics in " + path +
                                      ": name CRIU's images or work directory, or an archive that "
                                      "podman exported"};
  }
  return set;
}

// What the folder itself holds comes first; then what stands where kymod (images, work) and podman
// (checkpoint, and the statistics above it) put the rest.
Result<void> ImageSet::open_folder() {
  std::error_code error;
  if (fs::directory_iterator(path_, error); error) {
    return system_error("cannot read " + path_, error.value());
  }
  add_folder(path_);
  if (!has(kInventory)) {
    for (const char* inner : {"images", "checkpoint", "../images"}) {
      if (!has(kInventory) && fs::exists(fs::path(path_) / inner / kInventory, error)) {
        add_folder(fs::path(path_) / inner);
      }
    }
  }
  for (const char* other : {"work", "../work", ".."}) {
    const fs::path folder = fs::path(path_) / other;
    const bool wanted = std::any_of(kStatistics.begin(), kStatistics.end(), [&](const char* name) {
      return fs::exists(folder / name, error);
    });
    if (wanted && !has(kStatistics[0]) && !has(kStatistics[1])) {
      add_folder(folder);
    }
  }
  return {};
}

void ImageSet::add_folder(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    struct stat st {};
    if (stat(it->path().c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
        files_.try_emplace(name, File{it->path().lexically_normal(), {}, false}).second) {
      count(name, static_cast<std::uint64_t>(st.st_size));
    }
  }
}

void ImageSet::count(std::string_view name, std::uint64_t bytes) {
  if (ends_with(name, ".img")) {
    ++image_files_;
    image_bytes_ += bytes;
  }
}

Result<void> ImageSet::open_archive() {
  Result<Archive> opened = open_tar(path_);
  if (!opened) {
    return opened.error();
  }
  archive* const a = opened->get();
  std::size_t kept = 0;
  archive_entry* entry = nullptr;
  for (std::size_t members = 0;; ++members) {
    const int next = archive_read_next_header(a, &entry);
    if (next == ARCHIVE_EOF) {
      return {};
    }
    if (next < ARCHIVE_WARN) {
      return damaged(path_, a, members);
    }
    if (members == kMostMembers || kept > kMostKept) {
      return Error{Code::resource_exhausted,
                   "cannot read " + path_ + ": it holds more than any checkpoint has"};
    }
    const char* said = archive_entry_pathname(entry);
    const fs::path member = fs::path(said != nullptr ? said : "").lexically_normal();
    const std::string name = member.filename();
    const std::string folder = member.parent_path() == "." ? "" : member.parent_path().string();
    if (name.empty() ||
        std::find(kMemberFolders.begin(), kMemberFolders.end(), folder) == kMemberFolders.end()) {
      continue;  // the container's own files
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      if (archive_entry_filetype(entry) != AE_IFDIR && left_out_.size() < kMostLeftOut) {
        left_out_.push_back(member.string() + ": no regular file");
      }
      continue;
    }
    File file{member, {}, false};
    const auto size =
        static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
    if (is_read(name)) {
      Result<std::vector<std::byte>> bytes = member_bytes(a, path_, members);
      if (!bytes) {
        return bytes.error();
      }
      kept += bytes->size();
      file.bytes = *std::move(bytes);
      file.kept = true;
    } else if (archive_read_data_skip(a) < ARCHIVE_WARN) {
      return damaged(path_, a, members);
    }
    if (files_.try_emplace(name, std::move(file)).second) {
      count(name, size);
    }
  }
}

std::vector<std::string> ImageSet::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : files_) {
    names.push_back(name);
  }
  return names;
}

std::string ImageSet::where(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return name;
  }
  return found->second.kept ? path_ + ":" + found->second.path : found->second.path;
}

Result<std::vector<std::byte>> ImageSet::read(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return Error{Code::not_found, "there is no " + name + " in " + path_};
  }
  return found->second.kept ? found->second.bytes : read_image(found->second.path);
}

}  // namespace kymo::criu
