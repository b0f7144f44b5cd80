// Counts on the rig what determines the speed on a GPU: 32-byte sectors touched by a warp's access
// relative to the requested bytes, and bank conflicts of shared memory.
#include <doctest/doctest.h>

#include <bit>
#include <random>

#include "gpu/device.cuh"
#include "rig/traffic.h"
#include "rig_executor.h"
#include "slab_cases.h"

using namespace shw;
using namespace shw::test;

namespace {

using Sizes = std::vector<std::int64_t>;

struct Counted {
  rig::Traffic traffic;
  double read = 0, written = 0;  // touched next to needed
};

// Counts one job; `needed` is the number of bytes of its elements on each side.
Counted counted(TileJob job, const Sizes& sizes, const Sizes& source, const Sizes& target,
                Kernel expected, bool scan = false) {
  SlabCase slab;
  std::int64_t in = 0, out = 0, count = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    in += (sizes[d] - 1) * source[d];
    out += (sizes[d] - 1) * target[d];
    count *= sizes[d];
  }
  slab.in.resize(static_cast<std::size_t>(in) + size_of(job.from));
  if (!scan) slab.out.resize(static_cast<std::size_t>(out) + size_of(job.to));
  SlabDice dice(7);
  fill_slab(slab.in, dice);
  for_each_canonical_pair(pair_of(sizes, source, 0, target, 0), [&](const LayoutPair& pair) {
    job.layouts = pair;
    (scan ? slab.elements : slab.tiles).push_back(job);
  });
  std::vector<std::byte> wanted(slab.out.size(), kPoison);
  Fingerprint sum = run_slowly(slab, wanted);
  RigExecutor rig;
  rig::begin_counting();
  std::string differs = difference(rig, slab, wanted, sum);
  Counted all{rig::counted(), 0, 0};
  REQUIRE_MESSAGE(differs.empty(), differs);
  CHECK(all.traffic.races == 0);
  CHECK(rig.launched[static_cast<std::size_t>(expected)] == 1);
  all.read = static_cast<double>(all.traffic.read_touched) /
             static_cast<double>(count * static_cast<std::int64_t>(size_of(job.from)));
  all.written = static_cast<double>(all.traffic.written_touched) /
                static_cast<double>(count * static_cast<std::int64_t>(size_of(job.to)));
  return all;
}

TileJob copy_of_size(int log) {
  TileJob job;
  job.from = job.to = kOfSize[log];
  return job;
}

}  // namespace

TEST_CASE("rows touch what they hold and no more") {
  CHECK(counted(copy_of_size(0), {300000}, {1}, {1}, Kernel::kRows16).read <= 1.05);
  // Short rows, down to 32 bytes, are gathered.
  for (std::int64_t run : {4096, 512, 128, 32}) {
    CAPTURE(run);
    Counted all =
        counted(copy_of_size(0), {(1 << 18) / run, run}, {3 * run, 1}, {run, 1}, Kernel::kRows16);
    CHECK(all.read <= (run == 32 ? 1.10 : 1.05));
    CHECK(all.written <= 1.05);
  }
}

TEST_CASE("turned planes touch whole sectors and meet no bank twice") {
  for (int log = 0; log < 5; ++log) {
    CAPTURE(log);
    const std::int64_t element = 1 << log, rows = 256, columns = 128;
    Counted all = counted(copy_of_size(log), {rows, columns}, {element, element * rows},
                          {element * columns, element},
                          sized(Kernel::kTranspose1, static_cast<unsigned>(log)));
    CHECK(all.read <= 1.10);
    CHECK(all.written <= 1.10);
    CHECK(all.traffic.shared_phases > 0);
    CHECK(all.traffic.bank_conflicts == 0);
  }
}

TEST_CASE("planes that begin at odd addresses are turned side by side as well") {
  for (int log = 0; log < 4; ++log) {
    CAPTURE(log);
    const std::int64_t element = 1 << log, rows = 127, columns = 129;
    Counted all = counted(copy_of_size(log), {rows, columns}, {element, element * 131},
                          {element * 133, element},
                          sized(Kernel::kTransposeEach1, static_cast<unsigned>(log)));
    CHECK(all.traffic.bank_conflicts == 0);
  }
}

TEST_CASE("interleaved parts are separated and joined without touching more than they hold") {
  for (int log = 0; log < 4; ++log) {
    for (const std::int64_t parts : {2, 4, 8}) {
      if (log == 3 && parts == 8) continue;  // turned as any plane
      CAPTURE(log);
      CAPTURE(parts);
      const std::int64_t element = 1 << log, each = 32768 / parts;
      const Sizes sizes{parts, each}, dense{element * each, element},
          interleaved{element, element * parts};
      const auto size = static_cast<unsigned>(log);
      for (const bool back : {false, true}) {
        CAPTURE(back);
        Counted all = counted(copy_of_size(log), sizes, back ? dense : interleaved,
                              back ? interleaved : dense,
                              sized(back ? Kernel::kInterleave1 : Kernel::kSeparate1, size));
        // A unit of two vectors is read or written in two halves of a sector.
        const auto bytes = static_cast<std::uint32_t>(element);
        const double most =
            interleaved_unit(bytes, static_cast<std::uint32_t>(parts)) > 16 ? 2.05 : 1.05;
        CHECK(all.read <= (back ? 1.05 : most));
        CHECK(all.written <= (back ? most : 1.05));
        CHECK(all.traffic.shared_phases == 0);
      }
    }
  }
}

TEST_CASE("casts touch what they hold and no more") {
  for (Dtype from : kFloats) {
    for (Dtype to : kFloats) {
      if (from == to) continue;
      CAPTURE(name(from));
      CAPTURE(name(to));
      TileJob job{ElementOp::kCast, from, to, {}, {0, 0}, {}};
      const std::int64_t before = size_of(from), after = size_of(to);
      const auto kind = static_cast<unsigned>(std::countr_zero(size_of(from)) * 4 +
                                              std::countr_zero(size_of(to)));
      Counted all = counted(job, {16384}, {before}, {after}, sized(Kernel::kChange1To1, kind));
      CHECK(all.read <= 1.05);
      CHECK(all.written <= 1.05);
    }
  }
}

TEST_CASE("scans touch what they hold and meet no bank twice") {
  for (int log = 0; log < 5; ++log) {
    CAPTURE(log);
    const std::int64_t element = 1 << log;
    Counted all =
        counted(copy_of_size(log), {1 << 16}, {element}, {1},
                sized(Kernel::kFingerprint1, static_cast<unsigned>(std::min(log, 2))), true);
    CHECK(all.read <= 1.05);
    CHECK(all.traffic.bank_conflicts == 0);
  }
}

TEST_CASE("numbers are counted with what they hold read once and little next to it") {
  for (Dtype dtype :
       {Dtype::kUint8, Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64,
        Dtype::kInt16, Dtype::kInt32, Dtype::kInt64, Dtype::kComplex64}) {
    for (bool alike : {false, true}) {
      CAPTURE(name(dtype));
      CAPTURE(alike);
      // Numbers like weights, most within a few powers of two; or one number repeated.
      const std::size_t count = std::size_t{1} << 17, size = size_of(dtype);
      std::vector<std::byte> in(count * size);
      std::mt19937 random(3);
      std::normal_distribution<float> weights(0, 0.02f);
      for (std::size_t i = 0; i < count; ++i) {
        const float value = alike ? 0.0f : weights(random) * (dtype == Dtype::kInt32 ? 1e6f : 1.0f);
        const bool is_float = number_kind(dtype) == NumberKind::kFloat;
        if (is_float)
          cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(&value), 4, dtype,
                   in.data() + i * size, static_cast<std::int64_t>(size), 1);
        else
          std::memcpy(in.data() + i * size, &value, std::min<std::size_t>(size, 4));
      }
      StatisticsSums sums(dtype);
      const StatisticsJob job{dtype, 0, count, &sums};
      RigExecutor rig;
      rig::begin_counting();
      auto done = rig.run({in, {}, {}, {}, std::span(&job, 1)});
      const rig::Traffic all = rig::counted();
      REQUIRE(done.has_value());
      CHECK(sums == count_slowly(in.data(), dtype, count));
      CHECK(all.races == 0);
      CHECK(all.bank_conflicts == 0);
      const auto needed = static_cast<double>(in.size());
      CHECK(static_cast<double>(all.read_touched) <= 1.05 * needed);
      CHECK(static_cast<double>(all.added_touched) <= 0.05 * needed);
      CHECK(all.written_touched == 0);
      // A repeated number is added once per thread and block.
      if (alike) CHECK(all.add_turns <= count / 16);
    }
  }
}

TEST_CASE("the rig sees what touches too much") {
  // Every eighth element of 4 bytes is in a sector of its own.
  Counted all = counted(copy_of_size(2), {4096}, {32}, {4}, Kernel::kElements);
  CHECK(all.read > 7.9);
}

namespace {

// Each thread writes its place and reads its neighbour's, with or without a barrier in between.
void neighbours(bool with_barrier) {
  __shared__ unsigned int room[64];
  store_shared(&room[threadIdx.x], threadIdx.x);
  if (with_barrier) __syncthreads();
  load_shared(&room[threadIdx.x ^ 1]);
}

}  // namespace

TEST_CASE("the rig sees threads that do not wait for each other") {
  for (bool with_barrier : {true, false}) {
    rig::begin_counting();
    rig::run_blocks(1, 64, [&] { neighbours(with_barrier); });
    CHECK(rig::counted().races == (with_barrier ? 0 : 256));
  }
}
