#include "checkpoint/criu/images/image_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_codec.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChecksumsFile = "checksums.xxh128";
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
constexpr std::size_t kMaxListBytes = std::size_t{16} << 20;
constexpr std::size_t kHashDigits = 32;
constexpr std::string_view kGap = "  ";

struct Hashed {
  std::string hash;
  std::uint64_t bytes = 0;
};

std::string text_of(XXH128_hash_t hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  XXH128_canonical_t canonical{};
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

// Hashes a regular file in a folder. Follows no link, and does not wait for the other end of a
// pipe.
Result<Hashed> hash_of(const std::string& folder, const std::string& name,
                       std::vector<char>& buffer) {
  const std::string path = folder + "/" + name;
  const Result<FileDescriptor> fd = open_beneath(folder, name, O_RDONLY);
  if (!fd) {
    return fd.error();
  }
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) {
    return system_error("read " + path, ENOMEM);
  }
  Hashed hashed;
  for (;;) {
    const ssize_t got = ::read(fd->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return system_error("read " + path, errno);
    }
    if (got == 0) {
      break;
    }
    XXH3_128bits_update(state.get(), buffer.data(), static_cast<std::size_t>(got));
    hashed.bytes += static_cast<std::uint64_t>(got);
  }
  hashed.hash = text_of(XXH3_128bits_digest(state.get()));
  return hashed;
}

// The sorted names of all images, also in subfolders.
Result<std::vector<std::string>> images_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (is_image_file(entry->path().filename().native()) &&
        entry->symlink_status(unknown).type() == fs::file_type::regular) {
      names.push_back(entry->path().lexically_relative(folder));
    }
  }
  if (error) {
    return system_error("list " + folder, error.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool holds_pages(const std::string& name) {
  return fs::path(name).filename().native().starts_with("pages-");
}

bool leads_out(const std::string& name) {
  return name.starts_with('/') || ("/" + name + "/").find("/../") != std::string::npos;
}

// The name and the hash in a line "HASH  NAME". Returns nothing if it is not such a line.
std::optional<ListedImage> listed_in(std::string_view line) {
  if (line.size() <= kHashDigits + kGap.size() || line.substr(kHashDigits, kGap.size()) != kGap) {
    return std::nullopt;
  }
  const std::string_view hash = line.substr(0, kHashDigits);
  if (hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return ListedImage{std::string(line.substr(kHashDigits + kGap.size())), std::nullopt,
                     std::string(hash)};
}

// Compares one folder with one list.
class Comparison {
 public:
  Comparison(const std::string& folder, Sums sums) : folder_(folder), sums_(sums) {
    compared_.pages = true;
  }

  Result<Compared> with(const ImageList& list) {
    std::set<std::string> names;
    for (const ListedImage& image : list) {
      if (!names.insert(image.name).second || leads_out(image.name)) {
        fault(image.name + ": the list of images has it twice, or it leads out of their folder");
      } else if (Result<void> ok = compare(image); !ok) {
        return ok.error();
      }
    }
    compared_.images = list.size();
    const Result<std::vector<std::string>> there = images_in(folder_);
    if (!there) {
      return there.error();
    }
    for (const std::string& name : *there) {
      // CRIU does not look into other folders.
      const bool is_looked_at = folders_.contains(fs::path(name).parent_path());
      if (is_looked_at && !names.contains(name)) fault(name + ": it was added since the dump");
    }
    return std::move(compared_);
  }

 private:
  void fault(const std::string& text) { add_fault(compared_.faults, text); }

  Result<void> compare(const ListedImage& image) {
    const std::string path = folder_ + "/" + image.name;
    folders_.insert(fs::path(image.name).parent_path());
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) return system_error("read " + path, errno);
      fault(image.name + ": it is missing");
      return {};
    }
    if (!S_ISREG(info.st_mode)) {
      fault(image.name + ": it is a link, a pipe or a device, and no file");
      return {};
    }
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    if (image.bytes && bytes != *image.bytes) {
      fault(image.name + ": it has " + std::to_string(bytes) + " bytes, and had " +
            std::to_string(*image.bytes) + " at the dump");
      return {};
    }
    return compare_content(image);
  }

  Result<void> compare_content(const ListedImage& image) {
    if (image.xxh128.empty() || (sums_ == Sums::small && holds_pages(image.name))) {
      compared_.pages &= !holds_pages(image.name);
      return {};
    }
    const Result<Hashed> hashed = hash_of(folder_, image.name, buffer_);
    if (!hashed) {
      return hashed.error();
    }
    if (hashed->hash != image.xxh128) {
      fault(image.name + ": it has changed since the dump: its checksum is different");
    }
    ++compared_.files;
    compared_.bytes += hashed->bytes;
    return {};
  }

  const std::string& folder_;
  const Sums sums_;
  std::set<std::string> folders_{""};  // that have images
  std::vector<char> buffer_ = std::vector<char>(kReadAtOnce);
  Compared compared_;
};

}  // namespace

bool is_image_file(std::string_view file_name) {
  take_suffix(file_name);
  return file_name.ends_with(".img");
}

Result<ImageList> list_images(const std::string& folder, Sums sums) {
  const Result<std::vector<std::string>> names = images_in(folder);
  if (!names) {
    return names.error();
  }
  std::vector<char> buffer(kReadAtOnce);
  ImageList list;
  for (const std::string& name : *names) {
    ListedImage image{name};
    if (sums == Sums::all || !holds_pages(name)) {
      Result<Hashed> hashed = hash_of(folder, name, buffer);
      if (!hashed) {
        return hashed.error();
      }
      image.bytes = hashed->bytes;
      image.xxh128 = std::move(hashed->hash);
    } else {
      std::error_code error;
      image.bytes = fs::file_size(folder + "/" + name, error);
      if (error) {
        return system_error("read " + folder + "/" + name, error.value());
      }
    }
    list.push_back(std::move(image));
  }
  return list;
}

Result<ImageList> read_checksums_file(const std::string& folder, std::vector<std::string>& faults) {
  const Result<std::string> text = read_beneath(folder, kChecksumsFile, kMaxListBytes);
  if (!text) {
    return text.error();
  }
  ImageList list;
  std::string_view left = *text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    if (std::optional<ListedImage> image = listed_in(line)) {
      list.push_back(*std::move(image));
    } else {
      std::string fault(kChecksumsFile);  // no chain of +: GCC 12 warns of it without a reason
      fault += ": line ";
      fault += std::to_string(number);
      add_fault(faults, fault += " is damaged");
    }
  }
  return list;
}

Result<Compared> compare_images(const std::string& folder, const ImageList& list, Sums sums) {
  return Comparison(folder, sums).with(list);
}

}  // namespace kymo::criu
