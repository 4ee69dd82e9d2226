#include "checkpoint/criu/images/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <map>
#include <optional>

#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"

namespace kymo::criu {
namespace {

using Message = std::span<const std::byte>;

// Sixteen times the kernel's default limit for one process (vm.max_map_count).
constexpr std::size_t kMaxMappings = std::size_t{1} << 20;

// The kinds of a mapping (its status, criu/include/image.h), and at the end the flags of a pagemap
// (criu/include/pagemap.h).
constexpr std::uint32_t kStack = 1U << 1U;
constexpr std::uint32_t kVsyscall = 1U << 2U;
constexpr std::uint32_t kVdso = 1U << 3U;
constexpr std::uint32_t kHeap = 1U << 5U;
constexpr std::uint32_t kFilePrivate = 1U << 6U;
constexpr std::uint32_t kFileShared = 1U << 7U;
constexpr std::uint32_t kSysVShared = 1U << 10U;
constexpr std::uint32_t kVvar = 1U << 12U;
constexpr std::uint32_t kInParent = 1U << 0U;
constexpr std::uint32_t kLazy = 1U << 1U;
constexpr std::uint32_t kPresent = 1U << 2U;

constexpr std::string_view kFileName = "[file ";

Error not_of_this_kind(std::string_view name, std::size_t offset, const char* what) {
  return Error{Code::invalid_argument, "cannot read " + std::string(name) +
                                           ": the message at byte " + std::to_string(offset) +
                                           " is not " + what};
}

std::string name_of(const wire::VmaEntry& vma) {
  const std::uint32_t status = vma.status();
  if ((status & kHeap) != 0) return "[heap]";
  if ((status & kStack) != 0 || (vma.flags() & MAP_GROWSDOWN) != 0) return "[stack]";
  if ((status & kVdso) != 0) return "[vdso]";
  if ((status & kVvar) != 0) return "[vvar]";
  if ((status & kVsyscall) != 0) return "[vsyscall]";
  const std::string id = std::to_string(vma.shmid());
  if ((status & (kFilePrivate | kFileShared)) != 0) return std::string(kFileName) + id + "]";
  if ((status & (kAnonymousShared | kSysVShared)) != 0) return "[shared " + id + "]";
  return "[anonymous]";
}

PageState state_of(const wire::PagemapEntry& entry) {
  if (!entry.has_flags()) {
    return entry.in_parent() ? PageState::in_parent : PageState::present;
  }
  const std::uint32_t flags = entry.flags();
  if ((flags & kInParent) != 0) return PageState::in_parent;
  if ((flags & kLazy) != 0) return PageState::lazy;
  return (flags & kPresent) != 0 ? PageState::present : PageState::hole;
}

void add_file(std::span<const std::byte> message, bool wrapped,
              std::map<std::string, std::string>& files) {
  wire::RegFileEntry plain;
  wire::FileEntry entry;
  const wire::RegFileEntry* file = nullptr;
  if (wrapped) {
    if (parse_message(message, entry) && entry.has_reg()) file = &entry.reg();
  } else if (parse_message(message, plain)) {
    file = &plain;
  }
  if (file != nullptr) {
    files.try_emplace(std::string(kFileName) + std::to_string(file->id()) + "]", file->name());
  }
}

// The paths of the mapped files, by the names that parse_mappings() gives them.
std::map<std::string, std::string> file_names(const ImageSet& images) {
  std::map<std::string, std::string> files;
  const std::pair<const char*, const ImageKind*> sources[] = {
      {"files.img", &kFilesImage}, {"reg-files.img", &kRegularFilesImage}};
  for (const auto& [name, kind] : sources) {
    const auto bytes = images.read(name);
    const auto messages =
        bytes ? image_messages(*bytes, *kind, name) : Result<std::vector<Message>>(bytes.error());
    if (!messages) {
      continue;  // old versions of CRIU write one of the two, newer ones the other
    }
    for (const Message message : *messages) {
      add_file(message, kind == &kFilesImage, files);
    }
  }
  return files;
}

std::string command_of(const ImageSet& images, const std::string& pid) {
  const std::string name = "core-" + pid + ".img";
  const auto bytes = images.read(name);
  if (!bytes) {
    return {};
  }
  const auto messages = image_messages(*bytes, kCoreImage, name);
  wire::CoreEntry core;
  if (!messages || messages->empty() || !parse_message(messages->front(), core)) {
    return {};
  }
  return core.tc().comm();
}

// Counts the pages of the runs for the mappings. Pages in no mapping count for "[unmapped]".
void count_pages_of_mappings(const std::vector<PageRun>& runs,
                             std::vector<MappingPages>& mappings) {
  MappingPages outside;
  outside.name = "[unmapped]";
  std::size_t at = 0;
  for (const PageRun& run : runs) {
    std::uint64_t address = run.address;
    std::uint64_t left = run.pages;
    while (left > 0) {
      while (at < mappings.size() && mappings[at].end <= address) {
        ++at;
      }
      const bool inside = at < mappings.size() && mappings[at].start <= address;
      const std::uint64_t border = inside                 ? mappings[at].end
                                   : at < mappings.size() ? mappings[at].start
                                                          : UINT64_MAX;
      const std::uint64_t here =
          std::min(left, std::max<std::uint64_t>(1, (border - address) / kPageBytes));
      (inside ? mappings[at] : outside).pages.add(run.state, here);
      address += here * kPageBytes;
      left -= here;
    }
  }
  if (outside.pages.present + outside.pages.in_parent > 0) {
    mappings.push_back(outside);
  }
}

PageCounts sum_of(const std::vector<PageRun>& runs) {
  PageCounts sum;
  for (const PageRun& run : runs) {
    sum.add(run.state, run.pages);
  }
  return sum;
}

template <class T>
void largest_first(std::vector<T>& all) {
  std::stable_sort(all.begin(), all.end(), [](const T& a, const T& b) {
    return a.pages.present + a.pages.in_parent > b.pages.present + b.pages.in_parent;
  });
}

// The number in PREFIX<number>.img. Returns nothing if the name is different, or if the number is
// larger than `most`.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix,
                                       std::uint64_t most) {
  constexpr std::string_view kEnding = ".img";
  if (!name.starts_with(prefix) || !name.ends_with(kEnding)) {
    return {};
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(std::min(kEnding.size(), name.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.begin(), name.end(), number);
  return error == std::errc() && end == name.end() && number <= most ? std::optional(number)
                                                                     : std::nullopt;
}

Result<ProcessPages> process_pages(const ImageSet& images, std::uint64_t pid,
                                   const std::vector<PageRun>& runs,
                                   const std::map<std::string, std::string>& files) {
  ProcessPages process;
  process.pid = static_cast<pid_t>(pid);
  process.command = command_of(images, std::to_string(pid));
  process.pages = sum_of(runs);
  const std::string mm = "mm-" + std::to_string(pid) + ".img";
  const auto bytes = images.read(mm);
  if (!bytes) {
    return bytes.error();
  }
  auto mappings = parse_mappings(*bytes, images.where(mm));
  if (!mappings) {
    return mappings.error();
  }
  process.mappings = *std::move(mappings);
  count_pages_of_mappings(runs, process.mappings);
  std::erase_if(process.mappings, [](const MappingPages& mapping) {
    return mapping.pages.present + mapping.pages.in_parent == 0;
  });
  for (MappingPages& mapping : process.mappings) {
    if (const auto file = files.find(mapping.name); file != files.end()) {
      mapping.name = file->second;
    }
  }
  largest_first(process.mappings);
  return process;
}

}  // namespace

void PageCounts::add(PageState state, std::uint64_t pages) {
  switch (state) {
    case PageState::lazy:
      lazy += pages;
      present += pages;
      break;
    case PageState::present:
      present += pages;
      break;
    case PageState::in_parent:
      in_parent += pages;
      break;
    case PageState::hole:
      break;
  }
}

Result<std::uint32_t> parse_pages_id(std::span<const std::byte> image, std::string_view name) {
  const auto messages = image_messages(image, kPagemapImage, name);
  if (!messages) {
    return messages.error();
  }
  wire::PagemapHead head;
  if (messages->empty() || !parse_message(messages->front(), head)) {
    return not_of_this_kind(name, 2 * sizeof(std::uint32_t), "a pagemap's head");
  }
  return head.pages_id();
}

Result<std::vector<PageRun>> parse_pagemap(std::span<const std::byte> image,
                                           std::string_view name) {
  const auto messages = image_messages(image, kPagemapImage, name);
  if (!messages) {
    return messages.error();
  }
  std::vector<PageRun> runs;
  std::uint64_t free_from = 0;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const Message message = (*messages)[i];
    const auto offset = static_cast<std::size_t>(message.data() - image.data());
    if (i == 0) {
      wire::PagemapHead head;
      if (!parse_message(message, head)) {
        return not_of_this_kind(name, offset, "a pagemap's head");
      }
      continue;
    }
    wire::PagemapEntry entry;
    if (!parse_message(message, entry)) {
      return not_of_this_kind(name, offset, "a run of pages");
    }
    const std::uint64_t pages = entry.has_nr_pages() ? entry.nr_pages() : entry.compat_nr_pages();
    if (entry.vaddr() < free_from || pages > (UINT64_MAX - entry.vaddr()) / kPageBytes) {
      return Error{Code::data_loss, "cannot read " + std::string(name) +
                                        ": the run of pages at byte " + std::to_string(offset) +
                                        " overlaps the one before it, or goes beyond the end of "
                                        "the address space"};
    }
    free_from = entry.vaddr() + pages * kPageBytes;
    runs.push_back({entry.vaddr(), pages, state_of(entry)});
  }
  return runs;
}

Result<std::vector<MappingPages>> parse_mappings(std::span<const std::byte> image,
                                                 std::string_view name) {
  const auto messages = image_messages(image, kMmImage, name);
  if (!messages) {
    return messages.error();
  }
  if (messages->size() == 1 && has_more_fields(messages->front(), kMaxMappings)) {
    return Error{Code::out_of_range, "cannot read " + std::string(name) + ": more than " +
                                         std::to_string(kMaxMappings) +
                                         " mappings are more than a process has"};
  }
  wire::MmEntry mm;
  if (messages->size() != 1 || !parse_message(messages->front(), mm)) {
    return not_of_this_kind(name, messages->empty() ? image.size() : 2 * sizeof(std::uint32_t),
                            "a process's memory map");
  }
  std::vector<MappingPages> mappings;
  for (const wire::VmaEntry& vma : mm.vmas()) {
    if (vma.start() < vma.end()) {
      mappings.push_back({vma.start(), vma.end(), name_of(vma), {}});
    }
  }
  std::sort(mappings.begin(), mappings.end(),
            [](const MappingPages& a, const MappingPages& b) { return a.start < b.start; });
  return mappings;
}

CheckpointPages read_pages(const ImageSet& images) {
  CheckpointPages all;
  const std::map<std::string, std::string> files = file_names(images);
  for (const std::string& name : images.names()) {
    const auto pid = number_in(name, "pagemap-", INT_MAX);
    const auto shared = number_in(name, "pagemap-shmem-", UINT64_MAX);
    if (!pid && !shared) {
      continue;
    }
    const auto bytes = images.read(name);
    const auto runs = bytes ? parse_pagemap(*bytes, images.where(name))
                            : Result<std::vector<PageRun>>(bytes.error());
    if (!runs) {
      all.notes.push_back(runs.error().message);
      continue;
    }
    const PageCounts sum = sum_of(*runs);
    all.pages.present += sum.present;
    all.pages.in_parent += sum.in_parent;
    all.pages.lazy += sum.lazy;
    if (shared) {
      all.shared.push_back({*shared, sum});
      continue;
    }
    Result<ProcessPages> process = process_pages(images, *pid, *runs, files);
    if (process) {
      all.processes.push_back(*std::move(process));
      continue;
    }
    all.notes.push_back(process.error().message);
    all.processes.push_back(
        {static_cast<pid_t>(*pid), command_of(images, std::to_string(*pid)), sum, {}});
  }
  largest_first(all.processes);
  largest_first(all.shared);
  return all;
}

}  // namespace kymo::criu
