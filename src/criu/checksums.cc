#include "criu/checksums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "criu/faults.h"

namespace kymo::criu {
namespace {

namespace fs = std::filesystem;

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

// The sorted names of all files except the checksums themselves, also in subfolders, where the
// images of pre-dumps are. Follows no link.
Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder);
    std::error_code unknown;
    if (name != kChecksumsFile && entry->symlink_status(unknown).type() == fs::file_type::regular) {
      names.push_back(name);
    }
  }
  if (error) {
    return system_error("list " + folder, error.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The name and the hash in a line "HASH  NAME". Returns nothing if it is not such a line.
std::optional<std::pair<std::string, std::string>> listed_in(std::string_view line) {
  if (line.size() <= kHashDigits + kGap.size() || line.substr(kHashDigits, kGap.size()) != kGap) {
    return std::nullopt;
  }
  const std::string_view hash = line.substr(0, kHashDigits);
  const std::string_view name = line.substr(kHashDigits + kGap.size());
  const bool leads_out =
      name.front() == '/' || ("/" + std::string(name) + "/").find("/../") != std::string::npos;
  if (leads_out || hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(std::string(name), std::string(hash));
}

// The hashes in a list, by name.
std::map<std::string, std::string> listed(std::string_view list, std::vector<std::string>& faults) {
  std::map<std::string, std::string> hashes;
  for (std::size_t number = 1; !list.empty(); ++number) {
    const std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(line.size() + 1, list.size()));
    const auto entry = listed_in(line);
    if (!entry || !hashes.insert(*entry).second) {
      std::string fault(kChecksumsFile);  // no chain of +: GCC 12 warns of it without a reason
      fault += ": line ";
      fault += std::to_string(number);
      add_fault(faults, fault += " is damaged");
    }
  }
  return hashes;
}

}  // namespace

Result<void> write_checksums(const std::string& images_dir) {
  const Result<std::vector<std::string>> names = files_in(images_dir);
  if (!names) {
    return names.error();
  }
  std::vector<char> buffer(kReadAtOnce);
  std::string list;
  for (const std::string& name : *names) {
    const Result<Hashed> hashed = hash_of(images_dir, name, buffer);
    if (!hashed) {
      return hashed.error();
    }
    list += hashed->hash + std::string(kGap) + name + '\n';
  }
  return replace_file(images_dir + "/" + kChecksumsFile, list);
}

Result<Compared> compare_checksums(const std::string& images_dir) {
  const Result<std::string> list = read_beneath(images_dir, kChecksumsFile, kMaxListBytes);
  if (!list) {
    return list.error();
  }
  const Result<std::vector<std::string>> names = files_in(images_dir);
  if (!names) {
    return names.error();
  }
  Compared compared;
  std::map<std::string, std::string> left = listed(*list, compared.faults);
  std::vector<char> buffer(kReadAtOnce);
  for (const std::string& name : *names) {
    const auto entry = left.find(name);
    if (entry == left.end()) {
      add_fault(compared.faults, name + ": has no checksum: it was added since the dump");
      continue;
    }
    const Result<Hashed> hashed = hash_of(images_dir, name, buffer);
    if (!hashed) {
      return hashed.error();
    }
    if (hashed->hash != entry->second) {
      add_fault(compared.faults, name + ": has changed since the dump: its checksum is different");
    }
    ++compared.files;
    compared.bytes += hashed->bytes;
    left.erase(entry);
  }
  for (const auto& [name, hash] : left) {
    add_fault(compared.faults, name + ": is missing");
  }
  return compared;
}

}  // namespace kymo::criu
