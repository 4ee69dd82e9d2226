#include "metrics/cells.h"

#include <sys/mman.h>

#include <array>
#include <bitset>
#include <mutex>
#include <new>
#include <string>

namespace kymo::detail {

constinit thread_local Cell* thread_cells = nullptr;

namespace {

struct Block {
  std::array<Cell, kMaxCells> cells{};
  Block* next = nullptr;       // set before publication, then constant (invariant 3)
  Block* next_free = nullptr;  // guarded by Blocks::mutex
};

// All state is constant-initialised and trivially destroyed: threads may add before main() and
// after it.
struct Blocks {
  std::mutex mutex;
  Block* free = nullptr;              // guarded by mutex
  std::bitset<kMaxCells> reserved{};  // guarded by mutex
  std::atomic<Block*> head{nullptr};
  Block shared{};              // invariant 6
  bool shared_listed = false;  // guarded by mutex; most programs never need it, and never read it
};

constinit Blocks g_blocks;

Block* new_block() noexcept {
  // Mapped rather than allocated: a counter must work where malloc is not to be called, pages that
  // no counter uses cost nothing, and a leak checker has no business with memory kept for ever.
  void* memory =
      ::mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Block;
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
    block->next = g_blocks.head.load(std::memory_order_relaxed);
    // Release: pairs with the acquire in add_cell_sums, which then sees `next` and the zeroed
    // cells.
    g_blocks.head.store(block, std::memory_order_release);
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

// Survives the Attachment's destructor, so that a later destructor's add() knows not to attach
// again.
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
      thread_cells = block->cells.data();
      Cell& own = block->cells[cell];
      own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
      return;
    }
  }
  g_blocks.shared.cells[cell].fetch_add(n, std::memory_order_relaxed);
  const std::lock_guard lock(g_blocks.mutex);
  if (!g_blocks.shared_listed) {
    g_blocks.shared_listed = true;
    list_block(&g_blocks.shared);
  }
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
  // Acquire: pairs with the release in take_block().
  for (const Block* block = g_blocks.head.load(std::memory_order_acquire); block != nullptr;
       block = block->next) {
    const Cell* cells = block->cells.data() + first;
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
