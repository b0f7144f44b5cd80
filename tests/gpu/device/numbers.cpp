// Measures `stats --device` on files in the page cache, on the GPU and on the CPU: parts of 32 MiB,
// each read in pieces by one thread and counted by its own counter.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "../slab_cases.h"
#include "core/exec/device_numbers.h"
#include "device.h"
#include "gpu/cuda_executor.h"

namespace shw::test {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::vector<std::byte> weights_of(Dtype dtype, std::size_t part_bytes) {
  const std::size_t width = size_of(dtype);
  std::vector<std::byte> bytes(part_bytes);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    const float weight = normal(random);
    cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(&weight), 4, dtype,
             bytes.data() + at, static_cast<std::int64_t>(width), 1);
  }
  return bytes;
}

struct Counted {
  double seconds = 0;
  StatisticsSums sums;
};

// Like core/facts/values/tensor_statistics.cpp, which passes data in pieces.
std::optional<Counted> count_parts(const MakeStatisticsBackend& make, Dtype dtype, unsigned threads,
                                   const std::vector<std::byte>& part, std::size_t parts) {
  std::vector<std::unique_ptr<StatisticsBackend>> counters;
  for (unsigned t = 0; t < threads; ++t) {
    counters.push_back(make());  // the first part's setup is not measured
    counters.back()->begin(dtype);
    counters.back()->add(part);
    if (!counters.back()->take()) return std::nullopt;
  }
  std::vector<StatisticsSums> sums(threads, StatisticsSums(dtype));
  std::atomic<std::size_t> next{0};
  std::atomic<bool> right{true};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (std::size_t i; (i = next++) < parts;) {
        counters[t]->begin(dtype);
        for (std::size_t at = 0; at < part.size(); at += kPieceBytes)
          counters[t]->add(BytesView(part).subspan(at, std::min(kPieceBytes, part.size() - at)));
        auto counted = counters[t]->take();
        if (counted)
          sums[t] += *counted;
        else
          right = false;
      }
    });
  for (std::thread& thread : running) thread.join();
  Counted all{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
              StatisticsSums(dtype)};
  for (const StatisticsSums& one : sums) all.sums += one;
  return right ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace

bool measure_numbers(const Amounts& amounts) {
  const auto open = [] { return cuda_executor(0); };
  bool right = true;
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kFloat8E4m3fn}) {
    const std::vector<std::byte> part = weights_of(dtype, amounts.part_bytes);
    for (unsigned threads : {4u, 16u}) {
      const Executors executors(open, OnDeviceError::kStop, {"cuda:0", "it was asked for", {}});
      const auto card =
          count_parts(statistics_backends(executors), dtype, threads, part, amounts.parts);
      const auto cores = count_parts(cpu_statistics_backend, dtype, threads, part, amounts.parts);
      if (!card || !cores || !(card->sums == cores->sums)) {
        std::printf("numbers of %s: %s\n", std::string(name(dtype)).c_str(),
                    card ? "they differ" : executors.use().failed.c_str());
        right = false;
        continue;
      }
      const double bytes = static_cast<double>(amounts.parts * part.size());
      std::printf("| stats of %s as weights, %u threads | card %.1f GB/s | cores %.1f GB/s |",
                  std::string(name(dtype)).c_str(), threads, bytes / card->seconds / 1e9,
                  bytes / cores->seconds / 1e9);
      const DeviceUse use = executors.use();
      for (std::size_t i = 0; i < kDeviceStages; ++i)
        std::printf(" %s %.1f GB/s a slab |",
                    std::string(name(static_cast<DeviceStage>(i))).c_str(),
                    static_cast<double>(use.works[i].bytes) / use.works[i].seconds / 1e9);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  return right;
}

}  // namespace shw::test
