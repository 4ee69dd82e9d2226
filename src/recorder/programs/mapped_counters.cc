#include "recorder/programs/mapped_counters.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/mappings.h"
#include "recorder/metrics/cells.h"
#include "recorder/metrics/counter_file_layout.h"
#include "recorder/metrics/metric_rules.h"

namespace kymo::probe {
namespace {

// Parses the text of an entry. It never reads beyond the end, even if the text is damaged.
class Text {
 public:
  explicit Text(std::string_view left) : left_(left) {}

  std::size_t number() {
    std::uint16_t n = 0;
    if (left_.size() < sizeof n) {
      ok_ = false;
      left_ = {};
      return 0;
    }
    std::memcpy(&n, left_.data(), sizeof n);
    left_.remove_prefix(sizeof n);
    return n;
  }
  std::string word() {
    const std::size_t length = number();
    ok_ = ok_ && length <= left_.size();
    std::string word(left_.substr(0, length));
    left_.remove_prefix(word.size());
    return word;
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

// Appends the metric of an entry, unless it was withdrawn. Returns false if the entry is damaged.
bool parse_entry(const char* at, std::size_t bytes, std::uint64_t cells,
                 std::vector<MappedMetric>* out) {
  const auto* entry = reinterpret_cast<const CounterEntry*>(at);
  const std::size_t sums_bytes = std::size_t{entry->cells} * sizeof(std::uint64_t);
  if (entry->cells == 0 || entry->cells > cells || entry->first_cell > cells - entry->cells ||
      sums_bytes > bytes - sizeof(CounterEntry)) {
    return false;
  }
  MappedMetric found;
  found.first_cell = entry->first_cell;
  found.base_sums.resize(entry->cells);
  std::memcpy(found.base_sums.data(), at + sizeof(CounterEntry), sums_bytes);
  Text text({at + sizeof(CounterEntry) + sums_bytes, bytes - sizeof(CounterEntry) - sums_bytes});
  found.metric.name = text.word();
  found.metric.help = text.word();
  found.metric.unit = static_cast<Unit>(entry->unit);
  for (std::size_t i = 0; i < entry->fields && text.ok(); ++i) {
    Field field{text.word(), {}};
    for (std::size_t values = text.number(); values > 0 && text.ok(); --values) {
      field.values.push_back(text.word());
    }
    found.metric.fields.push_back(std::move(field));
  }
  if (!text.ok() || entry->unit > static_cast<std::uint16_t>(Unit::microseconds) ||
      !check_metric(found.metric) || column_count(found.metric) != entry->cells) {
    return false;
  }
  if (entry->withdrawn.load(std::memory_order_acquire) == 0) {
    out->push_back(std::move(found));
  }
  return true;
}

const CounterFileHeader& header_of(const void* memory) {
  return *static_cast<const CounterFileHeader*>(memory);
}

bool begins_with(const std::string& path, std::string_view begin) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | kOpenForeign));
  std::string found(begin.size(), '\0');
  return fd.valid() &&
         ::pread(fd.get(), found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) &&
         found == begin;
}

}  // namespace

Result<std::unique_ptr<MappedCounters>> MappedCounters::open(const std::string& path, pid_t pid) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | kOpenForeign));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return system_error("cannot read the counter file " + path, errno);
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || bytes < sizeof(CounterFileHeader)) {
    return Error{
        Code::invalid_argument,
        path + " is not a counter file: it is shorter than its header, or not a regular file", 0};
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return system_error("cannot map the counter file " + path, errno);
  }
  std::unique_ptr<MappedCounters> counters(new MappedCounters(memory, bytes, path));
  if (Result<void> checked = counters->check(pid); !checked) {
    return checked.error();
  }
  return counters;
}

Result<void> MappedCounters::check(pid_t believed) const {
  const CounterFileHeader& header = header_of(memory_);
  const auto foreign = [this](const std::string& why) {
    return Error{Code::invalid_argument, path_ + " is not a counter file that can be read: " + why,
                 0};
  };
  if (header.magic != kCounterFileMagic) {
    return foreign("it does not begin with KYMOCNTR");
  }
  if (header.format_version == 0 || header.format_version > kCounterFileVersion) {
    return foreign("its format_version is " + std::to_string(header.format_version) +
                   ", this program reads " + std::to_string(kCounterFileVersion));
  }
  if (header.cells != kMaxCells || header.directory_offset != sizeof(CounterFileHeader) ||
      header.directory_capacity != kDirectoryBytes || header.blocks == 0 ||
      header.blocks > (SIZE_MAX >> 24U) ||
      header.blocks_offset != header.directory_offset + header.directory_capacity ||
      header.total_bytes !=
          header.blocks_offset + header.blocks * header.cells * sizeof(std::uint64_t)) {
    return foreign("its header contradicts itself");
  }
  if (header.total_bytes != bytes_) {
    return Error{Code::data_loss,
                 path_ + " is truncated: it has " + std::to_string(bytes_) + " bytes of " +
                     std::to_string(header.total_bytes),
                 0};
  }
  const bool runs = (believed != 0 && process_maps(believed, path_)) || process_maps(pid(), path_);
  if (!runs) {
    return Error{Code::failed_precondition,
                 "the program whose counters are in " + path_ + " is gone: process " +
                     std::to_string(header.pid) +
                     " has ended, is another program now, or may not be read by you (run as root)",
                 0};
  }
  return {};
}

MappedCounters::MappedCounters(const void* memory, std::size_t bytes, std::string path)
    : memory_(memory), bytes_(bytes), path_(std::move(path)) {}

MappedCounters::~MappedCounters() {
  ::munmap(const_cast<void*>(memory_), bytes_);
}

pid_t MappedCounters::pid() const {
  return static_cast<pid_t>(header_of(memory_).pid);
}

std::uint64_t MappedCounters::unlisted() const {
  return header_of(memory_).unlisted.load(std::memory_order_relaxed);
}

Result<std::vector<MappedMetric>> MappedCounters::metrics() const {
  const CounterFileHeader& header = header_of(memory_);
  // Acquire pairs with the release after an entry is complete.
  const std::uint64_t end =
      std::min(header.directory_bytes.load(std::memory_order_acquire), header.directory_capacity);
  const char* directory = static_cast<const char*>(memory_) + header.directory_offset;
  std::vector<MappedMetric> found;
  for (std::uint64_t at = 0; at < end;) {
    std::uint32_t bytes = 0;
    if (end - at >= sizeof(CounterEntry)) {
      std::memcpy(&bytes, directory + at, sizeof bytes);
    }
    if (bytes < sizeof(CounterEntry) || bytes > end - at || bytes % 8 != 0 ||
        !parse_entry(directory + at, bytes, header.cells, &found)) {
      return Error{Code::data_loss,
                   path_ + ": its directory is damaged at byte " + std::to_string(at), 0};
    }
    at += bytes;
  }
  return found;
}

void MappedCounters::sum(const MappedMetric& metric, std::uint64_t* out) const noexcept {
  const CounterFileHeader& header = header_of(memory_);
  const std::uint64_t blocks =
      std::min(header.blocks_used.load(std::memory_order_acquire), header.blocks);
  const auto* cells = reinterpret_cast<const detail::Cell*>(static_cast<const char*>(memory_) +
                                                            header.blocks_offset) +
                      metric.first_cell;
  for (std::size_t i = 0; i < metric.base_sums.size(); ++i) {
    out[i] = 0 - metric.base_sums[i];
  }
  for (std::uint64_t block = 0; block < blocks; ++block, cells += kMaxCells) {
    for (std::size_t i = 0; i < metric.base_sums.size(); ++i) {
      out[i] += cells[i].load(std::memory_order_relaxed);
    }
  }
}

std::optional<std::string> find_mapped_file(pid_t pid, std::string_view begin) {
  std::optional<std::string> found;
  const std::string root = "/proc/" + std::to_string(pid) + "/root";
  any_shared_mapping(pid, [&](const SharedMapping& mapping) {
    for (const std::string& path : {mapping.path, root + mapping.path}) {
      struct stat status {};
      if (!found && ::stat(path.c_str(), &status) == 0 && status.st_ino == mapping.inode &&
          begins_with(path, begin)) {
        found = path;
      }
    }
    return found.has_value();
  });
  return found;
}

std::optional<std::string> find_counter_file(pid_t pid) {
  return find_mapped_file(pid, {kCounterFileMagic.data(), kCounterFileMagic.size()});
}

}  // namespace kymo::probe
