// How long a run will take, by stage, before it is begun: what the threads of this machine do with
// an element is tried on a few of them, and how fast the inputs are read on a few megabytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/base/stages.h"
#include "core/exec/executor.h"
#include "core/model/checkpoint.h"
#include "core/program/program.h"

namespace shw {

// Seconds of one thread a byte.
struct StageRates {
  double read = 0;       // of the inputs, as they lie now: in the page cache, or on their disk
  double write = 0;      // nothing is written to find out: as long as reading takes, and a CRC
  double read_back = 0;  // as long as reading takes, a hash and a fingerprint
};

struct Forecast {
  std::array<double, kStages> seconds{};  // with all threads, each as if nothing else went on
  Stage longest = Stage::kRead;
  double total = 0;          // of one thread's stages one after the other, all threads at once
  double read_rate = 0;      // bytes a second that a thread has read
  std::uint64_t memory = 0;  // bytes that slabs and decoded items take at most
  // Items that are decoded on the disk, and what they take there at most at a time.
  std::uint64_t decoded_items = 0, decoded_on_disk = 0;
};

// One thread with this executor, in seconds: what it takes to make all elements of the program, and
// to fingerprint what is read for them. Tried on samples; an error is the executor's.
struct MakeSeconds {
  double make = 0, fingerprint = 0;
};
Result<MakeSeconds> seconds_to_make(const Program& program, Executor& executor);

// `copied`: bytes that come along as they are. Reads at most 32 MB of the inputs.
Result<Forecast> forecast(const Program& program, const std::vector<const Checkpoint*>& inputs,
                          std::uint64_t copied, std::uint64_t memory);

// What is to be done: bytes, and of how many pieces each costs something however small it is.
struct ForecastWork {
  std::uint64_t read = 0, written = 0, copied = 0;  // bytes
  std::uint64_t jobs = 0, tiles = 0;                // of the program: read, and written
};
// Of what was measured: `make` in seconds of one thread, all bytes together.
Forecast forecast_of(const StageRates& rates, double make, const ForecastWork& work,
                     std::size_t threads);

}  // namespace shw
