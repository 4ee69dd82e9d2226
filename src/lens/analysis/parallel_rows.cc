#include "lens/analysis/parallel_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

namespace kymo::analysis {
namespace {

constexpr std::uint64_t kChunkBytes = 256 * 1024;
constexpr std::size_t kMoreBytes = 4 * 1024;   // read after a chunk, to complete its last line
constexpr std::size_t kMaxLine = 1024 * 1024;  // the same as in TsvReader
// RowScan needs this many readable bytes before the text of a chunk.
constexpr std::size_t kMargin = RowScan::kMargin;

// Returns false if fewer than `size` bytes could be read.
bool read_at(int fd, char* out, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t n = ::pread(fd, out, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

// The lines that begin in one range of kChunkBytes.
//
// Threads: one at a time.
class Chunk {
 public:
  explicit Chunk(const PlainText& text)
      : text_(text),
        // A row has at least two bytes for each column. The capacity is odd, so that the columns do
        // not all begin in the same set of the cache.
        block_(text.columns, (kChunkBytes / (2 * text.columns) + 2) | 1U),
        parser_(text.columns, 1) {}

  // Returns false if the chunk cannot be read or holds anything but rows.
  bool load(std::uint64_t index) {
    const std::uint64_t begin = text_.begin + index * kChunkBytes;
    const std::uint64_t end = std::min(begin + kChunkBytes, text_.end);
    block_.clear();
    // The byte before the chunk shows whether a line begins at its first byte.
    const std::size_t before = index == 0 ? 0 : 1;
    bytes_.resize(kMargin + before + (end - begin));
    if (!read_at(text_.fd, bytes_.data() + kMargin, bytes_.size() - kMargin, begin - before)) {
      return false;
    }
    std::size_t first = kMargin;
    if (before != 0) {
      const void* found = std::memchr(bytes_.data() + kMargin, '\n', bytes_.size() - kMargin);
      first = found == nullptr
                  ? bytes_.size()
                  : static_cast<std::size_t>(static_cast<const char*>(found) - bytes_.data()) + 1;
    }
    if (first == bytes_.size()) {  // no line begins here
      sums_.assign(text_.columns, {});
      end_ = 0;
      return true;
    }
    if (!complete_last_line(end)) return false;
    end_ = begin - before + (bytes_.size() - kMargin);
    return parse({bytes_.data() + first, bytes_.size() - first});
  }

  [[nodiscard]] RowPiece piece() const { return {block_, sums_}; }
  // The offset after its last line. 0 if no line begins in the chunk.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  bool complete_last_line(std::uint64_t offset) {
    const std::size_t most = bytes_.size() + kMaxLine;
    for (std::size_t at_once = kMoreBytes; bytes_.back() != '\n'; at_once *= 2) {
      const std::size_t filled = bytes_.size();
      const std::size_t more = std::min<std::uint64_t>(at_once, text_.end - offset);
      if (more == 0 || filled > most) return false;
      bytes_.resize(filled + more);
      if (!read_at(text_.fd, bytes_.data() + filled, more, offset)) return false;
      offset += more;
      if (const void* found = std::memchr(bytes_.data() + filled, '\n', more); found != nullptr) {
        bytes_.resize(static_cast<std::size_t>(static_cast<const char*>(found) - bytes_.data()) +
                      1);
      }
    }
    return true;
  }

  bool parse(std::string_view lines) {
    parser_.begin_again();
    if (parser_.parse(lines, block_) != lines.size() || !parser_.left_out().empty()) return false;
    sums_.clear();
    for (std::size_t i = 0; i < text_.columns; ++i) sums_.push_back(sum_of(block_.column(i)));
    return true;
  }

  PlainText text_;
  std::vector<char> bytes_;
  RowBlock block_;
  RowParser parser_;
  std::vector<ColumnSum> sums_;
  std::uint64_t end_ = 0;
};

// A ring of places for chunks: chunk n uses place n modulo their number. A place is free, being
// filled by a worker thread, or being read by the caller of next().
class ChunkRing {
 public:
  ChunkRing(const PlainText& text, unsigned threads)
      : count_((text.end - text.begin + kChunkBytes - 1) / kChunkBytes) {
    for (unsigned i = 0; i < 2 * threads; ++i) places_.emplace_back(text);
    try {
      for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // the system allows no more threads
      if (workers_.empty()) count_ = 0;
    }
  }
  ~ChunkRing() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  ChunkRing(const ChunkRing&) = delete;
  ChunkRing& operator=(const ChunkRing&) = delete;

  // The next chunk, valid until the next call. Null if there is none, or if it cannot be read or
  // holds anything but rows.
  const Chunk* next() {
    std::unique_lock lock(mutex_);
    if (begun_) {
      place(taken_).ready = false;
      ++taken_;
      changed_.notify_all();
    }
    begun_ = true;
    if (taken_ == count_) return nullptr;
    Place& here = place(taken_);
    changed_.wait(lock, [&] { return here.ready; });
    return here.good ? &here.chunk : nullptr;
  }

 private:
  struct Place {
    explicit Place(const PlainText& text) : chunk(text) {}
    Chunk chunk;
    bool ready = false;
    bool good = false;
  };
  Place& place(std::uint64_t index) { return places_[index % places_.size()]; }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [&] { return stop_ || given_ == count_ || given_ < taken_ + places_.size(); });
      if (stop_ || given_ == count_) return;
      const std::uint64_t index = given_++;
      Place& here = place(index);
      lock.unlock();
      const bool good = here.chunk.load(index);
      lock.lock();
      here.good = good;
      here.ready = true;
      changed_.notify_all();
    }
  }

  std::vector<Place> places_;
  std::uint64_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t given_ = 0;
  std::uint64_t taken_ = 0;
  bool begun_ = false;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

RowsTaken take_in_parallel(const PlainText& text, unsigned threads,
                           const std::function<void(const RowPiece&)>& take) {
  RowsTaken taken{text.begin, 0, 0};
  if (text.end <= text.begin) return taken;
  ChunkRing ring(text, threads);
  while (const Chunk* chunk = ring.next()) {
    const RowPiece piece = chunk->piece();
    if (chunk->end() == 0) continue;
    if (piece.rows.times().front() < taken.last_time) break;
    take(piece);
    taken.end = chunk->end();
    taken.rows += piece.rows.rows();
    taken.last_time = piece.rows.times().back();
  }
  return taken;
}

}  // namespace kymo::analysis
