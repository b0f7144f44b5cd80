// Times kernels with CUDA events: the median of 20 runs over alternating buffers, relative to a
// device-to-device copy of as many bytes in the same process.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "../slab_cases.h"
#include "device.h"
#include "gpu/device_tables.h"

namespace shw::test {
namespace {

using Sizes = std::vector<std::int64_t>;

// A timed kernel, with the rate that was expected before it was measured.
struct Bench {
  const char* name;
  double predicted;  // share of the copy's speed, in percent
  std::vector<TileJob> tiles, scans;
  std::vector<StatisticsJob> numbers = {};
  bool of_weights = false;  // floats like those of a model instead of random bits
};

TileJob job_of(ElementOp op, Dtype from, Dtype to, const Sizes& sizes, const Sizes& source,
               const Sizes& target, std::int64_t first = 0) {
  TileJob job{op, from, to, {}, {0, 0}, {}};
  for_each_canonical_pair(pair_of(sizes, source, first, target, 0),
                          [&](const LayoutPair& pair) { job.layouts = pair; });
  return job;
}

Dtype of_size(std::int64_t size) {
  return kOfSize[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4];
}

Bench rows(const char* name, double predicted, std::int64_t run, std::int64_t apart,
           std::int64_t bytes, std::int64_t first = 0) {
  return {name,
          predicted,
          {job_of(ElementOp::kCopy, Dtype::kUint8, Dtype::kUint8, {bytes / run, run}, {apart, 1},
                  {run, 1}, first)},
          {}};
}

Bench turned(const char* name, double predicted, std::int64_t element, std::int64_t rows,
             std::int64_t columns) {
  return {name,
          predicted,
          {job_of(ElementOp::kCopy, of_size(element), of_size(element), {rows, columns},
                  {element, element * rows}, {element * columns, element})},
          {}};
}

// `parts` interleaved parts with 2 bytes per element, and back.
Bench interleaved(const char* name, double predicted, std::int64_t parts, std::int64_t all,
                  bool back) {
  const std::int64_t each = all / parts;
  Sizes dense{2 * each, 2}, woven{2, 2 * parts};
  return {name,
          predicted,
          {job_of(ElementOp::kCopy, Dtype::kInt16, Dtype::kInt16, {parts, each},
                  back ? dense : woven, back ? woven : dense)},
          {}};
}

Bench cast(const char* name, double predicted, Dtype from, Dtype to, std::int64_t count,
           ElementOp op = ElementOp::kCast) {
  Bench bench{name, predicted, {job_of(op, from, to, {count}, {size_of(from)}, {size_of(to)})}, {}};
  bench.tiles[0].factor = 0.37f;
  return bench;
}

Bench scan(const char* name, double predicted, Dtype dtype, std::int64_t count) {
  return {name,
          predicted,
          {},
          {job_of(ElementOp::kCopy, dtype, dtype, {count}, {size_of(dtype)}, {1})}};
}

Bench numbers(const char* name, double predicted, Dtype dtype, std::uint64_t bytes) {
  static StatisticsSums sums;
  return {name, predicted, {}, {}, {{dtype, 0, bytes / size_of(dtype), &sums}}};
}

Bench many_tiles(const char* name, double predicted, std::int64_t tiles, std::int64_t bytes) {
  Bench bench{name, predicted, {}, {}};
  for (std::int64_t i = 0; i < tiles; ++i) {
    TileJob job = job_of(ElementOp::kCopy, Dtype::kFloat32, Dtype::kFloat32, {bytes / 4}, {4}, {4});
    job.layouts.source.offset = i * bytes;
    job.layouts.target.offset = (tiles - 1 - i) * bytes;
    bench.tiles.push_back(job);
  }
  return bench;
}

std::vector<Bench> benches() {
  constexpr std::int64_t kBytes = std::int64_t{4} << 30, kMega = 1 << 20;
  std::vector<Bench> all;
  all.push_back(rows("one run", 98, kBytes, kBytes, kBytes));
  all.push_back(rows("rows of 4096 bytes", 97, 4096, 4096 + 512, kBytes / 2));
  all.push_back(rows("rows of 512 bytes", 95, 512, 1024, kBytes / 2));
  all.push_back(rows("rows of 128 bytes", 85, 128, 256, kBytes / 2));
  all.push_back(rows("rows of 64 bytes", 75, 64, 128, kBytes / 2));
  all.push_back(rows("rows of 32 bytes", 60, 32, 64, kBytes / 2));
  all.push_back(rows("one run, 8 bytes aside", 90, kBytes / 2, kBytes / 2, kBytes / 2, 8));
  all.push_back(rows("one run, 2 bytes aside", 40, kBytes / 2, kBytes / 2, kBytes / 2, 2));
  all.push_back(many_tiles("50,000 tiles of 64 KiB", 93, 50000, 65536));
  all.push_back(many_tiles("50,000 tiles of 4 KiB", 35, 50000, 4096));
  all.push_back(turned("turn 16 bytes", 90, 16, 16384, 16384));
  all.push_back(turned("turn 8 bytes", 90, 8, 16384, 32768));
  all.push_back(turned("turn 4 bytes", 90, 4, 32768, 32768));
  all.push_back(turned("turn 2 bytes", 88, 2, 32768, 65536));
  all.push_back(turned("turn 1 byte", 80, 1, 65536, 65536));
  all.push_back(turned("turn 2 bytes, odd sides", 45, 2, 32767, 32767));
  all.push_back(interleaved("de-interleave 2, 2 bytes", 45, 2, kBytes / 4, false));
  all.push_back(interleaved("de-interleave 8, 2 bytes", 45, 8, kBytes / 4, false));
  all.push_back(interleaved("interleave 2, 2 bytes", 45, 2, kBytes / 4, true));
  all.push_back(interleaved("interleave 8, 2 bytes", 45, 8, kBytes / 4, true));
  all.push_back(cast("float32 to bfloat16", 92, Dtype::kFloat32, Dtype::kBfloat16, kBytes / 4));
  all.push_back(cast("float32 to float16", 88, Dtype::kFloat32, Dtype::kFloat16, kBytes / 4));
  all.push_back(cast("float32 to e4m3fn", 85, Dtype::kFloat32, Dtype::kFloat8E4m3fn, kBytes / 4));
  all.push_back(cast("bfloat16 to float32", 92, Dtype::kBfloat16, Dtype::kFloat32, kBytes / 4));
  all.push_back(cast("bfloat16 to e4m3fn", 70, Dtype::kBfloat16, Dtype::kFloat8E4m3fn, kBytes / 2));
  all.push_back(cast("float64 to float32", 90, Dtype::kFloat64, Dtype::kFloat32, kBytes / 8));
  all.push_back(cast("e4m3fn times a factor to bfloat16", 75, Dtype::kFloat8E4m3fn,
                     Dtype::kBfloat16, kBytes / 2, ElementOp::kScale));
  all.push_back(scan("fingerprint of 4 bytes", 90, Dtype::kFloat32, kBytes / 4));
  all.push_back(scan("fingerprint of 2 bytes", 80, Dtype::kBfloat16, kBytes / 2));
  all.push_back(scan("fingerprint of 1 byte", 55, Dtype::kUint8, kBytes));
  Bench turned_scan{"fingerprint of 4 bytes, turned", 25, {}, {}};
  turned_scan.scans.push_back(job_of(ElementOp::kCopy, Dtype::kFloat32, Dtype::kFloat32,
                                     {8192, 8192}, {4, 4 * 8192}, {8192, 1}));
  all.push_back(turned_scan);
  Bench cast_scan{"fingerprint of float32 as bfloat16", 15, {}, {}};
  cast_scan.scans.push_back(
      job_of(ElementOp::kCast, Dtype::kFloat32, Dtype::kBfloat16, {kBytes / 8}, {4}, {1}));
  all.push_back(cast_scan);
  // Random bits are the worst case: each element is in another group of powers than the one before.
  all.push_back(numbers("numbers of float32, random bits", 5, Dtype::kFloat32, kBytes));
  all.push_back(numbers("numbers of bfloat16, random bits", 3, Dtype::kBfloat16, kBytes));
  all.push_back(numbers("numbers of float16, random bits", 8, Dtype::kFloat16, kBytes));
  all.push_back(numbers("numbers of float64, random bits", 4, Dtype::kFloat64, kBytes));
  all.push_back(numbers("numbers of int32, random bits", 15, Dtype::kInt32, kBytes));
  all.push_back(numbers("numbers of e4m3fn, random bits", 15, Dtype::kFloat8E4m3fn, kBytes));
  Bench columns{"every other element of 4 bytes", 40, {}, {}};
  columns.tiles.push_back(
      job_of(ElementOp::kCopy, Dtype::kFloat32, Dtype::kFloat32, {256 * kMega}, {8}, {4}));
  all.push_back(columns);
  // Weights in memory that is filled again: nearly all within one group of powers.
  all.push_back(numbers("numbers of float32, weights", 30, Dtype::kFloat32, kBytes));
  all.back().of_weights = true;
  return all;
}

// Bytes that the jobs must move.
double bytes_of(const Bench& bench) {
  double bytes = 0;
  for (const TileJob& job : bench.tiles)
    bytes += static_cast<double>(elements(job.layouts.target)) *
             (size_of(job.to) + (job.op == ElementOp::kConstant ? 0 : size_of(job.from)));
  for (const TileJob& job : bench.scans)
    bytes += static_cast<double>(elements(job.layouts.target)) * size_of(job.from);
  for (const StatisticsJob& job : bench.numbers)
    bytes += static_cast<double>(job.count) * size_of(job.dtype);
  return bytes;
}

bool ok(cudaError_t error) {
  if (error != cudaSuccess) std::printf("CUDA says: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

// Median of the seconds of one run.
double median(const std::function<bool(int)>& run) {
  constexpr int kRuns = 20;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = -3; i < kRuns; ++i) {
    cudaEventRecord(begin);
    if (!run(i < 0 ? -i : i)) return 0;
    cudaEventRecord(end);
    if (!ok(cudaEventSynchronize(end))) return 0;
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    if (i >= 0) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times[kRuns / 2] * 1e-3;
}

// Reads and sums only: the upper limit of a scan.
__global__ void __launch_bounds__(256) read_all(const uint4* in, std::size_t count, unsigned* out) {
  unsigned sum = 0;
  const std::size_t step = std::size_t{256} * 8;
  for (std::size_t first = blockIdx.x * step + threadIdx.x; first < count;
       first += gridDim.x * step) {
    uint4 held[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) held[i] = __ldcs(in + first + i * 256);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum ^= held[i].x ^ held[i].y ^ held[i].z ^ held[i].w;
  }
  if (sum == 0x12345678) *out = sum;
}

std::vector<std::byte> random_bits(std::size_t bytes) {
  std::vector<std::byte> noise(bytes);
  SlabDice dice(1);
  for (std::size_t at = 0; at < noise.size(); at += 8) {
    const std::uint64_t bits = dice.bits();
    std::memcpy(noise.data() + at, &bits, 8);
  }
  return noise;
}

std::vector<std::byte> weights(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  for (std::size_t at = 0; at < all.size(); at += 4) {
    const float weight = normal(random);
    std::memcpy(all.data() + at, &weight, 4);
  }
  return all;
}

// Fills the memory with copies of the bytes.
bool fill(const DeviceMemory& memory, const std::vector<std::byte>& with) {
  for (std::size_t at = 0; at < memory.size(); at += with.size())
    if (!ok(cudaMemcpy(memory.data() + at, with.data(), std::min(with.size(), memory.size() - at),
                       cudaMemcpyHostToDevice)))
      return false;
  return true;
}

constexpr std::size_t kRoom = (std::size_t{4} << 30) + (std::size_t{1} << 20);

}  // namespace

bool measure_kernels(const std::string& only) {
  DeviceMemory in[2], out[2];
  const std::size_t pattern = std::size_t{64} << 20;
  for (int i = 0; i < 2; ++i)
    if (!in[i].reserve(kRoom) || !out[i].reserve(kRoom) || !fill(in[i], random_bits(pattern)))
      return false;
  constexpr double kBytes = 4.0 * (1 << 30);
  double copy = median([&](int i) {
    return ok(cudaMemcpyAsync(out[i % 2].data(), in[i % 2].data(), std::size_t{4} << 30,
                              cudaMemcpyDeviceToDevice, nullptr));
  });
  const double copy_rate = 2 * kBytes / copy;
  double read = median([&](int i) {
    read_all<<<132 * 8, 256>>>(reinterpret_cast<const uint4*>(in[i % 2].data()),
                               (std::size_t{4} << 30) / 16,
                               reinterpret_cast<unsigned*>(out[0].data()));
    return ok(cudaGetLastError());
  });
  const double read_rate = kBytes / read;
  std::printf("copy from device to device, 4 GiB: %.0f GB/s read and written\n", copy_rate / 1e9);
  std::printf("reading alone, 4 GiB: %.0f GB/s\n\n", read_rate / 1e9);
  std::printf("| kernel | GB/s | of the copy, or of reading | predicted |\n|---|---|---|---|\n");
  bool right = true, has_weights = false;
  for (const Bench& bench : benches()) {
    if (!only.empty() && std::string(bench.name).find(only) == std::string::npos) continue;
    if (bench.of_weights != has_weights) {
      has_weights = bench.of_weights;
      const auto now = has_weights ? weights(pattern) : random_bits(pattern);
      if (!fill(in[0], now) || !fill(in[1], now)) return false;
    }
    SlabTables tables;
    add_tiles(tables, bench.tiles);
    add_fingerprints(tables, bench.scans);
    add_numbers(tables, bench.numbers);
    DeviceTables device;
    if (!device.upload(tables, nullptr) || !ok(cudaStreamSynchronize(nullptr))) return false;
    const double seconds = median([&](int i) {
      auto launched = device.launch(in[i % 2].data(), out[i % 2].data(), nullptr);
      if (!launched) std::printf("%s\n", launched.error().message.c_str());
      return launched.has_value();
    });
    right = right && seconds > 0;
    const double rate = bytes_of(bench) / seconds;
    std::printf("| %s | %.0f | %.1f %% | %.0f %% |\n", bench.name, rate / 1e9,
                100 * rate / (bench.tiles.empty() ? read_rate : copy_rate), bench.predicted);
  }
  return right;
}

}  // namespace shw::test
