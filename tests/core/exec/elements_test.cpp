// Fingerprints of source elements compared with the executor's output: the proof of a run relies on
// two independent computations.
#include <doctest/doctest.h>

#include "core/exec/random_input.h"
#include "core/exec/write_blocks.h"
#include "core/memory_sink.h"
#include "core/program/random_program.h"
#include "core/tensor/tile_fingerprint.h"

using namespace shw;
using namespace shw::test;

namespace {

// Executes the work and then corrupts one byte of the result.
class Slipping final : public Executor {
 public:
  Result<Fingerprint> run(const SlabWork& work) override {
    auto sum = inner_->run(work);
    for (const TileJob& job : work.tiles) {
      auto at = static_cast<std::size_t>(job.layouts.target.offset);
      if (at < work.out.size()) work.out[at] ^= std::byte{1};
    }
    return sum;
  }

 private:
  std::unique_ptr<Executor> inner_ = cpu_executor();
};

struct Made {
  Fingerprint read, written;
};

Made made_by(std::unique_ptr<Executor> executor, const Program& program, OutputId output,
             const Checkpoint& input, std::uint64_t slab) {
  const ProgramOutput& out = program.output(output);
  MemoryFile file(out.offset);
  Workspace workspace{SourceOpener(program, {&input}, std::make_shared<DecodedItems>(1 << 20)),
                      std::move(executor)};
  SlabLimits limits{slab, slab};
  auto blocks = write_blocks(program, output, {0, block_count(program, output, limits)}, workspace,
                             limits, file, nullptr);
  if (!blocks) FAIL(blocks.error().message);
  REQUIRE(file.finish(out.offset + out.length));
  Box tile{copy_of(program.offsets(out)), copy_of(program.sizes(out))};
  TileFingerprint written(program.shape(out), tile, size_of(out.dtype));
  written.add(file.bytes);
  CHECK(written.is_complete());
  return {blocks->elements.fingerprint, written.value()};
}

}  // namespace

TEST_CASE("what was read for an output adds up to what the executor made of it") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    Program program = random_program(dice);
    auto input = random_input(program, dice);
    for (std::uint32_t o = 0; o < program.outputs.size(); ++o) {
      CAPTURE(seed);
      Made made = made_by(cpu_executor(), program, OutputId{o}, *input, seed % 2 ? 64 : 1 << 20);
      CHECK(made.read == made.written);
    }
  }
}

TEST_CASE("an executor that slips shows, whether it copies or casts") {
  bool seen[2] = {};
  for (unsigned seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    Program program = random_program(dice);
    auto input = random_input(program, dice);
    for (std::uint32_t o = 0; o < program.outputs.size(); ++o) {
      JobRange jobs = jobs_of(program, OutputId{o});
      if (jobs.last - jobs.first != 1) continue;
      const ProgramJob& job = program.jobs[jobs.first];
      Made made = made_by(std::make_unique<Slipping>(), program, OutputId{o}, *input, 1 << 20);
      // Elements with the same layout in source and result do not pass through the executor.
      bool slipped = made.read != made.written;
      if (job.op == ElementOp::kCast) CHECK(slipped);
      auto kind = static_cast<std::size_t>(job.op);
      if (kind < 2) seen[kind] = seen[kind] || slipped;
    }
  }
  CHECK(seen[static_cast<std::size_t>(ElementOp::kCopy)]);
  CHECK(seen[static_cast<std::size_t>(ElementOp::kCast)]);
}
