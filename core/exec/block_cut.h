// How an output is cut into blocks that fit into slabs. The same program and limits give the same
// blocks on every machine.
#pragma once

#include <cstdint>

#include "core/program/program.h"

namespace shw {

struct Limits {
  // Of what is read, and of what is made, at a time. Large enough that starting a block costs
  // nothing beside moving it, small enough to stay in a core's cache between reading and writing:
  // with 8 MiB a conversion took 1.14 times as long, and a reshard 1.11 times.
  std::uint64_t slab_bytes = std::uint64_t{2} << 20;
  // The same where elements are turned: runs of both sides are then as long as a block is wide, and
  // each of them is a call to the system: of 4 KiB where tiles are 8192 elements of 4 bytes wide.
  // Twice as much leaves the caches (by 15 % slower), half as much reads pages twice.
  std::uint64_t turned_bytes = std::uint64_t{32} << 20;
  // Of all slabs that one thread has under way at a time, where its executor takes several; two
  // slabs are taken however little this is.
  std::uint64_t under_way_bytes = 0;
};

// Of an executor to whom a slab has to be sent: each costs a launch and events too.
inline constexpr std::uint64_t kSentSlabBytes = std::uint64_t{8} << 20;

// Blocks of an output, by their number: [first, last).
struct BlockRange {
  std::uint64_t first = 0, last = 0;
};

struct BlockCut {
  Extents block;         // sizes
  bool in_order = true;  // every block is one run of the output, and they follow each other
};
BlockCut cut_of(const Program& program, OutputId output, const Limits& limits);

// How many blocks of at most `limits` an output is made in: at least one, which may be empty.
std::uint64_t block_count(const Program& program, OutputId output, const Limits& limits);

// A payload of zeros alone: however large, it costs nothing.
bool is_zeros(const Program& program, JobRange jobs);

// The widest element that any of the jobs reads, in bytes.
std::size_t widest(const Program& program, JobRange jobs);

}  // namespace shw
