// Whole programs, lowered from random plans on random checkpoints, made block by block: by the
// kernels on the rig and by the CPU's executor, to the same bytes, checksums and fingerprints, and
// to what loops over elements give.
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/exec/write_blocks.h"
#include "core/formats/items.h"
#include "core/memory_sink.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"
#include "rig_executor.h"

using namespace shw;
using namespace shw::test;

namespace {

// SHARDWRIGHT_PROGRAMS: how many.
int programs() {
  const char* asked = std::getenv("SHARDWRIGHT_PROGRAMS");
  return asked == nullptr ? 60 : std::atoi(asked);
}

// Runs each slab on the rig, and on the CPU beside it: a run asks no executor for fingerprints, so
// that here the elements of every slab are added up at the places where the tiles put them.
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
    const SlabWork both{work.in, work.tiles, elements, work.out};
    std::vector<std::byte> made(work.out.begin(), work.out.end());
    auto wanted = cpu_->run({both.in, both.tiles, both.elements, made});
    REQUIRE(wanted.has_value());
    auto sum = rig.run(both);
    REQUIRE(sum.has_value());
    CHECK(*sum == *wanted);
    CHECK(std::equal(made.begin(), made.end(), work.out.begin()));
    return sum;
  }

  RigExecutor rig;
  std::size_t slabs = 0;

 private:
  std::unique_ptr<Executor> cpu_ = cpu_executor();
};

// As random_tensors(), with a side now and then that takes a kernel's whole vectors and tiles.
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

DrawnPlan drawn_program(unsigned seed) {
  Dice dice(seed);
  DrawnPlan plan;
  plan.wanted = wide_tensors(dice);
  save_in(plan.store, plan.wanted, dice);
  StepDrawer drawer(plan.wanted, dice, false);
  for (std::int64_t left = dice.pick(1, 5); left > 0; --left) {
    plan.steps.push_back(drawer.draw());
    std::visit(PlainSteps{plan.wanted}, plan.steps.back());
  }
  return plan;
}

struct RigTile {
  std::vector<std::byte> bytes;
  std::uint32_t crc = 0;
  Fingerprint elements;
};

RigTile rig_tile_by(Executor* executor, const LoweredArrangement& lowered, OutputId id,
                    std::uint64_t slab) {
  // Keeps what it is lent.
  struct Lent final : Executor {
    explicit Lent(Executor& to) : executor(to) {}
    Result<Fingerprint> run(const SlabWork& work) override { return executor.run(work); }
    Executor& executor;
  };
  const ProgramOutput& output = lowered.program.output(id);
  MemoryFile file(output.offset);
  Workspace workspace{Storages(lowered.program, lowered.inputs,
                               std::make_shared<DecodedItems>(std::uint64_t{1} << 30)),
                      std::make_unique<Lent>(*executor),
                      {},
                      {},
                      {}};
  const Limits limits{slab, slab};
  auto written = write_blocks(lowered.program, id, {0, block_count(lowered.program, id, limits)},
                              workspace, limits, file, nullptr);
  if (!written) FAIL(written.error().message);
  REQUIRE(file.finish(output.offset + output.length));
  return {file.bytes, crc_of_all(std::span(&*written, 1), output.length), written->elements};
}

constexpr std::uint64_t kRigSlabs[] = {std::uint64_t{64} << 20, 4096, 1000, 256};

}  // namespace

TEST_CASE("random programs come to the same on the rig and on the CPU") {
  auto cpu = cpu_executor();
  RigBesideCpu rig;
  std::size_t tiles = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < programs(); ++i) {
    const auto seed = static_cast<unsigned>(400'000 + i);
    CAPTURE(seed);
    DrawnPlan plan = drawn_program(seed);
    Arrangement all = taken(open_in(plan.store, "/ck"), plan.steps);
    WantedForm form{&dcp_format(), 0, "/out"};
    auto lowered = lower_arrangement(all, form);
    if (!lowered) FAIL(lowered.error().message << "\n" << told(plan.steps));
    std::size_t made = 0;
    for (const OutputTensor& tensor : lowered->outputs.tensors) {
      const PlainTensor& wanted = plan.wanted.at(tensor.fqn);
      for (const OutputTile& tile : tensor.tiles) {
        if (tile.kept) continue;
        const OutputId id = lowered->made[made++];
        RigTile one = rig_tile_by(cpu.get(), *lowered, id, kRigSlabs[i % 4]);
        RigTile other = rig_tile_by(&rig, *lowered, id, kRigSlabs[i % 4]);
        CHECK(one.bytes == other.bytes);
        CHECK(one.bytes == bytes_in(wanted, tile.box));
        CHECK(one.crc == other.crc);
        CHECK(one.elements == other.elements);
        ++tiles;
        bytes += one.bytes.size();
      }
    }
  }
  std::size_t kernels = 0;
  for (std::size_t launched : rig.rig.launched) kernels += launched != 0 ? 1 : 0;
  MESSAGE(programs() << " programs, " << tiles << " tiles of " << bytes << " bytes in " << rig.slabs
                     << " slabs, by " << kernels << " kernels");
  CHECK(kernels >= 20);
}
