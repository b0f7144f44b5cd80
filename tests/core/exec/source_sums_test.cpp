#include "core/exec/source_checksum_verifier.h"

#include <doctest/doctest.h>

#include <fstream>
#include <numeric>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/formats/items/item_cursor.h"
#include "core/io/gather.h"
#include "core/program/program_builder.h"
#include "core/program/random_program.h"
#include "core/repair/make_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

// One tensor of a tile, [32, 48] of float32, read in three blocks of columns.
struct Columns {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  ChunkStorage lies;
  Program program;

  Columns() {
    Values values(32 * 48);
    std::iota(values.begin(), values.end(), 1);
    write_checkpoint(folder / "ckpt", {{"w", {32, 48}, {{{{0, 0}, {32, 48}}, {32, 48}, values}}}});
    open();
    ProgramBuilder builder;
    const SourceId source = builder.add_stored(0, "__0_0.distcp", lies.offset, lies.length);
    for (std::int64_t block = 0; block < 3; ++block) {
      const OutputId output =
          builder.add_output("w", Dtype::kFloat32, Extents{32, 48}, {{0, 16 * block}, {32, 16}});
      builder.place(output, "out", static_cast<std::uint64_t>(block) * 2048);
      builder.add_copy(output, {{0, 0}, {32, 16}}, source, Dtype::kFloat32, 64 * block,
                       Extents{192, 4});
    }
    program = builder.take();
  }
  void open() {
    checkpoint = open_checkpoint(folder / "ckpt").value();
    lies = ItemCursor(*checkpoint).storage(ChunkId{0}).value();
    REQUIRE(lies.crc.has_value());
  }
  // Flips one bit of the number in the middle.
  void bend() {
    std::fstream file(folder / "ckpt/__0_0.distcp",
                      std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(lies.offset + lies.length / 2);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 4));
  }
  std::unique_ptr<SourceChecksumVerifier> sums() const {
    auto made = SourceChecksumVerifier::of(program, {checkpoint.get()}, nullptr);
    REQUIRE(made.has_value());
    return std::move(*made);
  }
  // Rows [begin, end) of a block.
  Status read(SourceChecksumVerifier& sums, std::int64_t block, std::int64_t begin,
              std::int64_t end) const {
    const Extents sizes{end - begin, 16}, strides{192, 4};
    Bytes bytes(static_cast<std::size_t>(64 * (end - begin)));
    const std::int64_t first = 64 * block + 192 * begin;
    auto file = checkpoint->directory()->open("__0_0.distcp").value();
    SHW_CHECK(gather(*window(file, lies.offset, lies.length), first, sizes, strides, 4, bytes));
    return sums.add({SourceId{0}, first, sizes, strides, 4, bytes});
  }
};

std::vector<std::pair<std::int64_t, std::int64_t>> parts_in_any_order(Dice& dice) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;  // block, its eight rows
  for (std::int64_t i = 0; i < 12; ++i) parts.emplace_back(i % 3, i / 3 * 8);
  for (std::size_t i = parts.size(); i > 1; --i)
    std::swap(parts[i - 1], parts[static_cast<std::size_t>(dice.pick(0, static_cast<int>(i) - 1))]);
  return parts;
}

}  // namespace

TEST_CASE("what was read in any order comes to the checksum that it was saved with") {
  Columns columns;
  Dice dice(5);
  for (int round = 0; round < 20; ++round) {
    auto sums = columns.sums();
    for (auto [block, row] : parts_in_any_order(dice))
      CHECK(columns.read(*sums, block, row, row + 8).has_value());
    CHECK(sums->finalize(nullptr).has_value());
  }
}

TEST_CASE(
    "a bent byte is reported with the last of its source, and by itself where that was not read") {
  Columns columns;
  columns.bend();
  columns.open();
  Dice dice(6);
  auto sums = columns.sums();
  const auto parts = parts_in_any_order(dice);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [block, row] = parts[i];
    Status read = columns.read(*sums, block, row, row + 8);
    REQUIRE(read.has_value() == (i + 1 < parts.size()));
    if (read) continue;
    CHECK(read.error().kind == ErrorKind::kDamaged);
    CHECK(read.error().place.tensor == "w");
    CHECK(read.error().place.offset == columns.lies.offset);
  }
  auto in_part = columns.sums();
  CHECK(columns.read(*in_part, 0, 0, 8).has_value());
  CHECK_FALSE(in_part->finalize(nullptr).has_value());
}

TEST_CASE("members of a team come to the same of what each of them has read") {
  for (bool is_bent : {false, true}) {
    Columns columns;
    if (is_bent) {
      columns.bend();
      columns.open();
    }
    const std::vector<Status> ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60), "one");
      auto sums = columns.sums();
      SHW_CHECK(columns.read(*sums, transport.rank(), 0, 32));
      SHW_CHECK(sums->share(team));
      return sums->finalize(&team);
    });
    for (const Status& one : ended) CHECK(one.has_value() != is_bent);
  }
}

TEST_CASE("what is read twice, in part or in single elements is read by itself") {
  for (bool is_bent : {false, true}) {
    Columns columns;
    if (is_bent) {
      columns.bend();
      columns.open();
    }
    ProgramBuilder builder;
    const SourceId source =
        builder.add_stored(0, "__0_0.distcp", columns.lies.offset, columns.lies.length);
    const OutputId output =
        builder.add_output("w", Dtype::kFloat32, Extents{48, 32}, {{0, 0}, {48, 32}});
    builder.place(output, "out", 0);
    builder.add_copy(output, {{0, 0}, {48, 32}}, source, Dtype::kFloat32, 0, Extents{4, 192});
    columns.program = builder.take();
    auto turned = columns.sums();
    const Extents sizes{1, 32}, strides{4, 192};
    Bytes column(128);
    CHECK(turned->add({source, 0, sizes, strides, 4, column}).has_value());
    CHECK(turned->finalize(nullptr).has_value() != is_bent);
  }
}
