#include "recorder/metrics/cells.h"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <bitset>
#include <mutex>
#include <new>
#include <string>

#include "base/cache_line.h"

namespace kymo::detail {

constinit thread_local Cell* thread_cells = nullptr;

namespace {

struct Block {
  Cell* cells = nullptr;       // kMaxCells of them
  Block* next = nullptr;       // set before publication, then constant (invariant 3)
  Block* next_free = nullptr;  // guarded by Blocks::mutex
};

// All state is constant-initialised and trivially destroyed, so that threads may add before main()
// and after it.
struct Blocks {
  // Each sample reads it, so it is apart from what threads write when they begin, end or add to the
  // shared block.
  alignas(kCacheLine) std::atomic<Block*> head{nullptr};
  alignas(kCacheLine) std::mutex mutex;
  Block* free = nullptr;              // guarded by mutex
  std::bitset<kMaxCells> reserved{};  // guarded by mutex
  // The next free cells in the counter file, from which new blocks take theirs; null: no file.
  Cell* published = nullptr;                               // guarded by mutex
  std::size_t published_blocks = 0;                        // guarded by mutex; blocks left there
  std::atomic<std::uint64_t>* published_in_use = nullptr;  // guarded by mutex
  bool shared_listed = false;  // guarded by mutex; most programs never list it and never read it
  Block shared{};              // invariant 7
  // Any thread adds to these, with the mutex held.
  alignas(kCacheLine) std::array<Cell, kMaxCells> shared_cells{};
};

constinit Blocks g_blocks;

constexpr std::size_t kCellsBytes = kMaxCells * sizeof(Cell);

// Precondition: the mutex is held, and published_blocks is not 0.
Cell* take_published_cells() noexcept {
  Cell* cells = g_blocks.published;
  g_blocks.published += kMaxCells;
  --g_blocks.published_blocks;
  g_blocks.published_in_use->fetch_add(1, std::memory_order_release);
  return cells;
}

// Gives a forked child state of its own. The thread that forked holds the mutex, so that no thread
// that the child lacks can hold it. Cells in a counter file belong to the parent, so the child goes
// on with copies of them.
void own_cells_in_child() noexcept {
  const auto copy = [](Block& block) {
    void* memory =
        ::mmap(nullptr, kCellsBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return;
    }
    Cell* own = new (memory) Cell[kMaxCells]{};
    for (std::size_t i = 0; i < kMaxCells; ++i) {
      own[i].store(block.cells[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    if (thread_cells == block.cells) {
      thread_cells = own;
    }
    block.cells = own;
  };
  if (g_blocks.published != nullptr) {
    for (Block* block = g_blocks.head.load(std::memory_order_relaxed); block != nullptr;
         block = block->next) {
      copy(*block);
    }
    if (!g_blocks.shared_listed) {
      copy(g_blocks.shared);
    }
    g_blocks.published = nullptr;
    g_blocks.published_blocks = 0;
  }
  g_blocks.mutex.unlock();
}

[[gnu::constructor]] void guard_forks() {
  ::pthread_atfork([] { g_blocks.mutex.lock(); }, [] { g_blocks.mutex.unlock(); },
                   own_cells_in_child);
}

Block* new_block() noexcept {
  // Mapped, not allocated: a counter must work where malloc must not be called, pages without used
  // counters cost nothing, and a leak checker would report memory that is kept for ever.
  const bool in_file = g_blocks.published != nullptr;
  if (in_file && g_blocks.published_blocks == 0) {
    return nullptr;  // the caller then uses the shared block, which is in the file, too
  }
  const std::size_t cells_bytes = in_file ? 0 : kCellsBytes;
  void* memory = ::mmap(nullptr, cells_bytes + sizeof(Block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto* block = new (static_cast<char*>(memory) + cells_bytes) Block;
  block->cells = in_file ? take_published_cells() : new (memory) Cell[kMaxCells]{};
  return block;
}

// Precondition: the mutex is held.
void list_block(Block* block) noexcept {
  block->next = g_blocks.head.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in add_cell_sums, which then sees `next` and the zeroed cells.
  g_blocks.head.store(block, std::memory_order_release);
}

Block* take_block() noexcept {
  const std::lock_guard lock(g_blocks.mutex);
  if (Block* block = g_blocks.free; block != nullptr) {
    g_blocks.free = block->next_free;
    return block;
  }
  Block* block = new_block();
  if (block != nullptr) {
    list_block(block);
  }
  return block;
}

void give_back(Block* block) noexcept {
  const std::lock_guard lock(g_blocks.mutex);
  block->next_free = g_blocks.free;
  g_blocks.free = block;
}

// Owns the calling thread's block and hands it on when the thread exits.
struct Attachment {
  Block* block = nullptr;
  ~Attachment();
};

// Outlives the Attachment, so that an add() in a later destructor does not attach a block again.
constinit thread_local bool t_thread_exiting = false;
thread_local Attachment t_attachment;

Attachment::~Attachment() {
  t_thread_exiting = true;
  thread_cells = nullptr;
  if (block != nullptr) {
    give_back(block);
  }
}

}  // namespace

void add_without_cells(std::uint32_t cell, std::uint64_t n) noexcept {
  if (!t_thread_exiting) {
    if (t_attachment.block == nullptr) {
      t_attachment.block = take_block();
    }
    if (Block* block = t_attachment.block; block != nullptr) {
      thread_cells = block->cells;
      Cell& own = block->cells[cell];
      own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
      return;
    }
  }
  const std::lock_guard lock(g_blocks.mutex);
  if (!g_blocks.shared_listed) {
    g_blocks.shared_listed = true;
    if (g_blocks.shared.cells == nullptr) {
      g_blocks.shared.cells = g_blocks.shared_cells.data();
    }
    list_block(&g_blocks.shared);
  }
  g_blocks.shared.cells[cell].fetch_add(n, std::memory_order_relaxed);
}

bool use_published_cells(Cell* cells, std::size_t blocks,
                         std::atomic<std::uint64_t>& in_use) noexcept {
  const std::lock_guard lock(g_blocks.mutex);
  if (g_blocks.head.load(std::memory_order_relaxed) != nullptr || g_blocks.published != nullptr) {
    return false;
  }
  g_blocks.published = cells;
  g_blocks.published_blocks = blocks;
  g_blocks.published_in_use = &in_use;
  g_blocks.shared.cells = take_published_cells();
  return true;
}

Result<std::uint32_t> reserve_cells(std::size_t count) {
  const std::lock_guard lock(g_blocks.mutex);
  std::size_t run = 0;
  for (std::size_t i = 0; i < kMaxCells; ++i) {
    run = g_blocks.reserved[i] ? 0 : run + 1;
    if (run == count) {
      const std::size_t first = i + 1 - count;
      for (std::size_t j = first; j <= i; ++j) {
        g_blocks.reserved.set(j);
      }
      return static_cast<std::uint32_t>(first);
    }
  }
  return Error{Code::resource_exhausted,
               "no room for " + std::to_string(count) + " more counter columns: a process has " +
                   std::to_string(kMaxCells) + " of them (kymo::kMaxCells)",
               0};
}

void release_cells(std::uint32_t first, std::size_t count) noexcept {
  const std::lock_guard lock(g_blocks.mutex);
  for (std::size_t i = first; i < first + count; ++i) {
    g_blocks.reserved.reset(i);
  }
}

void add_cell_sums(std::uint32_t first, std::size_t count, std::uint64_t* out) noexcept {
  // Acquire: pairs with the release in list_block().
  for (const Block* block = g_blocks.head.load(std::memory_order_acquire); block != nullptr;
       block = block->next) {
    const Cell* cells = block->cells + first;
    for (std::size_t i = 0; i < count; ++i) {
      out[i] += cells[i].load(std::memory_order_relaxed);
    }
  }
}

std::size_t block_count() noexcept {
  std::size_t count = 0;
  for (const Block* block = g_blocks.head.load(std::memory_order_acquire); block != nullptr;
       block = block->next) {
    ++count;
  }
  return count;
}

}  // namespace kymo::detail
