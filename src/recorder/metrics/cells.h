#pragma once

#include <cstddef>
#include <cstdint>

#include "kymo/counter.h"
#include "kymo/result.h"

// The memory of all counters of the process.
//
// A block is an array of kMaxCells cells. Each running thread that ever added owns one block and is
// its only writer. A counter is an index that is valid in every block. Its value is the sum of its
// cells over all blocks.
//
// Invariants:
//  1. A cell only grows (modulo 2^64), and only the owner of its block stores to it.
//  2. A block is never freed, moved or cleared, so a reader may keep a pointer to it for ever.
//  3. The list of blocks only grows, at its head. The `next` of a block is set before the block is
//     published.
//  4. A thread that exits hands its block, with its values, to the next thread that needs one. The
//     sum over all blocks is the same before and after, so no count is lost and no values have to
//     be merged. There are never more blocks than there were threads at once.
//  5. Ownership passes under one mutex, so the new owner sees the last store of the old owner.
//  6. The cells of a block are in private memory. If the counters are published before the first
//     block is made, they are in the counter file (counter_file.cc). The cells of a block never
//     move, except in a forked child, which replaces cells in the file by copies.
//  7. Some adds go to one shared block, by an atomic addition: those of a thread that exits and has
//     already handed its block on, and those of a thread that can get no block (no memory, or no
//     blocks left in the counter file).
//
// From 1 to 3 follows: if a thread reads a cell twice, the second value is not smaller. So no sum
// ever falls.
namespace kymo::detail {

// Reserves `count` adjacent cells for a metric. An earlier owner may have left values in the cells.
// The value of the metric is therefore the growth of add_cell_sums() since the reservation.
// Threads: any.
// Errors:  resource_exhausted.
Result<std::uint32_t> reserve_cells(std::size_t count);
void release_cells(std::uint32_t first, std::size_t count) noexcept;

// out[i] += the sum over all blocks of cell first + i.
// Threads: any; wait-free; takes no lock.
void add_cell_sums(std::uint32_t first, std::size_t count, std::uint64_t* out) noexcept;

// From now on, blocks take their cells from `cells`: zeroed memory for `blocks` times kMaxCells
// cells, which stays for ever. The shared block takes the first kMaxCells. `in_use` counts the
// blocks that are taken. Returns false and does nothing if a block exists already, or if cells were
// published already.
bool use_published_cells(Cell* cells, std::size_t blocks,
                         std::atomic<std::uint64_t>& in_use) noexcept;

// Number of blocks, for tests. At most the highest number of threads at once, plus one.
std::size_t block_count() noexcept;

}  // namespace kymo::detail
