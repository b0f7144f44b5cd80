#include "core/exec/spill_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/exec/memory_shares.h"
#include "core/formats/items/decoded_items.h"
#include "core/formats/open.h"
#include "core/program/program_builder.h"
#include "core/program/random_program.h"
#include "core/tensor/strided_copy.h"

using namespace shw;
using namespace shw::test;

namespace {

// An item of `bytes` that outputs [first, last] read.
struct PlacedItem {
  std::int64_t bytes = 0;
  std::size_t first = 0, last = 0;
  bool is_read(std::size_t step) const { return first <= step && step <= last; }
};

// Output i reads one byte of every item that it reads.
Program program_that_reads(const std::vector<PlacedItem>& items, std::size_t outputs) {
  ProgramBuilder builder;
  std::vector<SourceId> sources;
  for (std::size_t i = 0; i < items.size(); ++i)
    sources.push_back(builder.add_item(0, "file", 1000 * i,
                                       static_cast<std::uint64_t>(items[i].bytes),
                                       static_cast<std::uint32_t>(i)));
  std::uint64_t offset = 0;
  for (std::size_t step = 0; step < outputs; ++step) {
    std::vector<SourceId> read;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].is_read(step)) read.push_back(sources[i]);
    }
    const Extents shape{static_cast<std::int64_t>(read.size())};
    const OutputId output = builder.add_output("w", Dtype::kUint8, shape, whole(shape));
    builder.place(output, "out", offset);
    offset += read.size();
    for (std::size_t i = 0; i < read.size(); ++i)
      builder.add_copy(output, Box{{static_cast<std::int64_t>(i)}, {1}}, read[i], Dtype::kUint8, 0,
                       Extents{1});
  }
  return builder.take();
}

std::vector<PlacedItem> drawn_items(Dice& dice, std::size_t outputs) {
  std::vector<PlacedItem> items(static_cast<std::size_t>(dice.pick(1, 12)));
  const auto last_step = static_cast<std::int64_t>(outputs) - 1;
  for (PlacedItem& item : items) {
    item.bytes = dice.pick(1, 100);
    item.first = static_cast<std::size_t>(dice.pick(0, last_step));
    item.last =
        static_cast<std::size_t>(dice.pick(static_cast<std::int64_t>(item.first), last_step));
  }
  // Every output reads something.
  items.push_back({1, 0, outputs - 1});
  return items;
}

std::uint64_t held_at(const std::vector<PlacedItem>& items, const std::set<std::size_t>& chosen,
                      std::size_t step) {
  std::uint64_t bytes = 0;
  for (std::size_t i : chosen) {
    if (items[i].is_read(step)) bytes += static_cast<std::uint64_t>(items[i].bytes);
  }
  return bytes;
}

}  // namespace

TEST_CASE("what is held in memory has room at every output, and what the disk holds is counted") {
  Dice dice(77);
  int on_disk = 0, in_memory = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const auto outputs = static_cast<std::size_t>(dice.pick(1, 9));
    const std::vector<PlacedItem> items = drawn_items(dice, outputs);
    const Program program = program_that_reads(items, outputs);
    REQUIRE(prove(program));
    const auto room = static_cast<std::uint64_t>(dice.pick(0, 300));
    auto places = plan_spill(program, {}, {}, {room, 1, true});
    std::set<std::size_t> disk, memory;
    for (SourceId source : places.on_disk) disk.insert(program.source(source).chunk);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!disk.contains(i)) memory.insert(i);
    }
    CHECK(disk.size() == places.on_disk.size());
    on_disk += static_cast<int>(disk.size());
    in_memory += static_cast<int>(memory.size());
    std::uint64_t most = 0, all = 0;
    for (std::size_t step = 0; step < outputs; ++step) {
      CHECK(held_at(items, memory, step) <= room);
      most = std::max(most, held_at(items, disk, step));
    }
    for (std::size_t i : disk) {
      all += static_cast<std::uint64_t>(items[i].bytes);
      // Together with the others it would exceed the memory.
      CHECK(held_at(items, memory, items[i].first) + static_cast<std::uint64_t>(items[i].bytes) >
            room);
    }
    CHECK(places.most_at_once == most);
    CHECK(places.disk_bytes == all);
    CHECK(std::is_sorted(places.on_disk.begin(), places.on_disk.end(), [&](SourceId a, SourceId b) {
      return items[program.source(a).chunk].first < items[program.source(b).chunk].first;
    }));
    // Other threads may need more, but never more than the budget.
    auto in_threads = plan_spill(program, {}, {}, {room, 3, true});
    CHECK(in_threads.on_disk == places.on_disk);
    CHECK(in_threads.most_at_once >= most);
    CHECK(in_threads.most_at_once <= all);
  }
  CHECK(on_disk > 100);
  CHECK(in_memory > 100);
}

TEST_CASE("outputs that are made in another order hold items for another time") {
  // In program order each item is released before the next; interleaved, both are needed at once.
  const std::vector<PlacedItem> items{{50, 0, 1}, {50, 2, 3}};
  const Program program = program_that_reads(items, 4);
  auto as_they_stand = plan_spill(program, {}, {}, {60, 1, true});
  CHECK(as_they_stand.on_disk.empty());
  const std::vector<OutputId> order{OutputId{0}, OutputId{2}, OutputId{1}, OutputId{3}};
  auto interleaved = plan_spill(program, {}, order, {60, 1, true});
  CHECK(interleaved.on_disk.size() == 1);
  CHECK(interleaved.most_at_once == 50);
}

TEST_CASE("workers that know nothing of each other keep large items on the disk") {
  const std::vector<PlacedItem> items{{40, 0, 0}, {51, 1, 1}, {200, 2, 2}};
  const Program program = program_that_reads(items, 3);
  auto places = plan_spill(program, {}, {}, {100, 2, false});
  CHECK(places.on_disk.size() == 2);
  CHECK(places.most_at_once == 251);
  CHECK(places.ahead == 0);
}

TEST_CASE("an item of any codec that has no room in memory goes to the disk") {
  auto checkpoint = open_checkpoint(SHW_TEST_DATA "/h5py/kinds.h5");
  REQUIRE(checkpoint.has_value());
  const Checkpoint& file = **checkpoint;
  for (const char* fqn : {"gzip", "shuffled"}) {
    CAPTURE(fqn);
    const TensorId tensor = *file.find(fqn);
    const ChunkId chunk = *file.chunks(tensor).begin();
    const Dtype dtype = file.dtype(tensor);
    ExtentsView sizes = file.sizes(chunk);
    const auto bytes = static_cast<std::uint64_t>(volume(sizes).value()) * size_of(dtype);
    ProgramBuilder builder;
    const SourceId source = builder.add_item(0, file.file(file.item(chunk)->file).path,
                                             static_cast<std::uint64_t>(file.item(chunk)->offset),
                                             bytes, static_cast<std::uint32_t>(index_of(chunk)));
    OutputId output = builder.add_output("w", dtype, sizes, whole(sizes));
    builder.add_copy(output, whole(sizes), source, dtype, 0, byte_strides(sizes, size_of(dtype)));
    const Program program = builder.take();
    const std::uint64_t needed = decoding_bytes(file, chunk, bytes);
    CHECK(plan_memory(program, {&file}, 2 * needed + 4096).decoded.on_disk.empty());
    const MemoryPlan little = plan_memory(program, {&file}, needed);
    CHECK(little.decoded.on_disk == std::vector<SourceId>{source});
    CHECK(little.decoded.most_at_once == bytes);
  }
}
