// Programs lowered from random plans on random checkpoints, executed block by block on the rig and
// on the CPU: bytes, checksums, fingerprints and statistics must be equal, also to those of loops
// over elements.
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/exec/device.h"
#include "core/exec/write_blocks.h"
#include "core/formats/items/items.h"
#include "core/formats/table.h"
#include "core/memory_sink.h"
#include "core/repair/plan/plan.h"
#include "core/tensor/statistics.h"
#include "core/transform/lower.h"
#include "core/transform/random_steps.h"
#include "gpu/cuda_executor.h"
#include "rig/streams.h"
#include "rig_executor.h"

using namespace shw;
using namespace shw::test;

namespace {

// SHARDWRIGHT_PROGRAMS: number of programs.
int programs() {
  const char* asked = std::getenv("SHARDWRIGHT_PROGRAMS");
  return asked == nullptr ? 60 : std::atoi(asked);
}

// Runs each slab on the rig and on the CPU. A run requests no fingerprints from executors, so the
// elements of every slab are summed here by their places in the tiles.
class RigBesideCpu final : public Executor {
 public:
  Result<Fingerprint> run(const SlabWork& work) override {
    ++slabs;
    std::vector<TileJob> elements(work.tiles.begin(), work.tiles.end());
    for (TileJob& job : elements) {
      const std::int64_t size = size_of(job.to);
      Layout& target = job.layouts.target;
      target.offset /= size;
      for (int d = 0; d < target.ndim; ++d) target.stride[d] /= size;
    }
    const Dtype dtype = work.tiles.front().from;
    StatisticsSums counted(dtype), wanted_counts(dtype);
    const StatisticsJob numbers{dtype, 0, size_of(dtype) == 0 ? 0 : work.in.size() / size_of(dtype),
                                &counted};
    StatisticsJob wanted_numbers = numbers;
    wanted_numbers.sums = &wanted_counts;
    std::vector<std::byte> made(work.out.begin(), work.out.end());
    auto wanted = cpu_->run({work.in, work.tiles, elements, made, std::span(&wanted_numbers, 1)});
    REQUIRE(wanted.has_value());
    auto sum = rig.run({work.in, work.tiles, elements, work.out, std::span(&numbers, 1)});
    REQUIRE(sum.has_value());
    CHECK(*sum == *wanted);
    CHECK(counted == wanted_counts);
    CHECK(std::equal(made.begin(), made.end(), work.out.begin()));
    return sum;
  }

  RigExecutor rig;
  std::size_t slabs = 0;

 private:
  std::unique_ptr<Executor> cpu_ = cpu_executor();
};

// Keeps the executor that it was given.
class Lent final : public Executor {
 public:
  explicit Lent(Executor& to) : to_(to) {}
  Result<Fingerprint> run(const SlabWork& work) override { return to_.run(work); }

 private:
  Executor& to_;
};

// Like random_tensors(), but some sides fit a kernel's whole vectors and tiles.
PlainCheckpoint wide_tensors(Dice& dice) {
  PlainCheckpoint all = random_tensors(dice);
  for (auto& [fqn, tensor] : all) {
    if (fqn.starts_with("quantised") || tensor.shape.empty() || dice.one_in(3)) continue;
    auto side =
        static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(tensor.shape.size()) - 1));
    tensor.shape[side] = 16 * dice.pick(1, 8);
    if (tensor.shape.size() > 1 && dice.one_in(2)) {
      tensor.shape.resize(2);
      tensor.shape[1 - std::min<std::size_t>(side, 1)] = 16 * dice.pick(1, 3);
    }
    tensor = random_tensor(tensor.dtype, tensor.shape, dice);
  }
  return all;
}

struct DrawnProgram {
  MemoryStore store{};
  PlainCheckpoint wanted;  // after the steps
  Plan plan;
};

DrawnProgram drawn_program(unsigned seed) {
  Dice dice(seed);
  DrawnProgram drawn;
  drawn.wanted = wide_tensors(dice);
  save_in(drawn.store, drawn.wanted, dice);
  StepDrawer drawer(drawn.wanted, dice, false);
  for (std::int64_t left = dice.pick(1, 5); left > 0; --left) {
    drawn.plan.steps.push_back(drawer.draw());
    std::visit(PlainSteps{drawn.wanted}, drawn.plan.steps.back());
  }
  return drawn;
}

struct LoweredProgram {
  TargetState all;  // has the tensors that `made` reads
  LoweredTarget made;
};

LoweredProgram lowered_program(const DrawnProgram& drawn) {
  const Format* dcp = nullptr;
  for (const FormatRow& row : formats())
    if (row.format->name == "dcp") dcp = row.format;
  auto all = apply_steps(target_state_of(open_in(drawn.store, "/ck")), drawn.plan.steps);
  if (!all) FAIL(all.error().message << "\n" << plan_to_json(drawn.plan));
  auto lowered = lower_target(*all, {dcp, 0, "/out"});
  if (!lowered) FAIL(lowered.error().message << "\n" << plan_to_json(drawn.plan));
  return {std::move(*all), std::move(*lowered)};
}

struct RigTile {
  std::vector<std::byte> bytes;
  std::uint32_t crc = 0;
  ElementSums elements;
  friend bool operator==(const RigTile&, const RigTile&) = default;
};

RigTile tile_by(std::unique_ptr<Executor> executor, const LoweredTarget& lowered, OutputId id,
                std::uint64_t slab) {
  const ProgramOutput& output = lowered.program.output(id);
  MemoryFile file(output.offset);
  Workspace workspace{SourceOpener(lowered.program, lowered.inputs,
                                   std::make_shared<DecodedItems>(std::uint64_t{1} << 30)),
                      std::move(executor)};
  const SlabLimits limits{slab, slab, 8 * slab};
  auto written = write_blocks(lowered.program, id, {0, block_count(lowered.program, id, limits)},
                              workspace, limits, file, nullptr);
  if (!written) FAIL(written.error().message);
  REQUIRE(file.finish(output.offset + output.length));
  return {file.bytes, combine_range_crcs(std::span(&*written, 1), output.length),
          written->elements};
}

// Visits every computed tile of a program with the result of loops over elements.
template <class Visit>
void each_made_tile(const DrawnProgram& drawn, const LoweredTarget& lowered, Visit visit) {
  std::size_t made = 0;
  for (const OutputTensor& tensor : lowered.outputs.tensors)
    for (const OutputTile& tile : tensor.tiles)
      if (!tile.kept) visit(lowered.made[made++], bytes_in(drawn.wanted.at(tensor.fqn), tile.box));
}

constexpr std::uint64_t kRigSlabs[] = {std::uint64_t{64} << 20, 4096, 1000, 256};

}  // namespace

TEST_CASE("random programs come to the same on the rig and on the CPU") {
  RigBesideCpu rig;
  std::size_t tiles = 0, bytes = 0;
  for (int i = 0; i < programs(); ++i) {
    const auto seed = static_cast<unsigned>(400'000 + i);
    CAPTURE(seed);
    const DrawnProgram drawn = drawn_program(seed);
    const LoweredProgram program = lowered_program(drawn);
    const LoweredTarget& lowered = program.made;
    each_made_tile(drawn, lowered, [&](OutputId id, const Bytes& wanted) {
      const RigTile one = tile_by(cpu_executor(), lowered, id, kRigSlabs[i % 4]);
      const RigTile other = tile_by(std::make_unique<Lent>(rig), lowered, id, kRigSlabs[i % 4]);
      CHECK(one.bytes == wanted);
      CHECK(one == other);
      ++tiles;
      bytes += one.bytes.size();
    });
  }
  std::size_t kernels = 0;
  for (std::size_t launched : rig.rig.launched) kernels += launched != 0 ? 1 : 0;
  MESSAGE(programs() << " programs, " << tiles << " tiles of " << bytes << " bytes in " << rig.slabs
                     << " slabs, by " << kernels << " kernels");
  CHECK(kernels >= 20);
}

TEST_CASE("random programs come to the same with blocks on their way to a card and back") {
  std::size_t tiles = 0, overtaken = 0;
  for (int i = 0; i < programs() / 4; ++i) {
    const auto seed = static_cast<unsigned>(900'000 + i);
    CAPTURE(seed);
    const DrawnProgram drawn = drawn_program(seed);
    const LoweredProgram program = lowered_program(drawn);
    const LoweredTarget& lowered = program.made;
    rig::begin_streams(seed);
    // In every other program the GPU fails during the run.
    if (i % 2 == 1) rig::fail_from(1 + seed % 40);
    auto executors =
        choose_executors({DeviceKind::kCuda, 0, OnDeviceError::kCpu, cuda_gpus}, lowered.program);
    REQUIRE(executors.has_value());
    each_made_tile(drawn, lowered, [&](OutputId id, const Bytes& wanted) {
      const RigTile one = tile_by(cpu_executor(), lowered, id, kRigSlabs[1 + i % 3]);
      const RigTile other = tile_by(executors->make(), lowered, id, kRigSlabs[1 + i % 3]);
      CHECK(one.bytes == wanted);
      CHECK(one == other);
      ++tiles;
    });
    overtaken += rig::stream_counts().overtaken;
    rig::begin_streams(seed);
    CHECK(rig::memory_held() == 0);
  }
  CHECK(tiles > 0);
  CHECK(overtaken > 0);
}
