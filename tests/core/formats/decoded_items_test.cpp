#include "core/formats/items/decoded_items.h"

#include <doctest/doctest.h>

#include <atomic>

#include "core/base/parallel.h"
#include "core/exec/memory_shares.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/program/program_builder.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

std::shared_ptr<const Checkpoint> compressed() {
  auto checkpoint = open_checkpoint(SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt");
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

}  // namespace

TEST_CASE("threads that share decoded items see what each would decode, within the budget") {
  auto checkpoint = compressed();
  std::vector<Bytes> wanted;
  std::uint64_t largest = 0;
  for (std::uint32_t i = 0; i < checkpoint->chunk_count(); ++i) {
    auto bytes = read_chunk(*checkpoint, ChunkId{i});
    REQUIRE(bytes.has_value());
    largest = std::max(largest, decoding_bytes(*checkpoint, ChunkId{i}, bytes->size()));
    wanted.push_back(std::move(*bytes));
  }
  REQUIRE(wanted.size() > 1);
  // Memory for one item, and for all.
  for (std::uint64_t budget : {largest, std::uint64_t{1} << 30}) {
    DecodedItems items(budget);
    std::atomic<int> wrong{0};
    Status done = parallel_for(400, [&](std::size_t i) -> Status {
      std::size_t chunk = (i * 7) % wanted.size();
      SHW_TRY(auto bytes, items.read(*checkpoint, ChunkId{static_cast<std::uint32_t>(chunk)},
                                     wanted[chunk].size()));
      wrong += *bytes != wanted[chunk];
      return {};
    });
    CHECK(done.has_value());
    CHECK(wrong == 0);
    CHECK(items.peak_bytes() <= budget);
  }
}

TEST_CASE("an item that is asked for no more gives its room to others") {
  auto checkpoint = compressed();
  std::uint64_t largest = 0;
  std::vector<std::uint64_t> lengths;
  for (std::uint32_t i = 0; i < checkpoint->chunk_count(); ++i) {
    lengths.push_back(read_chunk(*checkpoint, ChunkId{i}).value().size());
    largest = std::max(largest, decoding_bytes(*checkpoint, ChunkId{i}, lengths.back()));
  }
  DecodedItems items(largest + lengths[0]);
  auto first = items.read(*checkpoint, ChunkId{0}, lengths[0]);
  REQUIRE(first.has_value());
  items.drop(*checkpoint, ChunkId{0});  // it is still being read
  auto again = items.read(*checkpoint, ChunkId{0}, lengths[0]);
  REQUIRE(again.has_value());
  CHECK(*first == *again);
  *first = *again = nullptr;
  items.drop(*checkpoint, ChunkId{0});
  for (std::uint32_t i = 1; i < checkpoint->chunk_count(); ++i)
    REQUIRE(items.read(*checkpoint, ChunkId{i}, lengths[i]).has_value());
  auto other = items.read(*checkpoint, ChunkId{0}, lengths[0]);
  REQUIRE(other.has_value());
  CHECK(**other == read_chunk(*checkpoint, ChunkId{0}).value());
  CHECK(items.peak_bytes() <= largest + lengths[0]);
}

TEST_CASE("what is decoded in memory can be stopped") {
  auto checkpoint = compressed();
  const auto length = read_chunk(*checkpoint, ChunkId{0}).value().size();
  Progress progress;
  DecodedItems items(std::uint64_t{1} << 30, &progress);
  progress.cancel();
  auto stopped = items.read(*checkpoint, ChunkId{0}, length);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("the slabs of all threads together stay within the memory of a run") {
  ProgramBuilder builder;
  OutputId output = builder.add_output("w", Dtype::kFloat32, Extents{8}, whole(Extents{8}));
  builder.add_zeros(output, whole(Extents{8}));
  Program program = builder.take();
  for (std::uint64_t memory : {std::uint64_t{1} << 20, std::uint64_t{256} << 20}) {
    auto shares = plan_memory(program, {}, memory);
    CHECK(2 * worker_count() * shares.limits.turned_bytes + shares.decoded_bytes <= memory);
    CHECK(shares.limits.slab_bytes <= shares.limits.turned_bytes);
  }
}
