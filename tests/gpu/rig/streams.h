// What the rig's streams do that a card's may do, and what a test may ask of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rig {

// From here on everything that was given to a stream is done at a moment that `seed` draws: late,
// and before or after what other streams were given, unless an event or the host waits.
void begin_streams(std::uint64_t seed);
// Every second wait of a stream for an event is forgotten: what a program without it would do.
void forget_waits(bool forget);
// From the `operation`-th one on everything fails, as after a kernel that went astray; 0: nothing.
void fail_from(std::uint64_t operation);
// Since begin_streams(): how many were done, and how often one was done while an older one of
// another stream was not.
struct StreamCounts {
  std::uint64_t operations = 0, overtaken = 0;
};
StreamCounts stream_counts();
// What cudaMalloc() and cudaMallocHost() have given and not had back.
std::size_t memory_held();
std::size_t memory_held(int device);  // of it what was taken for this one
// Cards that are there; and the version of a driver, or 0 for none.
void set_devices(int count, int driver = 13000);

}  // namespace rig
