// Measures a pipeline from file to file in memory-backed file systems: each thread has a slab of
// pinned memory on either side, a stream and tables, so that one thread reads while another one's
// slab is on its way to the GPU. Each stage is also run alone with as many threads, because the
// whole cannot be faster than the slowest stage. The CPU executor does the same work for
// comparison.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <thread>

#include "../slab_cases.h"
#include "device.h"
#include "gpu/cuda_executor.h"
#include "gpu/device_tables.h"

namespace shw::test {
namespace {

enum Stage : unsigned {
  kRead = 1,
  kSend = 2,
  kKernel = 4,
  kFetch = 8,
  kWrite = 16,
  kCpu = 32,
  kRing = 64
};

struct Work {
  const char* name;
  std::vector<TileJob> tiles, elements;
  std::size_t in, out;  // bytes of a slab
  std::size_t slabs;
};

struct Files {
  int in, out;
};

struct Lane {
  PinnedMemory in, out;
  DeviceMemory device_in, device_out;
  DeviceTables tables;
  cudaStream_t stream = nullptr;
  ~Lane() {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  bool open(const Work& work) {
    SlabTables slab;
    add_tiles(slab, work.tiles);
    add_fingerprints(slab, work.elements);
    return in.reserve(work.in) && out.reserve(work.out) && device_in.reserve(work.in) &&
           device_out.reserve(work.out) &&
           cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
           tables.upload(slab, stream) && cudaStreamSynchronize(stream) == cudaSuccess;
  }

  bool carry(const Work& work, std::size_t slab, unsigned stages, const Files& files,
             Fingerprint& sum) {
    if ((stages & kRead) != 0 &&
        pread(files.in, in.data(), work.in, static_cast<off_t>(slab * work.in)) < 0)
      return false;
    if ((stages & kCpu) != 0) {
      auto made = cpu_executor()->run(
          {{in.data(), work.in}, work.tiles, work.elements, {out.data(), work.out}});
      sum += *made;
    }
    if ((stages & kSend) != 0)
      cudaMemcpyAsync(device_in.data(), in.data(), work.in, cudaMemcpyHostToDevice, stream);
    if ((stages & kKernel) != 0 && !tables.launch(device_in.data(), device_out.data(), stream))
      return false;
    if ((stages & kFetch) != 0)
      cudaMemcpyAsync(out.data(), device_out.data(), work.out, cudaMemcpyDeviceToHost, stream);
    if ((stages & kKernel) != 0 && !tables.fetch(stream)) return false;
    if (cudaStreamSynchronize(stream) != cudaSuccess) return false;
    if ((stages & kKernel) != 0) sum += tables.sum();
    return (stages & kWrite) == 0 ||
           pwrite(files.out, out.data(), work.out, static_cast<off_t>(slab * work.out)) >= 0;
  }
};

struct Ran {
  double seconds = 0;
  Fingerprint sum;
  DeviceWorks works{};  // measured by the executor's own events
};

// Works like write_blocks(): each thread has an executor with several slabs in progress, and waits
// for the oldest if no more are allowed.
class Ring {
 public:
  bool open(const Work& work) {
    auto opened = cuda_executor(0);
    if (!opened) return false;
    executor_ = std::move(*opened);
    pairs_.resize(executor_->max_in_flight());
    for (Pair& pair : pairs_) {
      pair.in.room(work.in, executor_->memory());
      pair.out.room(work.out, executor_->memory());
    }
    return true;
  }
  // Processes the slabs that `next` gives out.
  bool carry(const Work& work, const Files& files, std::atomic<std::size_t>& next, Ran& ran) {
    bool right = true;
    for (std::size_t slab, turn = 0; right && (slab = next++) < work.slabs; ++turn) {
      if (under_way_.size() == pairs_.size()) right = write_oldest(work, files, ran);
      Pair& pair = pairs_[turn % pairs_.size()];
      auto in = pair.in.room(work.in), out = pair.out.room(work.out);
      right = right && pread(files.in, in.data(), in.size(), place(slab, work.in)) >= 0;
      executor_->begin({in, work.tiles, work.elements, out});
      under_way_.push_back({slab, out});
    }
    while (!under_way_.empty()) right = write_oldest(work, files, ran) && right;
    ran.works = executor_->collect_device_times();
    return right;
  }

 private:
  struct Pair {
    Slab in, out;
  };
  struct UnderWay {
    std::size_t slab;
    std::span<std::byte> out;
  };
  static off_t place(std::size_t slab, std::size_t bytes) {
    return static_cast<off_t>(slab * bytes);
  }
  bool write_oldest(const Work& work, const Files& files, Ran& ran) {
    const UnderWay oldest = under_way_.front();
    under_way_.pop_front();
    auto made = executor_->finish();
    if (!made) return false;
    ran.sum += *made;
    return pwrite(files.out, oldest.out.data(), work.out, place(oldest.slab, work.out)) >= 0;
  }

  std::unique_ptr<Executor> executor_;
  std::vector<Pair> pairs_;
  std::deque<UnderWay> under_way_;
};

// Runs as many threads as there are workers, each of which processes slabs until none is left.
template <class Worker, class Carry>
std::optional<Ran> run_on(std::vector<Worker>& workers, Carry carry) {
  std::vector<Ran> parts(workers.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> right{true};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < workers.size(); ++t)
    running.emplace_back([&, t] {
      if (!carry(workers[t], next, parts[t])) right = false;
    });
  for (std::thread& thread : running) thread.join();
  Ran ran{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), {}, {}};
  for (const Ran& part : parts) {
    ran.sum += part.sum;
    for (std::size_t i = 0; i < kDeviceStages; ++i) {
      ran.works[i].bytes += part.works[i].bytes;
      ran.works[i].seconds += part.works[i].seconds;
    }
  }
  return right ? std::optional(ran) : std::nullopt;
}

std::optional<Ran> run_ring(const Work& work, unsigned threads, const Files& files) {
  std::vector<Ring> rings(threads);
  for (Ring& ring : rings)
    if (!ring.open(work)) return std::nullopt;
  if (ftruncate(files.out, 0) != 0) return std::nullopt;
  return run_on(rings, [&](Ring& ring, std::atomic<std::size_t>& next, Ran& ran) {
    return ring.carry(work, files, next, ran);
  });
}

std::optional<Ran> run_stages(const Work& work, unsigned stages, unsigned threads,
                              const Files& files) {
  std::vector<Lane> lanes(threads);
  for (Lane& lane : lanes) {
    if (!lane.open(work)) return std::nullopt;
    std::memset(lane.in.data(), 0x5A, work.in);
    std::memset(lane.out.data(), 0x5A, work.out);
  }
  if ((stages & kWrite) != 0 && ftruncate(files.out, 0) != 0) return std::nullopt;
  return run_on(lanes, [&](Lane& lane, std::atomic<std::size_t>& next, Ran& ran) {
    bool right = true;
    for (std::size_t slab; right && (slab = next++) < work.slabs;)
      right = lane.carry(work, slab, stages, files, ran.sum);
    return right;
  });
}

// Contiguous slabs of float32, 64 MiB each, for the whole amount of data.
Work work_of(const char* name, ElementOp op, Dtype to, bool turned, const Amounts& amounts) {
  const std::int64_t side = amounts.side;
  const Extents sizes{side, side}, rows{side, 1};
  const auto after = static_cast<std::int64_t>(size_of(to));
  TileJob job{op, Dtype::kFloat32, to, {}, {0, 0}, {}};
  Work work{name,
            {},
            {},
            static_cast<std::size_t>(side * side * 4),
            static_cast<std::size_t>(side * side * after),
            amounts.pipeline_slabs};
  const Extents source = turned ? Extents{4, side * 4} : Extents{side * 4, 4};
  for_each_canonical_pair(pair_of(sizes, source, 0, Extents{side * after, after}, 0),
                          [&](const LayoutPair& pair) { job.layouts = pair; });
  work.tiles.push_back(job);
  for_each_canonical_pair(pair_of(sizes, source, 0, rows, 0),
                          [&](const LayoutPair& pair) { job.layouts = pair; });
  work.elements.push_back(job);
  return work;
}

// Two files in memory that are deleted when closed.
class TwoFiles {
 public:
  ~TwoFiles() {
    for (int file : {files_.in, files_.out})
      if (file >= 0) close(file);
  }
  // Filled once, since every work reads equally many bytes.
  bool open(const std::string& folder, std::size_t slab_bytes, std::size_t slabs) {
    files_ = {opened(folder + "/shardwright_in"), opened(folder + "/shardwright_out")};
    if (files_.in < 0 || files_.out < 0) {
      std::printf("no files can be made in %s\n", folder.c_str());
      return false;
    }
    std::vector<std::byte> noise(slab_bytes);
    SlabDice dice(3);
    for (std::size_t at = 0; at < noise.size(); at += 8) {
      const std::uint64_t bits = dice.bits();
      std::memcpy(noise.data() + at, &bits, 8);
    }
    std::atomic<std::size_t> next{0};
    std::vector<int> lanes(8);
    const auto filled = run_on(lanes, [&](int&, std::atomic<std::size_t>&, Ran&) {
      for (std::size_t slab; (slab = next++) < slabs;)
        if (pwrite(files_.in, noise.data(), noise.size(),
                   static_cast<off_t>(slab * noise.size())) != static_cast<ssize_t>(noise.size()))
          return false;
      return true;
    });
    if (!filled)
      std::printf("%s has no room for %zu GB\n", folder.c_str(), slabs * slab_bytes >> 29);
    return filled.has_value();
  }
  const Files& get() const { return files_; }

 private:
  static int opened(const std::string& name) {
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    unlink(name.c_str());
    return file;
  }
  Files files_{-1, -1};
};

bool measure(const Work& work, const Files& files, unsigned threads) {
  bool right = true;
  struct Row {
    const char* name;
    unsigned stages;
    std::size_t bytes;
  };
  const Row rows[] = {{"read", kRead, work.in},
                      {"to the GPU", kSend, work.in},
                      {"kernels", kKernel, work.in},
                      {"from the GPU", kFetch, work.out},
                      {"write", kWrite, work.out},
                      {"all, by the GPU", kRead | kSend | kKernel | kFetch | kWrite, work.in},
                      {"all, by the executor", kRing, work.in},
                      {"all, by the CPU", kRead | kCpu | kWrite, work.in}};
  double slowest = 0;
  std::vector<Fingerprint> sums;
  std::printf("%s, %u threads, %zu slabs of %zu MiB:", work.name, threads, work.slabs,
              work.in >> 20);
  for (const Row& row : rows) {
    auto ran = !right                ? std::nullopt
               : row.stages == kRing ? run_ring(work, threads, files)
                                     : run_stages(work, row.stages, threads, files);
    if (!ran) {
      right = false;
      break;
    }
    const bool alone = row.stages <= kWrite && (row.stages & (row.stages - 1)) == 0;
    if (alone) slowest = std::max(slowest, ran->seconds);
    std::printf(" %s %.1f GB/s", row.name,
                static_cast<double>(work.slabs * row.bytes) / ran->seconds / 1e9);
    if (!alone) std::printf(" (%.0f %% of the slowest stage)", 100 * slowest / ran->seconds);
    std::printf(" |");
    if (!alone) sums.push_back(ran->sum);
    if (row.stages != kRing) continue;
    constexpr const char* kNames[kDeviceStages] = {"there", "kernels", "back"};
    for (std::size_t i = 0; i < kDeviceStages; ++i)
      std::printf(" %s %.1f GB/s a slab,", kNames[i],
                  static_cast<double>(ran->works[i].bytes) / ran->works[i].seconds / 1e9);
    std::printf(" |");
  }
  std::printf("\n");
  std::fflush(stdout);
  if (right && !std::all_of(sums.begin(), sums.end(),
                            [&](const Fingerprint& sum) { return sum == sums[0]; })) {
    std::printf("the fingerprints differ\n");
    right = false;
  }
  return right;
}

}  // namespace

bool measure_pipeline(const std::string& folder, const Amounts& amounts) {
  const Work turned = work_of("float32 turned", ElementOp::kCopy, Dtype::kFloat32, true, amounts);
  const Work cast =
      work_of("float32 to bfloat16", ElementOp::kCast, Dtype::kBfloat16, false, amounts);
  const Work plain = work_of("float32 as it is", ElementOp::kCopy, Dtype::kFloat32, false, amounts);
  TwoFiles files;
  if (!files.open(folder, plain.in, plain.slabs)) return false;
  bool right = true;
  for (unsigned threads : {4u, 8u, 16u}) {
    right = measure(turned, files.get(), threads) && right;
    right = measure(cast, files.get(), threads) && right;
  }
  return measure(plain, files.get(), 8) && right;
}

}  // namespace shw::test
