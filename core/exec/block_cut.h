// Splits an output into blocks that fit in slabs. Equal programs and limits give equal blocks on
// every machine.
#pragma once

#include <cstdint>

#include "core/program/program.h"

namespace shw {

struct SlabLimits {
  // Size of the input and of the output slab. Large enough that the cost of starting a block is
  // negligible, small enough to stay in a core's cache between reading and writing: with 8 MiB a
  // conversion took 1.14 times as long, a reshard 1.11 times.
  std::uint64_t slab_bytes = std::uint64_t{2} << 20;
  // Slab size for transposed elements: run lengths on both sides equal the width of a block, and
  // each run is a system call (4 KiB for chunks that are 8192 elements of 4 bytes wide). Twice the
  // size leaves the caches (15 % slower), half the size reads pages twice.
  std::uint64_t turned_bytes = std::uint64_t{32} << 20;
  // Limit of all slabs in flight per thread, if the executor accepts several; two slabs are always
  // allowed.
  std::uint64_t in_flight_bytes = 0;
};

// Slab size for executors on a device, where each slab also costs a launch and events.
inline constexpr std::uint64_t kSentSlabBytes = std::uint64_t{8} << 20;

// Block numbers [first, last) of an output.
struct BlockRange {
  std::uint64_t first = 0, last = 0;
};

struct BlockCut {
  Extents block;         // block sizes
  bool in_order = true;  // each block is one run of the output, in sequence
};
BlockCut block_cut_of_output(const Program& program, OutputId output, const SlabLimits& limits);

// Number of blocks within `limits`: at least one, which may be empty.
std::uint64_t block_count(const Program& program, OutputId output, const SlabLimits& limits);

// True if every job in `jobs` fills zeros: such an output is one block, because a sparse file
// stores it without disk space.
bool is_zeros(const Program& program, JobRange jobs);

// The largest element size read by any of the jobs, in bytes.
std::size_t widest(const Program& program, JobRange jobs);

}  // namespace shw
