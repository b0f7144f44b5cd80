// Places of a tensor's elements as given to HDF5, compared with reading the tensor.
#include "core/hdf5_view/mapped_tensor.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "core/formats/common/codecs.h"
#include "core/formats/items/items.h"
#include "core/hdf5_view/dataset_names.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/exact_tiling.h"

using namespace shw;

namespace {

constexpr std::size_t kFileSize = 1 << 14;

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 131 % 251);
  return bytes;
}

// Two files of numbered bytes; chunks are views of them through one storage per file.
struct Made {
  CheckpointBuilder builder;
  StorageId storages[2];
  std::vector<std::pair<std::string, Bytes>> files{{"a.bin", numbered(kFileSize)},
                                                   {"b.bin", numbered(kFileSize + 7)}};

  Made() {
    static const Format kBare{.name = "bare", .title = "bare elements", .codec = &kRawCodec};
    builder.set_format(kBare);
    for (int i = 0; i < 2; ++i)
      storages[i] = builder.add_storage(
          {builder.file(files[i].first), 3, static_cast<std::int64_t>(kFileSize) - 3}, &kRawCodec);
  }
  void tile(int file, const Box& box, std::int64_t element, ExtentsView strides = {}) {
    builder.set_view(builder.add_chunk(box.offsets, box.sizes), storages[file], element, strides);
  }
  std::shared_ptr<const Checkpoint> finish() {
    builder.set_directory(memory_directory("ckpt", files));
    return builder.finish();
  }
  const Bytes& bytes(const ByteRun& run, const Checkpoint& checkpoint) const {
    return checkpoint.file(run.file).path == "a.bin" ? files[0].second : files[1].second;
  }
};

void append_run(Bytes& out, const Bytes& file, std::uint64_t offset, std::uint64_t length) {
  REQUIRE(offset + length <= file.size());
  out.insert(out.end(), file.begin() + static_cast<std::ptrdiff_t>(offset),
             file.begin() + static_cast<std::ptrdiff_t>(offset + length));
}

// The bytes that HDF5 would read of a tile, row-major.
Bytes read_tile(const Made& made, const Checkpoint& checkpoint, const MappedTile& tile,
                std::uint64_t element) {
  Bytes out;
  for (const ByteRun& run : tile.runs) {
    if (tile.count == 0) append_run(out, made.bytes(run, checkpoint), run.offset, run.length);
    for (std::int64_t i = 0; i < tile.count; ++i)
      append_run(out, made.bytes(run, checkpoint),
                 run.offset + static_cast<std::uint64_t>(i * tile.step) * element,
                 static_cast<std::uint64_t>(tile.run) * element);
  }
  return out;
}

Bytes read_mapped(const Made& made, const Checkpoint& checkpoint, TensorId tensor,
                  const MappedTensor& mapped) {
  const std::size_t element = size_of(checkpoint.dtype(tensor));
  Bytes out;
  for (const ByteRun& run : mapped.segments)
    append_run(out, made.bytes(run, checkpoint), run.offset, run.length);
  if (mapped.mapping == Mapping::kSegments) return out;
  Extents strides = row_major_strides(checkpoint.shape(tensor));
  out.resize(static_cast<std::size_t>(*volume(checkpoint.shape(tensor))) * element);
  for (const MappedTile& tile : mapped.tiles) {
    Bytes part = read_tile(made, checkpoint, tile, element);
    REQUIRE(part.size() == static_cast<std::size_t>(*volume(tile.box.sizes)) * element);
    std::int64_t first = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) first += tile.box.offsets[d] * strides[d];
    copy_strided({part, row_major_strides(tile.box.sizes), 0}, {out, strides, first},
                 tile.box.sizes, element);
  }
  return out;
}

std::int64_t between(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

// Cuts a shape at random places along random dimensions.
std::vector<Box> random_grid(std::mt19937& random, const Extents& shape) {
  std::vector<Box> boxes{whole(shape)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 2 || random() % 3 == 0) continue;
    std::int64_t cut = between(random, 1, shape[d] - 1);
    std::vector<Box> halves;
    for (Box box : boxes) {
      Box low = box, high = box;
      low.sizes[d] = cut;
      high.offsets[d] = cut;
      high.sizes[d] = shape[d] - cut;
      halves.push_back(low);
      halves.push_back(high);
    }
    boxes = halves;
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return boxes;
}

// Strides of a view: row-major of a shape that may be wider, now and then with dims swapped.
Extents random_strides(std::mt19937& random, ExtentsView sizes) {
  Extents wide = copy_of(sizes);
  for (std::int64_t& extent : wide) extent += random() % 3 == 0 ? between(random, 0, 2) : 0;
  Extents strides = row_major_strides(wide);
  if (strides.size() > 1 && random() % 4 == 0) std::swap(strides[0], strides[1]);
  return strides;
}

}  // namespace

TEST_CASE("what HDF5 is reported of random tiles and views is what reading them gives") {
  std::mt19937 random(20261122);
  std::size_t segments = 0, tiles = 0;
  for (int round = 0; round < 400; ++round) {
    Made made;
    Extents shape;
    for (std::int64_t d = between(random, 0, 3); d > 0; --d) shape.push_back(between(random, 1, 5));
    made.builder.add_tensor("t", random() % 2 ? Dtype::kFloat32 : Dtype::kBfloat16, shape);
    for (const Box& box : random_grid(random, shape)) {
      Extents strides = random_strides(random, box.sizes);
      made.tile(static_cast<int>(random() % 2), box, between(random, 0, 500),
                random() % 2 ? ExtentsView(strides) : ExtentsView());
    }
    auto checkpoint = made.finish();
    MappedTensor mapped = map_tensor(*checkpoint, TensorId{0});
    INFO("round " << round << " " << to_text(shape) << ": " << mapped.why);
    auto wanted = read_tensor(*checkpoint, TensorId{0});
    REQUIRE(wanted.has_value());
    REQUIRE((mapped.mapping == Mapping::kSegments || mapped.mapping == Mapping::kTiles));
    (mapped.mapping == Mapping::kSegments ? segments : tiles) += 1;
    CHECK(read_mapped(made, *checkpoint, TensorId{0}, mapped) == wanted->bytes);
  }
  CHECK(segments > 50);
  CHECK(tiles > 50);
}

TEST_CASE("many short runs are one strided selection, and what is in no order is left alone") {
  Made made;
  made.builder.add_tensor("rows", Dtype::kUint8, Extents{100, 3});
  made.tile(0, {{0, 0}, {100, 3}}, 5, Extents{7, 1});
  made.builder.add_tensor("transposed", Dtype::kUint8, Extents{90, 100});
  made.tile(0, {{0, 0}, {90, 100}}, 0, Extents{1, 90});
  auto checkpoint = made.finish();
  MappedTensor rows = map_tensor(*checkpoint, TensorId{0});
  REQUIRE(rows.mapping == Mapping::kTiles);
  CHECK(rows.tiles[0].count == 100);
  CHECK(read_mapped(made, *checkpoint, TensorId{0}, rows) ==
        read_tensor(*checkpoint, TensorId{0})->bytes);
  MappedTensor transposed = map_tensor(*checkpoint, TensorId{1});
  CHECK(transposed.mapping == Mapping::kNotInPlace);
  CHECK(transposed.why == "its elements are not in row-major order");
  CHECK(transposed.chunks.size() == 1);
}

TEST_CASE("gaps, overlaps and tiles past the end of a file never look whole") {
  Made made;
  made.builder.add_tensor("gap", Dtype::kFloat32, Extents{4, 4});
  made.tile(0, {{0, 0}, {1, 4}}, 0);
  made.tile(0, {{2, 0}, {2, 4}}, 4);
  made.builder.add_tensor("overlap", Dtype::kFloat32, Extents{4});
  made.tile(0, {{0}, {3}}, 0);
  made.tile(0, {{2}, {2}}, 8);
  made.builder.add_tensor("twice", Dtype::kFloat32, Extents{4});
  made.tile(0, {{0}, {4}}, 0);
  made.tile(1, {{0}, {4}}, 8);
  made.builder.add_tensor("past", Dtype::kFloat32, Extents{8});
  made.tile(0, {{0}, {4}}, 0);
  made.tile(0, {{4}, {4}}, 4094);
  made.builder.add_tensor("outside", Dtype::kFloat32, Extents{2});
  made.tile(0, {{0}, {3}}, 0);
  made.builder.add_tensor("nothing", Dtype::kFloat32, Extents{2});
  made.builder.add_tensor("empty", Dtype::kFloat32, Extents{0, 2});
  made.builder.add_tensor("deep", Dtype::kFloat32, Extents(33, 1));
  auto checkpoint = made.finish();
  auto mapped = [&](std::uint32_t tensor) { return map_tensor(*checkpoint, TensorId{tensor}); };
  CHECK(mapped(0).mapping == Mapping::kPartly);
  CHECK(mapped(0).missing == 4);
  CHECK(mapped(0).tiles.size() == 2);
  CHECK(mapped(1).mapping == Mapping::kRefused);
  CHECK(mapped(2).mapping == Mapping::kRefused);
  CHECK(mapped(2).why.find("it is not known whose elements are right") != std::string::npos);
  CHECK(mapped(3).mapping == Mapping::kPartly);
  CHECK(mapped(3).missing == 4);
  CHECK(mapped(4).mapping == Mapping::kRefused);
  CHECK(mapped(5).mapping == Mapping::kRefused);
  CHECK(mapped(6).mapping == Mapping::kSegments);
  CHECK(mapped(6).segments.empty());
  CHECK(mapped(7).mapping == Mapping::kRefused);
}

TEST_CASE("of tiles that were saved twice alike, one that can be read is mapped") {
  Made made;
  made.builder.add_tensor("alike", Dtype::kFloat32, Extents{4});
  made.tile(0, {{0}, {4}}, 8);
  made.tile(1, {{0}, {4}}, 8);
  // In both, the first copy is past the end of its file.
  made.builder.add_tensor("chunk", Dtype::kFloat32, Extents{4});
  made.tile(0, {{0}, {4}}, 4094);
  made.tile(1, {{0}, {4}}, 8);
  made.builder.add_tensor("replica", Dtype::kFloat32, Extents{4});
  const std::int64_t size = kFileSize;
  ChunkId chunk =
      made.builder.add_chunk(Extents{0}, Extents{4}, {made.builder.file("a.bin"), size - 8, 16});
  made.builder.add_replica(
      {chunk, made.builder.add_storage({made.builder.file("b.bin"), 35, 16}, &kRawCodec),
       std::nullopt});
  auto checkpoint = made.finish();
  MappedTensor alike = map_tensor(*checkpoint, TensorId{0});
  CHECK(alike.mapping == Mapping::kSegments);
  CHECK(alike.note == "1 of its tiles were saved more than once");
  for (std::uint32_t t : {1u, 2u}) {
    MappedTensor mapped = map_tensor(*checkpoint, TensorId{t});
    INFO(mapped.why);
    REQUIRE(mapped.mapping == Mapping::kSegments);
    REQUIRE(mapped.segments.size() == 1);
    CHECK(checkpoint->file(mapped.segments[0].file).path == "b.bin");
    CHECK(mapped.segments[0].offset == 35);
    CHECK(mapped.note.find("another is mapped") != std::string::npos);
  }
}

TEST_CASE("a name that HDF5 would take for another one is refused") {
  CheckpointBuilder builder;
  for (const char* fqn : {"a", "a/b", "c/d.e", "model.weight"})
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{0});
  auto checkpoint = builder.finish();
  DatasetNames names(*checkpoint);
  for (const char* fine : {"a", "c/d.e", "model.weight", "..", "x.", "\xff"})
    CHECK(names.refusal(fine).empty());
  for (const char* refused : {"", ".", "/a", "a/", "a//b", "a/./b", "a/b"})
    CHECK_FALSE(names.refusal(refused).empty());
  CHECK_FALSE(names.refusal(std::string_view("a\0b", 3)).empty());
}
