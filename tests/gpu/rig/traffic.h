// What kernels touched while the rig ran them, as a card would count it.
#pragma once

#include <cstdint>

namespace rig {

struct Traffic {
  // Of all accesses to slabs: bytes that threads asked for, and 32 times the sectors that their
  // warps' instructions met.
  std::uint64_t read_bytes = 0, read_touched = 0;
  std::uint64_t written_bytes = 0, written_touched = 0;
  // Turns that shared memory took, and those beyond one a phase: a phase is as many threads as ask
  // for 128 bytes.
  std::uint64_t shared_phases = 0, bank_conflicts = 0;
  // Bytes that were added to in memory, and 32 times the sectors; of additions to shared memory the
  // turns that they took, and those beyond one a warp's instruction.
  std::uint64_t added_bytes = 0, added_touched = 0;
  std::uint64_t add_turns = 0, add_conflicts = 0;
  // Bytes of shared memory that one thread wrote and another one met between the same two barriers:
  // on a card either may come first. Additions do not mind each other.
  std::uint64_t races = 0;
};

// From here on accesses are counted; without it they are only carried out.
void begin_counting();
Traffic counted();

}  // namespace rig
