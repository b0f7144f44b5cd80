// Blocks that are still in the executor while the next ones are read, with all outcomes.
#include <doctest/doctest.h>

#include <deque>

#include "core/exec/random_input.h"
#include "core/exec/write_blocks.h"
#include "core/memory_sink.h"
#include "core/program/random_program.h"

using namespace shw;
using namespace shw::test;

namespace {

// Observations, which outlive the executor.
struct Seen {
  std::size_t begun = 0, finished = 0, most = 0;
};

// Delays all work until finish() and leaves garbage in the output until then. May fail at one
// block.
class LateExecutor final : public Executor {
 public:
  LateExecutor(Seen& seen, std::size_t takes, std::size_t fails_at = SIZE_MAX)
      : seen_(seen), takes_(takes), fails_at_(fails_at) {}
  Result<Fingerprint> run(const SlabWork& work) override { return cpu_->run(work); }
  void begin(const SlabWork& work) override {
    ++seen_.begun;
    under_way_.push_back(work);
    seen_.most = std::max(seen_.most, under_way_.size());
  }
  Result<Fingerprint> finish() override {
    const SlabWork work = under_way_.front();
    under_way_.pop_front();
    if (seen_.finished++ == fails_at_) return fail(ErrorKind::kIo, "it failed");
    return cpu_->run(work);
  }
  std::size_t max_in_flight() override { return takes_; }

 private:
  Seen& seen_;
  std::size_t takes_, fails_at_;
  std::unique_ptr<Executor> cpu_ = cpu_executor();
  std::deque<SlabWork> under_way_;
};

struct LateRun {
  Result<WrittenBlocks> written;
  Bytes bytes;
  std::uint64_t peak_bytes = 0;
};
LateRun late_run(std::unique_ptr<Executor> executor, const Program& program, OutputId output,
                 const Checkpoint& input, const SlabLimits& limits) {
  MemoryFile file(program.output(output).offset);
  Workspace workspace{SourceOpener(program, {&input}, std::make_shared<DecodedItems>(1 << 20)),
                      std::move(executor)};
  auto written = write_blocks(program, output, {0, block_count(program, output, limits)}, workspace,
                              limits, file, nullptr);
  return {std::move(written), file.bytes, workspace.peak_bytes};
}

}  // namespace

TEST_CASE("blocks that are under way together come to what they come to one by one") {
  std::size_t most = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    Program program = random_program(dice);
    auto input = random_input(program, dice);
    for (std::uint32_t o = 0; o < program.outputs.size(); ++o) {
      const OutputId output{o};
      const SlabLimits alone{96, 96}, several{96, 96, 96 * 8};
      LateRun wanted = late_run(cpu_executor(), program, output, *input, alone);
      REQUIRE(wanted.written.has_value());
      Seen seen;
      LateRun run = late_run(std::make_unique<LateExecutor>(seen, 1 + seed % 5), program, output,
                             *input, several);
      REQUIRE(run.written.has_value());
      CHECK(run.bytes == wanted.bytes);
      CHECK(run.written->crc == wanted.written->crc);
      CHECK(run.written->elements == wanted.written->elements);
      CHECK(run.peak_bytes <= std::max<std::uint64_t>(several.in_flight_bytes, wanted.peak_bytes));
      CHECK(seen.begun == seen.finished);
      CHECK(seen.most <= 1 + seed % 5);
      most = std::max(most, seen.most);
      // Without memory for more, only one slab is in progress.
      Seen narrow;
      LateRun one =
          late_run(std::make_unique<LateExecutor>(narrow, 5), program, output, *input, alone);
      CHECK(narrow.most <= 1);
      CHECK(one.bytes == wanted.bytes);
    }
  }
  CHECK(most == 5);
}

TEST_CASE("an executor that fails is waited for with all that it has begun") {
  std::size_t failed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    Program program = random_program(dice);
    auto input = random_input(program, dice);
    for (std::uint32_t o = 0; o < program.outputs.size(); ++o) {
      Seen seen;
      LateRun run = late_run(std::make_unique<LateExecutor>(seen, 4, seed % 3), program,
                             OutputId{o}, *input, {96, 96, 96 * 8});
      failed += run.written.has_value() ? 0 : 1;
      if (!run.written) CHECK(run.written.error().message == "it failed");
      CHECK(seen.begun == seen.finished);
    }
  }
  CHECK(failed > 20);
}
