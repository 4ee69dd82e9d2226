#include "checkpoint/criu/images/image_set.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "checkpoint/criu/images/image_codec.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/tar_file.h"
#include "checkpoint/criu/images/whole_tar.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInventory = "inventory.img";
constexpr std::array<std::string_view, 4> kWorkFiles{"stats-dump", "stats-restore", "dump.log",
                                                     "restore.log"};
// Limits for an archive: the bytes that are kept in memory, and the number of members.
constexpr std::size_t kMaxHeld = std::size_t{256} << 20;
constexpr std::size_t kMaxMembers = 1'000'000;
constexpr std::size_t kMaxLeftOut = 20;
// The folders in which archives of podman and of kymod have these files.
constexpr std::array<std::string_view, 4> kMemberFolders{"", "checkpoint", "images", "work"};

bool is_work_file(std::string_view name) {
  return std::find(kWorkFiles.begin(), kWorkFiles.end(), name) != kWorkFiles.end();
}

// Whether the content of a file is read. Other files, such as memory pages and the files of a
// tmpfs, may have any size.
bool is_read(std::string_view name) {
  return is_work_file(name) || name == kInventory || name == "pstree.img" || name == "files.img" ||
         name == "reg-files.img" || name == "inetsk.img" || name == "remap-fpath.img" ||
         name == "memfd.img" ||
         (name.ends_with(".img") &&
          (name.starts_with("pagemap-") || name.starts_with("mm-") || name.starts_with("core-") ||
           name.starts_with("ids-") || name.starts_with("fs-") || name.starts_with("fdinfo-")));
}

bool is_beside_images(std::string_view name) {
  return is_work_file(name) || name == kSharedMemoryArchive;
}

bool is_any(std::string_view) {
  return true;
}

// The name of the image in a file: the file's name without the suffix of a compressed image.
std::string image_name(std::string_view file_name) {
  std::string_view name = file_name;
  take_suffix(name);
  return std::string(name.ends_with(".img") ? name : file_name);
}

// Whether a folder has a file for which `wanted` is true.
bool holds(const fs::path& folder, bool (*wanted)(std::string_view)) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (wanted(image_name(it->path().filename().native()))) {
      return true;
    }
  }
  return false;
}

// What is wrong with the path of a member; empty if nothing is wrong.
std::string_view refused_name(const fs::path& member) {
  if (member.is_absolute() || *member.begin() == "..") {
    return "leads out of the archive";
  }
  return member.filename().native().size() > NAME_MAX ? "longer than a file's name can be" : "";
}

}  // namespace

Result<ImageSet> ImageSet::open(const std::string& path) {
  ImageSet set;
  set.path_ = path;
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) {
    return system_error("cannot read " + path, errno);
  }
  if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {  // a pipe could block for ever
    return Error{Code::invalid_argument,
                 "cannot read " + path + ": it is neither a folder nor a regular file"};
  }
  if (Result<void> opened = S_ISDIR(st.st_mode) ? set.open_folder() : set.open_archive(); !opened) {
    return opened.error();
  }
  if (set.image_files_ == 0 && !set.has_work_file()) {
    return Error{Code::not_found, "no CRIU images, statistics or logs in " + path +
                                      ": name CRIU's images or work directory, or an archive that "
                                      "podman exported"};
  }
  return set;
}

bool ImageSet::has_work_file() const {
  return std::any_of(kWorkFiles.begin(), kWorkFiles.end(),
                     [this](std::string_view name) { return has(std::string(name)); });
}

// Adds the files of the folder itself first, then those of the folders in which kymod (images,
// work) and podman (checkpoint, with the statistics above it) put the rest. A failed dump has no
// inventory.
Result<void> ImageSet::open_folder() {
  std::error_code error;
  if (fs::directory_iterator(path_, error); error) {
    return system_error("cannot read " + path_, error.value());
  }
  const fs::path folder(path_);
  add_folder(folder, is_any);
  for (const char* inner : {"images", "checkpoint", "../images"}) {
    const bool beside = *inner == '.';
    if (!has(kInventory) && (!beside || has_work_file()) && holds(folder / inner, is_read)) {
      add_folder(folder / inner, is_any);
    }
  }
  // A folder beside this one may belong to something else. Its statistics and logs are used only if
  // this folder has images. Its images are not used.
  for (const char* other : {"work", "../work", ".."}) {
    const bool beside = *other == '.';
    if (!has_work_file() && (!beside || image_files_ > 0)) {
      add_folder(folder / other, is_beside_images);
    }
  }
  if (folder_.empty())
    folder_ = fs::is_directory(folder / "images", error) ? folder / "images" : folder;
  return {};
}

void ImageSet::add_folder(const std::string& folder, bool (*wanted)(std::string_view)) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string file_name = it->path().filename();
    const std::string name = image_name(file_name);
    if (!wanted(name)) {
      continue;
    }
    const std::string path = it->path().lexically_normal();
    struct stat st {};
    const bool found = lstat(path.c_str(), &st) == 0;
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (found && S_ISLNK(st.st_mode) && name.ends_with(".img")) {
      leave_out(path, "a symbolic link, which is not followed");
    } else if (!found || !S_ISREG(st.st_mode)) {
      if (is_read(name)) {
        leave_out(path, "no regular file");
      }
    } else if (files_.try_emplace(name, File{path, {}, false, size}).second) {
      if (name.ends_with(".img")) folder_ = folder;
      count(name, size);
    }
  }
}

void ImageSet::count(std::string_view name, std::uint64_t bytes) {
  const bool image = name.ends_with(".img");
  if (image) ++image_files_;
  if (image || name == kSharedMemoryArchive) image_bytes_ += bytes;
}

void ImageSet::leave_out(const std::string& name, std::string_view why) {
  constexpr std::size_t kMaxLength = 200;
  if (left_out_.size() < kMaxLeftOut) {
    const std::string shown = name.size() > kMaxLength ? name.substr(0, kMaxLength) + ".." : name;
    left_out_.push_back(shown + ": " + std::string(why));
  } else if (left_out_.size() == kMaxLeftOut) {
    left_out_.emplace_back("and more");
  }
}

Result<void> ImageSet::open_archive() {
  const Result<FileDescriptor> fd = open_regular(path_);
  if (!fd) {
    return fd.error();
  }
  const Result<Archive> opened = open_archive_file(path_, fd->get(), ArchiveFormat::tar);
  if (!opened) {
    return opened.error();
  }
  from_archive_ = true;
  archive* const a = opened->get();
  std::size_t held = 0;
  archive_entry* entry = nullptr;
  for (std::size_t members = 0;; ++members) {
    const int next = archive_read_next_header(a, &entry);
    if (next == ARCHIVE_EOF) {
      return {};
    }
    if ((next != ARCHIVE_OK && next != ARCHIVE_WARN) || !add_member(a, entry, held)) {
      return Error{Code::data_loss, "cannot read " + path_ + " beyond its first " +
                                        std::to_string(members) +
                                        " files: " + said_by(a, "it is damaged or cut short")};
    }
    if (members == kMaxMembers || held > kMaxHeld) {
      return Error{
          Code::resource_exhausted,
          "cannot read " + path_ + ": it has more or larger files than a checkpoint can have"};
    }
  }
}

bool ImageSet::add_member(archive* a, archive_entry* entry, std::size_t& held) {
  const char* said = archive_entry_pathname(entry);
  if (said == nullptr || *said == '\0') {
    return true;
  }
  if (std::strlen(said) >= PATH_MAX) {  // parsing it would cost more than all the rest
    leave_out(std::string(said, 64) + "..", "longer than a path can be");
    return true;
  }
  const fs::path member = fs::path(said).lexically_normal();
  if (const std::string_view why = refused_name(member); !why.empty()) {
    leave_out(member, why);
    return true;
  }
  const std::string name = image_name(member.filename().native());
  const std::string folder = member.parent_path();
  if (name.empty() || name == "." || archive_entry_filetype(entry) == AE_IFDIR ||
      std::find(kMemberFolders.begin(), kMemberFolders.end(), folder) == kMemberFolders.end()) {
    return true;  // a folder, or the container's own files
  }
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
    leave_out(member, "no regular file");
    return true;
  }
  if (has(name)) {
    leave_out(member, "another of its name came first");
    return true;
  }
  const auto size = static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
  File file{member, {}, false, size};
  if (is_read(name) && size > kMaxImage) {
    leave_out(member, "too large to be such an image");
    count(name, size);
    return true;
  }
  if (is_read(name)) {
    file.bytes.resize(size);
    const la_ssize_t n = archive_read_data(a, file.bytes.data(), file.bytes.size());
    if (n < 0) {
      return false;
    }
    file.bytes.resize(static_cast<std::size_t>(n));
    file.kept = true;
  }
  held += sizeof(File) + 2 * name.size() + file.bytes.size();
  files_.emplace(name, std::move(file));
  count(name, size);
  return true;
}

std::vector<std::string> ImageSet::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : files_) {
    names.push_back(name);
  }
  return names;
}

std::uint64_t ImageSet::size(const std::string& name) const {
  const auto found = files_.find(name);
  return found == files_.end() ? 0 : found->second.size;
}

bool ImageSet::packed(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return false;
  }
  std::string_view path = found->second.path;
  return take_suffix(path) != Compression::none;
}

std::string ImageSet::stored(const std::string& name) const {
  const auto found = files_.find(name);
  return found == files_.end() ? std::string() : found->second.path;
}

std::string ImageSet::where(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return name;
  }
  return from_archive_ ? path_ + ":" + found->second.path : found->second.path;
}

Result<std::vector<std::byte>> ImageSet::read(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return Error{Code::not_found, "there is no " + name + " in " + path_};
  }
  if (!from_archive_) {
    return read_image(found->second.path);
  }
  if (!found->second.kept) {
    return Error{Code::out_of_range, "cannot read " + where(name) +
                                         ": it was not kept in memory when the archive was read"};
  }
  std::string_view file_name = found->second.path;
  const Compression compression = take_suffix(file_name);
  if (compression != Compression::none) {
    return decode_all(compression, found->second.bytes, kMaxImage, where(name));
  }
  return found->second.bytes;
}

}  // namespace kymo::criu
