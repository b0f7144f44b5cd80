#include "core/formats/items/item_cursor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/fixtures.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/model/builder.h"
#include "core/temporary_folder.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

Box random_box(ExtentsView sizes, std::mt19937& dice) {
  Box box = whole(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) continue;
    box.offsets[d] = static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(sizes[d]));
    box.sizes[d] = 1 + static_cast<std::int64_t>(
                           dice() % static_cast<std::uint64_t>(sizes[d] - box.offsets[d]));
  }
  return box;
}

// The box cut out of the whole chunk.
Bytes cut(const Bytes& all, ExtentsView sizes, const Box& box, std::size_t element) {
  Extents strides = row_major_strides(sizes);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) first += box.offsets[d] * strides[d];
  Bytes out(static_cast<std::size_t>(*volume(box.sizes)) * element);
  copy_strided({all, strides, first}, {out, row_major_strides(box.sizes), 0}, box.sizes, element);
  return out;
}

}  // namespace

TEST_CASE("a box that is called a hole reads as zeros and one with data is never called one") {
  TemporaryFolder folder;
  std::string header = R"({"w":{"dtype":"F32","shape":[1024,4096],"data_offsets":[0,16777216]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string head(8, '\0');
  head[0] = static_cast<char>(header.size());
  const std::string file = folder / "model.safetensors";
  put(file, head + header);
  std::filesystem::resize_file(file, 8 + header.size() + 16777216);
  std::mt19937 dice(7);
  for (int i = 0; i < 12; ++i) {
    std::fstream data(file, std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(static_cast<std::streamoff>(8 + header.size() + dice() % 16777216));
    data.put('\x40');
  }
  auto checkpoint = open_checkpoint(folder.path());
  REQUIRE(checkpoint.has_value());
  ItemCursor reader(**checkpoint);
  const Extents sizes{1024, 4096};
  int holes = 0;
  for (int i = 0; i < 2000; ++i) {
    Box box = random_box(sizes, dice);
    if (i % 2 == 0) box.sizes = {std::min<std::int64_t>(box.sizes[0], 8), box.sizes[1]};
    bool is_hole = reader.is_hole(ChunkId{0}, box);
    holes += is_hole ? 1 : 0;
    auto bytes = reader.read(ChunkId{0}, box);
    REQUIRE(bytes.has_value());
    if (is_hole)
      CHECK(
          std::all_of(bytes->begin(), bytes->end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  CHECK(holes > 200);
  CHECK_FALSE(reader.is_hole(ChunkId{0}, {{0, 0}, sizes}));
  CHECK_FALSE(reader.is_hole(ChunkId{0}, {{0, 0}, {1, 4097}}));
  CHECK_FALSE(reader.is_hole(ChunkId{0}, {{0, 0}, {0, 4096}}));
}

TEST_CASE("any box of any chunk that real torch wrote is the whole chunk cut down") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  std::mt19937 dice(8);
  std::size_t stored = 0, decoded = 0;
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    ItemCursor reader(**checkpoint);
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      ChunkId chunk{c};
      ExtentsView sizes = (*checkpoint)->sizes(chunk);
      std::size_t element = size_of((*checkpoint)->dtype((*checkpoint)->tensor_of(chunk)));
      auto all = read_chunk(**checkpoint, chunk);
      REQUIRE(all.has_value());
      auto storage = ItemCursor(**checkpoint).storage(chunk);
      REQUIRE(storage.has_value());
      (storage->is_stored ? stored : decoded) += 1;
      for (int round = 0; round < 3; ++round) {
        Box box = round == 0 ? whole(sizes) : random_box(sizes, dice);
        auto read = reader.read(chunk, box);
        REQUIRE_MESSAGE(read.has_value(), read.error().message);
        CHECK(*read == cut(*all, sizes, box, element));
      }
      Box outside = whole(sizes);
      if (outside.sizes.empty()) continue;
      ++outside.sizes[0];
      CHECK_FALSE(reader.read(chunk, outside).has_value());
    }
  }
  CHECK(stored > 100);
  CHECK(decoded > 0);
}

TEST_CASE(
    "selected box: its bytes, in pieces of any length, are those of the whole chunk cut down") {
  std::mt19937 dice(9);
  std::size_t held = 0, direct = 0;
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    DecodedItems none(0), shared(std::uint64_t{1} << 30);
    ItemCursor streaming(**checkpoint, none), whole_items(**checkpoint, shared);
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      const ChunkId chunk{c};
      const ExtentsView sizes = (*checkpoint)->sizes(chunk);
      const std::size_t element = size_of((*checkpoint)->dtype((*checkpoint)->tensor_of(chunk)));
      const auto all = read_chunk(**checkpoint, chunk);
      REQUIRE(all.has_value());
      const Box box = random_box(sizes, dice);
      const Bytes wanted = cut(*all, sizes, box, element);
      for (ItemCursor* items : {&streaming, &whole_items}) {
        REQUIRE(items->begin_box(chunk, box));
        REQUIRE(items->begin_box(chunk, box));  // selected already
        Bytes seen, buffer;
        while (seen.size() < wanted.size()) {
          const std::uint64_t length =
              std::min<std::uint64_t>(1 + dice() % 999, wanted.size() - seen.size());
          auto bytes = items->read_at(seen.size(), length, buffer);
          REQUIRE(bytes.has_value());
          (bytes->data() == buffer.data() ? direct : held) += 1;
          seen.insert(seen.end(), bytes->begin(), bytes->end());
        }
        CHECK(seen == wanted);
      }
    }
  }
  CHECK(direct > 100);
  CHECK(held > 100);
}

TEST_CASE("where many chunks are is what is said of each alone") {
  std::size_t seen = 0;
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    std::vector<ChunkId> chunks;
    for (std::uint32_t c = (*checkpoint)->chunk_count(); c-- > 0;) chunks.push_back(ChunkId{c});
    std::vector<std::optional<ChunkStorage>> found(chunks.size());
    auto read = for_each_storage(
        **checkpoint, chunks, [&](std::size_t i, const ChunkStorage& said) { found[i] = said; },
        nullptr);
    bool all_alone = true;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      auto alone = ItemCursor(**checkpoint).storage(chunks[i]);
      all_alone = all_alone && alone.has_value();
      CHECK(found[i].has_value() == alone.has_value());
      if (!alone || !found[i]) continue;
      CHECK(found[i]->is_stored == alone->is_stored);
      CHECK(found[i]->file == alone->file);
      CHECK(found[i]->offset == alone->offset);
      CHECK(found[i]->length == alone->length);
      CHECK(found[i]->strides == alone->strides);
      CHECK(found[i]->first == alone->first);
      ++seen;
    }
    CHECK(read.has_value() == all_alone);
  }
  CHECK(seen > 100);
}

TEST_CASE("of many chunks that cannot be read the first one is reported, however early it ends") {
  TemporaryFolder folder;
  const std::string source = test::fixture_cases("healthy_fsdp").front() + "/ckpt";
  std::filesystem::copy(
      source, folder.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".distcp") continue;
    std::ofstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).write("XXXX", 4);
  }
  auto checkpoint = open_checkpoint(folder.path());
  REQUIRE(checkpoint.has_value());
  std::vector<ChunkId> chunks;
  for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) chunks.push_back(ChunkId{c});
  auto error_of = [&](AfterError after, std::size_t& visited) {
    std::atomic<std::size_t> seen = 0;
    auto read = for_each_storage(
        **checkpoint, chunks, [&](std::size_t, const ChunkStorage&) { ++seen; }, nullptr, after);
    REQUIRE_FALSE(read.has_value());
    visited = seen;
    return read.error().place.file + " " + read.error().place.tensor + read.error().message;
  };
  std::size_t all = 0, some = 0;
  CHECK(error_of(AfterError::kContinue, all) == error_of(AfterError::kStop, some));
  CHECK(some <= all);
  CHECK(all < chunks.size());
  CHECK(all > 0);
}

TEST_CASE("a box of a tensor that repeats a few bytes without end is refused, and not made") {
  test::TensorText tensor;
  tensor.count = 1;
  tensor.sizes = {std::int64_t{1} << 17, std::int64_t{1} << 17};
  tensor.strides = {0, 0};
  const std::string item =
      test::make_zip({{"archive/data.pkl", test::as_pickle(tensor_call(tensor))},
                      {"archive/data/0", "abcd"},
                      {"archive/version", "3\n"}});
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", test::to_bytes(item)}}));
  builder.add_tensor("w", Dtype::kFloat32, tensor.sizes);
  builder.add_chunk(Extents{0, 0}, tensor.sizes,
                    {builder.file("__0_0.distcp"), 0, static_cast<std::int64_t>(item.size())});
  auto checkpoint = builder.finish();
  auto read = ItemCursor(*checkpoint).read(ChunkId{0}, {{0, 0}, {16, 16}});
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().kind == ErrorKind::kUnsupported);
  CHECK(read.error().message.find("expands 4 bytes") != std::string::npos);
}
