// Predicts the duration of a run by stage: computing is timed on a few sample elements, reading on
// a few megabytes of the inputs.
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

// Thread-seconds per byte.
struct StageRates {
  double read = 0;       // of the inputs where they are now: page cache or disk
  double write = 0;      // not measured: assumed as the read rate plus a CRC
  double read_back = 0;  // the read rate plus a hash and a fingerprint
};

struct Forecast {
  std::array<double, kStages> seconds{};  // per stage, all threads, as if it ran alone
  Stage longest = Stage::kRead;
  double total = 0;          // one thread's stages in sequence, all threads in parallel
  double read_rate = 0;      // bytes per second that one thread has read
  std::uint64_t memory = 0;  // maximum bytes of slabs and decoded items
  // Number of items that are decoded to disk, and the maximum bytes that they take there.
  std::uint64_t decoded_items = 0, decoded_on_disk = 0;
};

// Thread-seconds to compute all elements of the program with this executor, and to fingerprint the
// bytes read for them. Measured on samples; errors come from the executor.
struct ComputeSeconds {
  double make = 0, fingerprint = 0;
};
Result<ComputeSeconds> measure_compute_seconds(const Program& program, Executor& executor);

// `copied`: bytes of files that are copied whole. Reads at most 32 MB of the inputs.
Result<Forecast> forecast(const Program& program, const std::vector<const Checkpoint*>& inputs,
                          std::uint64_t copied, std::uint64_t memory);

// The amount of work: bytes, and counts of pieces that have a fixed cost each.
struct ForecastWork {
  std::uint64_t read = 0, written = 0, copied = 0;  // in bytes
  std::uint64_t jobs = 0, tiles = 0;                // jobs that read, chunks that are written
};
// Computes the forecast from measured rates; `make` in thread-seconds, all sizes in bytes.
Forecast predict_run(const StageRates& rates, double make, const ForecastWork& work,
                     std::size_t threads);

}  // namespace shw
