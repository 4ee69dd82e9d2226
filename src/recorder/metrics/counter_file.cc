#include "kymo/counter_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <string_view>

#include "base/file.h"
#include "base/mappings.h"
#include "base/quiet_thread.h"
#include "recorder/metrics/cells.h"
#include "recorder/metrics/counter_file_layout.h"
#include "recorder/metrics/counter_list.h"

namespace kymo {
namespace {

constexpr std::size_t kMaxThreads = 4096;

struct Listed {
  Metric metric;
  std::uint32_t first_cell = 0;
  std::vector<std::uint64_t> base_sums;
  CounterEntry* entry = nullptr;  // null: not in the file
};

struct Publication {
  std::mutex mutex;
  std::vector<Listed> counters;       // guarded by mutex
  CounterFileHeader* file = nullptr;  // guarded by mutex; null: not published
};

// Never destroyed: registries may outlive static destruction.
Publication& publication() {
  static auto& only = *new Publication;
  return only;
}

void append_number(std::string& out, std::size_t number) {
  const auto n = static_cast<std::uint16_t>(number);
  out.append(reinterpret_cast<const char*>(&n), sizeof n);
}

void append_text(std::string& out, std::string_view text) {
  text = text.substr(0, std::numeric_limits<std::uint16_t>::max());
  append_number(out, text.size());
  out += text;
}

std::string texts_of(const Metric& metric) {
  std::string out;
  append_text(out, metric.name);
  append_text(out, metric.help);
  for (const Field& field : metric.fields) {
    append_text(out, field.name);
    append_number(out, field.values.size());
    for (const std::string& value : field.values) {
      append_text(out, value);
    }
  }
  return out;
}

// Appends the counter to the file's directory. Precondition: the mutex is held.
void write_entry(CounterFileHeader& file, Listed& counter) {
  const std::string texts = texts_of(counter.metric);
  const std::size_t sums_bytes = counter.base_sums.size() * sizeof(std::uint64_t);
  const std::size_t bytes = (sizeof(CounterEntry) + sums_bytes + texts.size() + 7) / 8 * 8;
  const std::uint64_t at = file.directory_bytes.load(std::memory_order_relaxed);
  if (bytes > file.directory_capacity - at) {
    file.unlisted.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  char* memory = reinterpret_cast<char*>(&file) + file.directory_offset + at;
  auto* entry = new (memory) CounterEntry;
  entry->bytes = static_cast<std::uint32_t>(bytes);
  entry->first_cell = counter.first_cell;
  entry->cells = static_cast<std::uint32_t>(counter.base_sums.size());
  entry->unit = static_cast<std::uint16_t>(counter.metric.unit);
  entry->fields = static_cast<std::uint16_t>(counter.metric.fields.size());
  std::memcpy(memory + sizeof(CounterEntry), counter.base_sums.data(), sums_bytes);
  // NOLINTNEXTLINE(bugprone-not-null-terminated-result): the entry says how long it is
  std::memcpy(memory + sizeof(CounterEntry) + sums_bytes, texts.data(), texts.size());
  counter.entry = entry;
  // Release: a reader that sees the new end sees the whole entry.
  file.directory_bytes.store(at + bytes, std::memory_order_release);
}

Error refused(const std::string& path, const std::string& why) {
  return Error{Code::already_exists, "cannot publish counters in " + path + ": " + why, EEXIST};
}

// Succeeds if nothing is at `path`, or if it is a counter file whose program no longer runs.
Result<void> check_place(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
  if (!fd.valid()) {
    return errno == ENOENT ? Result<void>()
                           : system_error("cannot publish counters in " + path, errno);
  }
  struct stat status {};
  CounterFileHeader header;
  const bool whole = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                     ::pread(fd.get(), static_cast<void*>(&header), sizeof header, 0) ==
                         static_cast<ssize_t>(sizeof header);
  if (!whole || header.magic != kCounterFileMagic) {
    return refused(path, "it exists and is not a counter file; choose another name");
  }
  if (process_maps(static_cast<pid_t>(header.pid), path)) {
    return refused(path, "process " + std::to_string(header.pid) +
                             ", which runs, has its counters there; choose another name");
  }
  return {};
}

CounterFileHeader* format(void* memory, std::size_t threads) {
  auto* header = new (memory) CounterFileHeader;
  header->format_version = kCounterFileVersion;
  header->pid = static_cast<std::uint32_t>(::getpid());
  header->directory_offset = sizeof(CounterFileHeader);
  header->directory_capacity = kDirectoryBytes;
  header->blocks_offset = sizeof(CounterFileHeader) + kDirectoryBytes;
  header->blocks = threads + 1;  // the first is the shared one
  header->cells = kMaxCells;
  header->total_bytes = header->blocks_offset + header->blocks * kMaxCells * sizeof(detail::Cell);
  header->magic = kCounterFileMagic;
  return header;
}

// In a forked child, replaces the mapping of the file by private memory with the same contents at
// the same address: two processes must not count in one cell.
void leave_file_after_fork() {
  Publication& p = publication();
  if (p.file != nullptr) {
    const std::size_t bytes = p.file->total_bytes;
    void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
      std::memcpy(copy, p.file, bytes);
      ::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p.file);
    } else {  // the child's counters then begin at 0
      static_cast<void>(::mmap(p.file, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    }
  }
  p.mutex.unlock();
}

// Creates a file of `bytes` bytes at `path` and maps it. Returns null and sets errno if this fails.
void* map_new_file(const std::string& path, unsigned mode, std::size_t bytes) {
  const Result<FileDescriptor> created = create_anew(path, 0600);
  if (!created) {
    errno = created.error().errno_value;
    return nullptr;
  }
  const FileDescriptor& fd = *created;
  const WriteSignalsBlocked no_signals;  // of a limit that the file exceeds
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    return nullptr;
  }
  if (::fchmod(fd.get(), mode) != 0) {
    return nullptr;
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Result<void> publish_counters(const std::string& path, const CounterFileOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return Error{Code::invalid_argument,
                 "counter file option threads = " + std::to_string(options.threads) +
                     ": must be 1 to " + std::to_string(kMaxThreads),
                 0};
  }
  Publication& p = publication();
  const std::lock_guard lock(p.mutex);
  if (p.file != nullptr) {
    return Error{Code::failed_precondition,
                 "cannot publish counters in " + path + ": they are published already", 0};
  }
  if (Result<void> place = check_place(path); !place) {
    return place;
  }
  const std::string temporary = path + ".new";
  const std::size_t bytes = sizeof(CounterFileHeader) + kDirectoryBytes +
                            (options.threads + 1) * kMaxCells * sizeof(detail::Cell);
  void* memory = map_new_file(temporary, options.mode, bytes);
  if (memory == nullptr || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return system_error(
        "cannot publish counters in " + path + " (" + std::to_string(bytes) + " bytes)", error);
  }
  CounterFileHeader* file = format(memory, options.threads);
  auto* cells = reinterpret_cast<detail::Cell*>(static_cast<char*>(memory) + file->blocks_offset);
  if (!detail::use_published_cells(cells, file->blocks, file->blocks_used)) {
    ::unlink(path.c_str());
    ::munmap(memory, bytes);
    return Error{Code::failed_precondition,
                 "cannot publish counters in " + path +
                     ": a counter was already used; publish before the first add()",
                 0};
  }
  ::pthread_atfork([] { publication().mutex.lock(); }, [] { publication().mutex.unlock(); },
                   leave_file_after_fork);
  p.file = file;
  for (Listed& counter : p.counters) {
    write_entry(*file, counter);
  }
  return {};
}

namespace detail {

void list_counter(const Metric& metric, std::uint32_t first_cell,
                  const std::vector<std::uint64_t>& base_sums) {
  Publication& p = publication();
  const std::lock_guard lock(p.mutex);
  p.counters.push_back({metric, first_cell, base_sums, nullptr});
  if (p.file != nullptr) {
    write_entry(*p.file, p.counters.back());
  }
}

void withdraw_counter(std::uint32_t first_cell) {
  Publication& p = publication();
  const std::lock_guard lock(p.mutex);
  std::erase_if(p.counters, [first_cell](Listed& counter) {
    if (counter.first_cell != first_cell) {
      return false;
    }
    if (counter.entry != nullptr) {
      counter.entry->withdrawn.store(1, std::memory_order_release);
    }
    return true;
  });
}

}  // namespace detail
}  // namespace kymo
