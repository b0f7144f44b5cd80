// Compares a real card with the CPU: random slabs, every code of 8 and 16 bits, and every float.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "../slab_cases.h"
#include "device.h"
#include "gpu/cuda_executor.h"
#include "gpu/cuda_memory.h"

namespace shw::test {
namespace {

std::unique_ptr<Executor> card() {
  auto executor = cuda_executor(0);
  if (!executor) {
    std::printf("%s\n", executor.error().message.c_str());
    std::exit(4);
  }
  return std::move(*executor);
}

template <class Work>
void on_all_cores(std::size_t count, Work work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < count;) work(i);
    });
  for (std::thread& thread : threads) thread.join();
}

// Contiguous elements, cast to every other dtype: one tile each.
struct AllCasts {
  std::vector<TileJob> tiles;
  std::size_t out = 0;
  AllCasts(Dtype from, std::int64_t count) {
    for (Dtype to : kFloats) {
      if (to == from) continue;
      TileJob job{ElementOp::kCast, from, to, {}, {0, 0}, {}};
      for_each_canonical_pair(pair_of(Extents{count}, Extents{size_of(from)}, 0,
                                      Extents{size_of(to)}, static_cast<std::int64_t>(out)),
                              [&](const LayoutPair& pair) { job.layouts = pair; });
      tiles.push_back(job);
      out += static_cast<std::size_t>(count) * size_of(to);
    }
  }
  // Names the dtype that was cast wrongly; empty if there is none.
  std::string wrong(const std::byte* in, const std::byte* made) const {
    std::vector<std::byte> wanted;
    for (const TileJob& job : tiles) {
      const std::int64_t count = elements(job.layouts.target);
      const auto bytes = static_cast<std::size_t>(count) * size_of(job.to);
      wanted.resize(bytes);
      cast_row(job.from, in, size_of(job.from), job.to, wanted.data(), size_of(job.to), count);
      if (std::memcmp(wanted.data(), made + job.layouts.target.offset, bytes) != 0)
        return std::string(name(job.from)) + " to " + std::string(name(job.to));
    }
    return "";
  }
};

}  // namespace

bool check_slabs(const Amounts& amounts) {
  auto cpu = cpu_executor(), gpu = card();
  std::uint64_t bytes = 0;
  for (std::uint64_t seed = 0; seed < amounts.slabs; ++seed) {
    SlabCase slab =
        random_slab(seed, seed % 8 == 0 ? amounts.slab_elements
                                        : std::min<std::uint64_t>(amounts.slab_elements, 100000));
    std::vector<std::byte> wanted(slab.out.size(), kPoison);
    auto sum = cpu->run(slab.work(wanted));
    std::string differs = difference(*gpu, slab, wanted, *sum);
    bytes += slab.in.size() + slab.out.size();
    if (differs.empty()) continue;
    std::printf("slab %llu: %s\n", static_cast<unsigned long long>(seed), differs.c_str());
    return false;
  }
  std::printf("%llu slabs, %.1f GB: equal to the CPU's, fingerprints included\n",
              static_cast<unsigned long long>(amounts.slabs), static_cast<double>(bytes) / 1e9);
  return true;
}

bool check_codes() {
  auto gpu = card();
  for (Dtype from : kFloats) {
    const std::size_t size = size_of(from);
    if (size > 2) continue;
    const std::size_t count = size == 1 ? 256 : 65536;
    std::vector<std::byte> in(count * size);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(in.data() + i * size, &i, size);
    AllCasts casts(from, static_cast<std::int64_t>(count));
    std::vector<std::byte> out(casts.out);
    auto made = gpu->run({in, casts.tiles, {}, out});
    const std::string wrong = made ? casts.wrong(in.data(), out.data()) : made.error().message;
    if (wrong.empty()) continue;
    std::printf("%s\n", wrong.c_str());
    return false;
  }
  std::printf("every code of 8 and 16 bits to every other dtype: equal to the CPU's\n");
  return true;
}

// Checks the requested number of floats, spaced evenly over 2^32.
bool check_floats(const Amounts& amounts) {
  const std::size_t at_once = amounts.floats_at_once, part = at_once / 64;
  const std::uint64_t step = (std::uint64_t{1} << 32) / amounts.floats;
  auto gpu = card();
  AllCasts casts(Dtype::kFloat32, static_cast<std::int64_t>(at_once));
  PinnedMemory in, out;
  if (!in.reserve(at_once * 4) || !out.reserve(casts.out)) return false;
  std::atomic<bool> right{true};
  for (std::uint64_t first = 0; first < amounts.floats; first += at_once) {
    on_all_cores(64, [&](std::size_t i) {
      for (std::size_t k = i * part; k < (i + 1) * part; ++k) {
        const auto bits = static_cast<std::uint32_t>((first + k) * step);
        std::memcpy(in.data() + k * 4, &bits, 4);
      }
    });
    auto made = gpu->run({{in.data(), at_once * 4}, casts.tiles, {}, {out.data(), casts.out}});
    if (!made) {
      std::printf("%s\n", made.error().message.c_str());
      return false;
    }
    on_all_cores(64, [&](std::size_t i) {
      std::vector<std::byte> wanted(part * 8);
      for (const TileJob& job : casts.tiles) {
        const std::size_t size = size_of(job.to);
        cast_row(Dtype::kFloat32, in.data() + i * part * 4, 4, job.to, wanted.data(),
                 static_cast<std::int64_t>(size), static_cast<std::int64_t>(part));
        if (std::memcmp(wanted.data(), out.data() + job.layouts.target.offset + i * part * size,
                        part * size) == 0)
          continue;
        if (right.exchange(false))
          std::printf("floats from %llx: to %s\n", static_cast<unsigned long long>(first * step),
                      std::string(name(job.to)).c_str());
      }
    });
    if (!right) return false;
  }
  std::printf("%llu floats to every other dtype: equal to the CPU's\n",
              static_cast<unsigned long long>(amounts.floats));
  return true;
}

}  // namespace shw::test
