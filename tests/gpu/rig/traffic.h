// Memory accesses of kernels on the rig, counted as on a GPU.
#pragma once

#include <cstdint>

namespace rig {

struct Traffic {
  // Accesses to slabs: bytes requested by threads, and 32 times the number of sectors touched by
  // the instructions of their warps.
  std::uint64_t read_bytes = 0, read_touched = 0;
  std::uint64_t written_bytes = 0, written_touched = 0;
  // Phases of shared memory, and turns beyond one per phase. A phase is as many threads as request
  // 128 bytes.
  std::uint64_t shared_phases = 0, bank_conflicts = 0;
  // Bytes added to in global memory, and 32 times the touched sectors. For additions to shared
  // memory: turns, and those beyond one per warp instruction.
  std::uint64_t added_bytes = 0, added_touched = 0;
  std::uint64_t add_turns = 0, add_conflicts = 0;
  // Bytes of shared memory that one thread wrote and another one accessed between the same two
  // barriers: on a GPU the order is undefined. Atomic additions do not conflict.
  std::uint64_t races = 0;
};

// Starts counting; otherwise accesses are only executed.
void begin_counting();
Traffic counted();

}  // namespace rig
