#pragma once

#include <cstddef>
#include <cstdint>

#include "kymo/counter.h"
#include "kymo/result.h"

// The memory behind every counter of the process.
//
// A block is an array of kMaxCells cells. Each running thread that ever added owns one block and is
// its only writer; a counter is an index into every block, its value the sum over all blocks.
//
// Invariants:
//  1. A cell only grows (modulo 2^64), and only its block's owner stores to it.
//  2. A block is never freed, moved or cleared: a reader may hold it for ever.
//  3. The list of blocks only grows, at its head; a block's `next` is set before the block is
//  published.
//  4. A thread that exits hands its block, values kept, to the next thread that starts: the sum
//  over all
//     blocks is the same before and after, so nothing is lost and nothing is folded. There are
//     never more blocks than there were threads at once.
//  5. Ownership passes under one mutex, so the new owner sees the old owner's last store.
//  6. The cells of blocks lie in private memory, or, where they are published before the first
//  block
//     is made, in the counter file (counter_file.cc). A block's cells never move.
//  7. What a thread adds while it exits, after its block has been handed on, and what it adds when
//  no
//     memory for a block could be had, goes to one shared block by an atomic addition.
//
// From 1 to 3: two reads of a cell in one thread never see it fall, so no sum ever falls.
namespace kymo::detail {

// Reserves `count` cells next to each other for a metric. Errors: resource_exhausted.
// Threads: any. A cell's earlier owner may have left a value: what counts is the growth since now,
// which read_cells() gives against the value at reservation.
Result<std::uint32_t> reserve_cells(std::size_t count);
void release_cells(std::uint32_t first, std::size_t count) noexcept;

// out[i] += the sum over all blocks of cell first + i. Threads: any; wait-free; no lock is taken.
void add_cell_sums(std::uint32_t first, std::size_t count, std::uint64_t* out) noexcept;

// From now on blocks take their cells from here, zeroed memory of `blocks` times kMaxCells cells
// that stays for ever; the first are the shared block's. `in_use` counts those taken. False, and
// nothing done, where a block exists already.
bool use_published_cells(Cell* cells, std::size_t blocks,
                         std::atomic<std::uint64_t>& in_use) noexcept;

// Number of blocks, for tests: bounded by the highest number of threads at once, plus one.
std::size_t block_count() noexcept;

}  // namespace kymo::detail
