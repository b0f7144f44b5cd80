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
  // Bytes of shared memory that one thread wrote and another one met between the same two barriers:
  // on a card either may come first.
  std::uint64_t races = 0;
};

// From here on accesses are counted; without it they are only carried out.
void begin_counting();
Traffic counted();

}  // namespace rig
