#include "core/formats/decoded_items.h"

#include <doctest/doctest.h>

#include <atomic>

#include "core/base/parallel.h"
#include "core/exec/memory_shares.h"
#include "core/formats/items.h"
#include "core/formats/open.h"
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
  // Room for one, and for all.
  for (std::uint64_t budget : {largest, std::uint64_t{1} << 30}) {
    DecodedItems items(budget);
    std::atomic<int> wrong{0};
    Status done = each_in_parallel(400, [&](std::size_t i) -> Status {
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

TEST_CASE("an item that has to be decoded whole and does not fit is refused by name") {
  auto checkpoint = compressed();
  ProgramBuilder builder;
  ChunkId chunk{0};
  TensorId tensor = checkpoint->tensor_of(chunk);
  ItemPlace place = checkpoint->item(chunk).value();
  Dtype dtype = checkpoint->dtype(tensor);
  ExtentsView sizes = checkpoint->sizes(chunk);
  auto bytes = static_cast<std::uint64_t>(volume(sizes).value()) * size_of(dtype);
  const std::string& file = checkpoint->file(place.file).path;
  SourceId source = builder.add_item(0, file, static_cast<std::uint64_t>(place.offset), bytes, 0);
  OutputId output = builder.add_output("w", dtype, sizes, whole(sizes));
  builder.add_copy(output, whole(sizes), source, dtype, 0, byte_strides(sizes, size_of(dtype)));
  Program program = builder.take();
  std::uint64_t needed = decoding_bytes(*checkpoint, chunk, bytes);
  CHECK(share_memory(program, {checkpoint.get()}, 2 * needed + 4096).has_value());
  auto refused = share_memory(program, {checkpoint.get()}, needed);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
  CHECK(refused.error().place.file == file);
  CHECK(refused.error().place.tensor == checkpoint->fqn(tensor));
}

TEST_CASE("the slabs of all threads together stay within the memory of a run") {
  ProgramBuilder builder;
  OutputId output = builder.add_output("w", Dtype::kFloat32, Extents{8}, whole(Extents{8}));
  builder.add_zeros(output, whole(Extents{8}));
  Program program = builder.take();
  for (std::uint64_t memory : {std::uint64_t{1} << 20, std::uint64_t{256} << 20}) {
    auto shares = share_memory(program, {}, memory);
    REQUIRE(shares.has_value());
    CHECK(2 * worker_count() * shares->limits.turned_bytes + shares->decoded_bytes <= memory);
    CHECK(shares->limits.slab_bytes <= shares->limits.turned_bytes);
  }
}
