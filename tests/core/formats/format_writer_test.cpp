// Checkpoints written by their format's writer, tile by tile in any order, and opened again.
#include "core/formats/format_writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/fixtures.h"
#include "core/formats/common/crc32.h"
#include "core/formats/items.h"
#include "core/formats/open.h"

using namespace shw;

namespace {

using Files = std::map<std::string, Bytes>;

Outputs outputs_of(const Checkpoint& checkpoint) {
  Outputs out;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    OutputTensor one{std::string(checkpoint.fqn(tensor)),
                     checkpoint.dtype(tensor),
                     checkpoint.requires_grad(tensor),
                     copy_of(checkpoint.shape(tensor)),
                     {}};
    for (ChunkId chunk : checkpoint.chunks(tensor))
      one.tiles.push_back({{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))},
                           checkpoint.writer(chunk).value_or(0)});
    out.tensors.push_back(std::move(one));
  }
  return out;
}

void put(Files& files, const LaidOut& laid_out, std::uint32_t file, std::uint64_t offset,
         BytesView bytes) {
  REQUIRE(file < laid_out.files.size());
  Bytes& target = files[laid_out.files[file].path];
  target.resize(laid_out.files[file].size, std::byte{0xEE});
  REQUIRE(offset + bytes.size() <= target.size());
  std::copy(bytes.begin(), bytes.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Tiles last to first: nothing may depend on the order.
std::shared_ptr<const Checkpoint> written(const FormatWriter& writer, const Checkpoint& source) {
  Outputs outputs = outputs_of(source);
  auto laid_out = writer.lay_out(outputs);
  REQUIRE_MESSAGE(laid_out.has_value(), laid_out.error().message);
  REQUIRE(laid_out->tiles.size() == source.chunk_count());
  Files files;
  std::vector<std::uint32_t> checksums(source.chunk_count());
  for (std::uint32_t c = source.chunk_count(); c-- > 0;) {
    auto bytes = read_chunk(source, ChunkId{c});
    REQUIRE(bytes.has_value());
    const OutputRange& range = laid_out->tiles[c];
    CHECK(range.length == bytes->size());
    put(files, *laid_out, range.file, range.offset, *bytes);
    checksums[c] = crc32_of(*bytes);
  }
  auto seal = writer.seal(outputs, *laid_out, checksums);
  REQUIRE_MESSAGE(seal.has_value(), seal.error().message);
  for (const OutputBytes& part : laid_out->before)
    put(files, *laid_out, part.file, part.offset, part.bytes);
  for (const OutputBytes& part : seal->after)
    put(files, *laid_out, part.file, part.offset, part.bytes);
  std::vector<std::pair<std::string, Bytes>> all(files.begin(), files.end());
  for (auto& file : seal->metadata) all.push_back(std::move(file));
  auto opened = open_checkpoint(memory_directory("written", all));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

const FormatWriter* writer_of(std::string_view name) {
  for (const FormatRow& row : formats()) {
    if (row.format->name == name) return row.writer;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("what the DCP writer lays out opens as the checkpoint that it was laid out for") {
  const FormatWriter* writer = writer_of("dcp");
  REQUIRE(writer != nullptr);
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto source = open_checkpoint(folder + "/ckpt");
    REQUIRE(source.has_value());
    auto made = written(*writer, **source);
    CHECK(made->format().name == "dcp");
    REQUIRE(made->chunk_count() == (*source)->chunk_count());
    for (std::uint32_t c = 0; c < made->chunk_count(); ++c) {
      auto before = read_chunk(**source, ChunkId{c}), after = read_chunk(*made, ChunkId{c});
      REQUIRE(before.has_value());
      REQUIRE_MESSAGE(after.has_value(), after.error().message);
      CHECK(*before == *after);
      auto check = check_item_data(*made, ChunkId{c}, nullptr);
      REQUIRE_MESSAGE(check.has_value(), check.error().message);
      CHECK(check->crc == DataCheck::Crc::kMatches);
      CHECK(made->writer(ChunkId{c}) == (*source)->writer(ChunkId{c}).value_or(0));
    }
  }
}

TEST_CASE("a layout is refused where a tile cannot be and a seal where a checksum is missing") {
  const FormatWriter* writer = writer_of("dcp");
  REQUIRE(writer != nullptr);
  Outputs outputs;
  outputs.tensors.push_back({"w", Dtype::kFloat32, false, {4}, {{{{0}, {-4}}, 0}}});
  CHECK_FALSE(writer->lay_out(outputs).has_value());
  outputs.tensors[0].tiles[0].box.sizes = {4};
  auto laid_out = writer->lay_out(outputs);
  REQUIRE(laid_out.has_value());
  CHECK_FALSE(writer->seal(outputs, *laid_out, {}).has_value());
}
