#include "recorder/sampling/ring/ring_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/absolute_path.h"
#include "base/quiet_thread.h"

namespace kymo {
namespace {

constexpr mode_t kRingMode = 0600;

std::size_t slots_offset(std::size_t description_bytes) {
  const std::size_t end = sizeof(RingHeader) + description_bytes;
  return (end + alignof(SlotHeader) - 1) / alignof(SlotHeader) * alignof(SlotHeader);
}

// The bytes of a ring of this shape; SIZE_MAX, which no machine has, if they overflow.
std::size_t total_bytes(const RingMemory::Shape& shape, std::size_t description_bytes) {
  std::size_t row_bytes = 0;
  std::size_t slot_bytes = 0;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.stride, sizeof(std::uint64_t), &row_bytes) ||
      __builtin_mul_overflow(row_bytes, shape.rows_per_slot, &slot_bytes) ||
      __builtin_add_overflow(slot_bytes, sizeof(SlotHeader), &slot_bytes) ||
      __builtin_mul_overflow(slot_bytes, shape.slots, &bytes) ||
      __builtin_add_overflow(bytes, slots_offset(description_bytes), &bytes)) {
    return SIZE_MAX;
  }
  return bytes;
}

std::string_view fixed_part(const RingHeader& header) {
  return {reinterpret_cast<const char*>(&header), kFixedRingBytes};
}

std::string shape_text(const RingMemory::Shape& shape) {
  return "a ring of " + std::to_string(shape.slots) + " slots x " +
         std::to_string(shape.rows_per_slot) + " rows x " + std::to_string(shape.stride - 1) +
         " columns";
}

Error exists(const std::string& path, const FileDescriptor& there) {
  decltype(RingHeader::magic) magic{};
  if (::pread(there.get(), &magic, sizeof magic, 0) != sizeof magic || magic != kRingMagic) {
    return Error{
        Code::already_exists,
        "cannot create the ring " + path +
            ": a file that is not a ring has this name, and was not changed; choose another name",
        EEXIST};
  }
  const bool in_use = ::flock(there.get(), LOCK_EX | LOCK_NB) != 0;
  return Error{Code::already_exists,
               in_use ? "the ring " + path + " is in use by a running recorder; choose another file"
                      : "the ring " + path +
                            " was left behind by a recorder that was killed; recover its rows "
                            "with 'kymo recover " +
                            path + "', or move it away",
               EEXIST};
}

}  // namespace

std::uint64_t ring_check(std::string_view bytes) {
  std::uint64_t check = 0;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof check))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    check = ring_check(check, word);
  }
  return check;
}

std::size_t RingMemory::bytes_of(const Shape& shape) {
  return total_bytes(shape, 0);
}

Result<std::unique_ptr<RingMemory>> RingMemory::create_private(const Shape& shape) {
  const std::size_t bytes = total_bytes(shape, 0);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return system_error("cannot allocate " + shape_text(shape) + "; ask for fewer", errno);
  }
  std::unique_ptr<RingMemory> ring(new RingMemory(memory, bytes, FileDescriptor(), ""));
  ring->format(shape, "");
  return ring;
}

Result<std::unique_ptr<RingMemory>> RingMemory::create_file(const Shape& shape,
                                                            const std::string& path,
                                                            std::string_view description) {
  if (const FileDescriptor there(::open(path.c_str(), O_RDONLY | kOpenForeign)); there.valid()) {
    return exists(path, there);
  }
  const std::size_t bytes = total_bytes(shape, description.size());
  const std::string temporary = path + ".new";
  Result<FileDescriptor> created = create_anew(temporary, kRingMode);
  if (!created) {
    Error error = system_error("cannot create the ring " + path, created.error().errno_value);
    error.message += advice_on_creating(path, error.errno_value);
    return error;
  }
  FileDescriptor fd = *std::move(created);
  const auto fail = [&](int error) {
    ::unlink(temporary.c_str());
    return system_error("cannot make " + path + " hold " + shape_text(shape) + " (" +
                            std::to_string(bytes) + " bytes)",
                        error);
  };
  if (bytes > INT64_MAX) {
    return fail(EFBIG);
  }
  const WriteSignalsBlocked no_signals;  // of a limit that the ring exceeds
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return fail(error);
  }
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return fail(errno);
  }
  std::unique_ptr<RingMemory> ring(
      new RingMemory(memory, bytes, std::move(fd), absolute_path(path)));
  ring->format(shape, description);
  // The lock belongs to the open file, so it is held before the name appears. RENAME_NOREPLACE
  // refuses to replace a ring that another recorder has made meanwhile; rename(2) would replace it.
  // Unlike a second link, a rename leaves the open file with the name that CRIU will look for.
  if (::flock(ring->fd_.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    return fail(errno);
  }
  ring->path_ = absolute_path(path);
  ring->knows_file_ = true;
  ring->knows_file_ = !ring->lost_file();
  return ring;
}

Result<RingFile> RingFile::open(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | kOpenForeign));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return system_error("cannot read the ring " + path, errno);
  }
  const auto foreign = [&](const std::string& why) {
    return Error{Code::invalid_argument, path + " is not a ring that can be read: " + why, 0};
  };
  const auto bytes = static_cast<std::size_t>(status.st_size);
  RingHeader header;
  if (!S_ISREG(status.st_mode) ||
      ::pread(fd.get(), static_cast<void*>(&header), sizeof header, 0) != sizeof header) {
    return foreign("it is shorter than a ring's header, or no regular file");
  }
  if (header.magic != kRingMagic) {
    return foreign("it does not begin with KYMORING");
  }
  if (header.format_version != kRingFormatVersion) {
    return foreign("its format_version is " + std::to_string(header.format_version) +
                   ", this program reads " + std::to_string(kRingFormatVersion) +
                   "; recover it with the version that wrote it");
  }
  const RingMemory::Shape shape{header.slots, header.rows_per_slot, header.stride};
  if (header.fixed_check != ring_check(fixed_part(header)) || shape.stride < 1 ||
      shape.rows_per_slot > SlotHeader::kCountMask || header.description_bytes > bytes ||
      header.slots_offset != slots_offset(header.description_bytes) ||
      header.total_bytes != total_bytes(shape, header.description_bytes)) {
    return foreign("its header contradicts itself");
  }
  if (header.total_bytes != bytes) {
    return Error{Code::data_loss,
                 path + " is truncated: it has " + std::to_string(bytes) + " bytes of " +
                     std::to_string(header.total_bytes),
                 0};
  }
  return RingFile{std::move(fd), path, bytes, status.st_uid, header.pid};
}

Result<std::unique_ptr<RingMemory>> RingMemory::map(RingFile file) {
  void* memory = ::mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (memory == MAP_FAILED) {
    return system_error("cannot map the ring " + file.path, errno);
  }
  return std::unique_ptr<RingMemory>(
      new RingMemory(memory, file.bytes, std::move(file.fd), std::move(file.path)));
}

Result<std::unique_ptr<RingMemory>> RingMemory::open_file(const std::string& path) {
  Result<RingFile> file = RingFile::open(path);
  return file ? map(*std::move(file)) : file.error();
}

// The rings that this process has open. A lock of flock(2) belongs to the open file, which a forked
// child shares by its descriptor and by its mapping. The child gives up both, or a ring would seem
// in use as long as the child lives.
struct OpenRings {
  std::mutex mutex;
  RingMemory* first = nullptr;

  void add(RingMemory* ring) {
    const std::lock_guard lock(mutex);
    ring->next_open_ = first;
    first = ring;
  }
  void remove(RingMemory* ring) {
    const std::lock_guard lock(mutex);
    RingMemory** at = &first;
    while (*at != nullptr && *at != ring) {
      at = &(*at)->next_open_;
    }
    if (*at == ring) {
      *at = ring->next_open_;
    }
  }
  void close_all() {
    for (RingMemory* ring = first; ring != nullptr; ring = ring->next_open_) {
      ring->leave_to_parent();
    }
    first = nullptr;
  }
};

namespace {

constinit OpenRings g_open;

[[gnu::constructor]] void guard_forks() {
  ::pthread_atfork([] { g_open.mutex.lock(); }, [] { g_open.mutex.unlock(); },
                   [] {
                     g_open.close_all();
                     g_open.mutex.unlock();
                   });
}

}  // namespace

RingMemory::RingMemory(void* memory, std::size_t bytes, FileDescriptor fd, std::string path)
    : memory_(memory), bytes_(bytes), fd_(std::move(fd)), path_(std::move(path)) {
  if (fd_.valid()) {
    g_open.add(this);
  }
}

RingMemory::~RingMemory() {
  g_open.remove(this);
  struct stat status {};
  if (fd_.valid() && !has_descriptor(&status)) {
    static_cast<void>(fd_.release());
  }
  ::munmap(memory_, bytes_);
}

void RingMemory::leave_to_parent() {
  fd_.reset();
  // The child keeps memory at this address, because its copy of the profiler refers to it. If this
  // fails, the ring stays locked until the child ends.
  static_cast<void>(::mmap(memory_, bytes_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
}

void RingMemory::format(const Shape& shape, std::string_view description) {
  auto* header = new (memory_) RingHeader;
  header->format_version = kRingFormatVersion;
  header->pid = static_cast<std::uint32_t>(::getpid());
  header->description_bytes = description.size();
  header->slots_offset = slots_offset(description.size());
  header->slots = shape.slots;
  header->rows_per_slot = shape.rows_per_slot;
  header->stride = shape.stride;
  header->total_bytes = bytes_;
  if (!description.empty()) {
    std::memcpy(static_cast<void*>(header + 1), description.data(), description.size());
  }
  header->description_check = ring_check(description);
  for (std::size_t i = 0; i < shape.slots; ++i) {
    new (slot_headers() + i) SlotHeader;
  }
  // The check is of a complete ring, and the magic is stored last.
  RingHeader complete;
  std::memcpy(static_cast<void*>(&complete), memory_, kFixedRingBytes);
  complete.magic = kRingMagic;
  header->fixed_check = ring_check(fixed_part(complete));
  header->magic = kRingMagic;
}

std::string_view RingMemory::description() const {
  return {reinterpret_cast<const char*>(&header() + 1), header().description_bytes};
}

SlotHeader* RingMemory::slot_headers() const {
  return reinterpret_cast<SlotHeader*>(static_cast<char*>(memory_) + header().slots_offset);
}

std::uint64_t* RingMemory::rows_of(std::size_t slot) const {
  auto* rows = reinterpret_cast<std::uint64_t*>(slot_headers() + header().slots);
  return rows + slot * header().rows_per_slot * header().stride;
}

bool RingMemory::try_lock() const {
  return ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
}

bool RingMemory::has_descriptor(struct stat* status) const {
  return ::fstat(fd_.get(), status) == 0 && S_ISREG(status->st_mode) &&
         static_cast<std::size_t>(status->st_size) == bytes_;
}

bool RingMemory::lost_file() const {
  struct stat own {};
  struct stat named {};
  if (!knows_file_ || !has_descriptor(&own)) {
    return false;
  }
  if (::stat(path_.c_str(), &named) != 0) {
    return errno == ENOENT || errno == ENOTDIR;  // otherwise it is not known, as without rights
  }
  return own.st_dev != named.st_dev || own.st_ino != named.st_ino;
}

void RingMemory::remove_file() {
  if (!path_.empty() && !lost_file()) {
    ::unlink(path_.c_str());
  }
}

}  // namespace kymo
