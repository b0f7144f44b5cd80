// Behaviour of the rig's streams that real streams may show, and controls for tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rig {

// From here on, work in streams runs at moments drawn from `seed`: late, and before or after that
// of other streams, unless an event or the host waits.
void begin_streams(std::uint64_t seed);
// Ignores every second wait of a stream for an event, to imitate a program that lacks it.
void forget_waits(bool forget);
// Makes all operations from number `operation` on fail, as after an invalid memory access; 0: none.
void fail_from(std::uint64_t operation);
// Since begin_streams(): operations done, and how often one was done before an older one of another
// stream.
struct StreamCounts {
  std::uint64_t operations = 0, overtaken = 0;
};
StreamCounts stream_counts();
// Memory from cudaMalloc() and cudaMallocHost() that was not freed.
std::size_t memory_held();
std::size_t memory_held(int device);  // only memory allocated for this device
// Number of simulated cards, and the driver's version, or 0 for no driver.
void set_devices(int count, int driver = 13000);

}  // namespace rig
