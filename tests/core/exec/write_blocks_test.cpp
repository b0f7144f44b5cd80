#include "core/exec/write_blocks.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/formats/zip/crc32.h"
#include "core/memory_sink.h"
#include "core/model/builder.h"
#include "core/program/program_builder.h"
#include "core/program/random_program.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes random_file(std::size_t length, Dice& dice) {
  Bytes file(length);
  for (std::byte& byte : file) byte = static_cast<std::byte>(dice.pick(0, 255));
  return file;
}

std::shared_ptr<const Checkpoint> checkpoint_of(std::shared_ptr<const Directory> directory) {
  CheckpointBuilder builder;
  builder.set_directory(std::move(directory));
  return builder.finish();
}

Workspace workspace_of(const Program& program, const Checkpoint& input) {
  auto decoded = std::make_shared<DecodedItems>(1 << 20);
  return {SourceOpener(program, {&input}, decoded), cpu_executor()};
}

Result<WrittenBlocks> write_all(const Program& program, OutputId output, Workspace& workspace,
                                const SlabLimits& limits, OutputFile& file,
                                Progress* progress = nullptr) {
  BlockRange all{0, block_count(program, output, limits)};
  return write_blocks(program, output, all, workspace, limits, file, progress);
}

struct Ran {
  Bytes payload;
  std::uint32_t crc = 0;
  std::uint64_t peak_bytes = 0, holes = 0;
};
// In ranges of `at_once` blocks, the last range first.
Ran run(const Program& program, OutputId output, Workspace& workspace, std::uint64_t slab,
        std::uint64_t at_once = UINT64_MAX) {
  const ProgramOutput& out = program.output(output);
  MemoryFile file(out.offset);
  std::uint64_t count = block_count(program, output, SlabLimits{slab, slab});
  at_once = std::min(at_once, count);
  std::vector<WrittenBlocks> ranges((count + at_once - 1) / at_once);
  Ran ran;
  workspace.peak_bytes = 0;
  for (std::size_t i = ranges.size(); i-- > 0;) {
    BlockRange range{i * at_once, std::min((i + 1) * at_once, count)};
    auto written =
        write_blocks(program, output, range, workspace, SlabLimits{slab, slab}, file, nullptr);
    if (!written) FAIL(written.error().message);
    ranges[i] = *written;
  }
  REQUIRE(file.finish(out.offset + out.length));
  ran.payload = file.bytes;
  ran.crc = combine_range_crcs(ranges, out.length);
  ran.holes = out.length - file.written;
  ran.peak_bytes = workspace.peak_bytes;
  return ran;
}
Ran run(const Program& program, OutputId output, const Checkpoint& input, std::uint64_t slab) {
  Workspace workspace = workspace_of(program, input);
  return run(program, output, workspace, slab);
}

// Counts the requested bytes.
struct Counted {
  std::shared_ptr<std::uint64_t> bytes = std::make_shared<std::uint64_t>(0);
  std::shared_ptr<const Directory> over(std::shared_ptr<const Directory> inner) const {
    return faulty_directory(std::move(inner),
                            [bytes = bytes](const std::string&, std::uint64_t,
                                            std::size_t length) -> std::optional<Error> {
                              *bytes += length;
                              return std::nullopt;
                            });
  }
};

}  // namespace

TEST_CASE(
    "what an executor writes is what a loop over the elements gives, in any ranges of blocks") {
  Dice dice(23);
  Bytes file = random_file(1 << 17, dice);
  auto input = checkpoint_of(memory_directory("in", {{"source", file}}));
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    Program program = random_program(dice);
    REQUIRE(prove(program));
    // Old contents of the slabs must not appear in the next output.
    Workspace workspace = workspace_of(program, *input);
    for (std::uint32_t o = 0; o < program.outputs.size(); ++o) {
      Bytes wanted = payload_slowly(program, OutputId{o}, file);
      for (std::uint64_t slab : {16, 100, 1 << 20}) {
        std::uint64_t some = dice.pick(1, 9);
        for (std::uint64_t at_once : {std::uint64_t{UINT64_MAX}, some}) {
          Ran ran = run(program, OutputId{o}, workspace, slab, at_once);
          CHECK(ran.payload == wanted);
          CHECK(ran.crc == crc32_of(wanted));
          CHECK(ran.peak_bytes <= 2 * slab);
        }
      }
    }
  }
}

TEST_CASE("a turned array is moved in blocks that read and write every byte about once") {
  // 2 MiB as [1024, 512] float32 from [512, 1024], in slabs of 64 KiB.
  constexpr std::int64_t kRows = 1024, kColumns = 512;
  Dice dice(2);
  Bytes file = random_file(4 * kRows * kColumns, dice);
  Counted counted;
  auto input = checkpoint_of(counted.over(memory_directory("in", {{"source", file}})));
  ProgramBuilder builder;
  OutputId output = builder.add_output("w", Dtype::kFloat32, Extents{kRows, kColumns},
                                       whole(Extents{kRows, kColumns}));
  SourceId source = builder.add_stored(0, "source", 0, file.size());
  builder.add_copy(output, whole(Extents{kRows, kColumns}), source, Dtype::kFloat32, 0,
                   Extents{4, 4 * kRows});
  Program program = builder.take();
  REQUIRE(prove(program));
  Ran ran = run(program, OutputId{0}, *input, 64 << 10);
  CHECK(ran.payload == payload_slowly(program, OutputId{0}, file));
  CHECK(ran.crc == crc32_of(ran.payload));
  CHECK(ran.peak_bytes <= (128 << 10));
  // Slabs of 32 whole rows would read 128 bytes out of every 4 KiB, the whole file 32 times.
  CHECK(*counted.bytes < 10 * file.size());
}

TEST_CASE("zeros become holes and a failing read is reported") {
  Bytes file(4 << 20, std::byte{0});
  file[100] = std::byte{1};
  ProgramBuilder builder;
  Extents sizes{4, 1 << 20};
  OutputId output = builder.add_output("w", Dtype::kUint8, sizes, whole(sizes));
  SourceId source = builder.add_stored(0, "source", 0, file.size());
  builder.add_copy(output, whole(sizes), source, Dtype::kUint8, 0, Extents{1 << 20, 1});
  Program program = builder.take();
  REQUIRE(prove(program));
  auto memory = memory_directory("in", {{"source", file}});
  Ran ran = run(program, OutputId{0}, *checkpoint_of(memory), 1 << 20);
  CHECK(ran.payload == file);
  CHECK(ran.crc == crc32_of(file));
  CHECK(ran.holes == (3 << 20));

  auto broken = checkpoint_of(faulty_directory(
      memory,
      [](const std::string& path, std::uint64_t offset, std::size_t) -> std::optional<Error> {
        if (offset < (2 << 20)) return std::nullopt;
        return Error{ErrorKind::kIo, "cannot read", {path, offset}};
      }));
  Workspace workspace = workspace_of(program, *broken);
  MemoryFile out;
  auto failed = write_all(program, OutputId{0}, workspace, SlabLimits{1 << 20, 1 << 20}, out);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().kind == ErrorKind::kIo);
  CHECK(failed.error().place.file == "source");

  Progress progress;
  progress.cancel();
  auto stopped = write_all(program, OutputId{0}, workspace, {}, out, &progress);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("a program reads no file outside of its checkpoints") {
  auto input = checkpoint_of(memory_directory("in", {{"source", Bytes(8)}}));
  for (const auto& [file, number] : {std::pair("../source", 0u), std::pair("source", 1u),
                                     std::pair("other", 0u), std::pair("source", 0u)}) {
    ProgramBuilder builder;
    OutputId output = builder.add_output("w", Dtype::kUint8, Extents{9}, whole(Extents{9}));
    SourceId source = builder.add_stored(number, file, 0, 9);
    builder.add_copy(output, whole(Extents{9}), source, Dtype::kUint8, 0, Extents{1});
    Program program = builder.take();
    REQUIRE(prove(program));
    Workspace workspace = workspace_of(program, *input);
    MemoryFile out;
    CHECK_FALSE(write_all(program, OutputId{0}, workspace, {}, out));
  }
}
