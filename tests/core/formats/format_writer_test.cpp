// Checkpoints written by their format's writer, tile by tile in any order, and opened again.
#include "core/formats/format_writer.h"

#include <doctest/doctest.h>

#include <map>

#include "core/fixtures.h"
#include "core/formats/dcp/dcp_format_writer.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/plain_value.h"
#include "core/formats/written.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("what the DCP writer lays out opens as the checkpoint that it was laid out for") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto source = open_checkpoint(folder + "/ckpt");
    REQUIRE(source.has_value());
    auto made = written(*format_named("dcp").writer, outputs_of(**source), bytes_in(**source));
    CHECK(made->format().name == "dcp");
    REQUIRE(made->chunk_count() == (*source)->chunk_count());
    CHECK(bytes_in(*made) == bytes_in(**source));
    for (std::uint32_t c = 0; c < made->chunk_count(); ++c) {
      auto check = check_item_data(*made, ChunkId{c}, nullptr);
      REQUIRE_MESSAGE(check.has_value(), check.error().message);
      CHECK(check->crc == DataCheck::Crc::kMatches);
      CHECK(made->writer(ChunkId{c}) == (*source)->writer(ChunkId{c}).value_or(0));
    }
  }
}

TEST_CASE("metadata that is written tensor by tensor is that of all of them") {
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto source = open_checkpoint(folder + "/ckpt");
    REQUIRE(source.has_value());
    const Outputs outputs = outputs_of(**source);
    const FormatWriter& writer = *format_named("dcp").writer;
    WrittenFiles files = written_files(writer, outputs, bytes_in(**source));
    auto laid_out = writer.lay_out(outputs);
    REQUIRE(laid_out.has_value());
    auto metadata = dcp_metadata_of(outputs, *laid_out);
    REQUIRE(metadata.has_value());
    NamedSink sink(files, "all at once");
    REQUIRE(write_dcp_metadata(*metadata, sink));
    CHECK(files.at("all at once") == files.at(".metadata"));
    // A missing tile is reported by either writer.
    if (laid_out->made.empty()) continue;
    laid_out->made.pop_back();
    CHECK_FALSE(dcp_metadata_of(outputs, *laid_out).has_value());
    CHECK_FALSE(writer.seal(outputs, *laid_out, [&](const std::string& path) {
      return Result<std::unique_ptr<ByteSink>>(std::make_unique<NamedSink>(files, path));
    }));
  }
}

TEST_CASE("tiles that are sealed some at a time are sealed as their files are") {
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto source = open_checkpoint(folder + "/ckpt");
    REQUIRE(source.has_value());
    const Outputs outputs = outputs_of(**source);
    const std::vector<Bytes> bytes = bytes_in(**source);
    const FormatWriter& writer = *format_named("dcp").writer;
    const WrittenFiles wanted = written_files(writer, outputs, bytes);
    auto laid_out = writer.lay_out(outputs);
    REQUIRE(laid_out.has_value());
    WrittenFiles files;
    std::vector<std::uint32_t> tiles, checksums;
    for (std::uint32_t i = 0; i < laid_out->made.size(); ++i) {
      const WrittenTile& made = laid_out->made[i];
      put_bytes(files, *laid_out, made.file, made.offset, bytes[i]);
      tiles.push_back(i);
      checksums.push_back(crc32_of(bytes[i]));
      // In runs of different lengths, each within one file.
      const bool ends = i + 1 == laid_out->made.size() || laid_out->made[i + 1].file != made.file ||
                        tiles.size() > i % 5;
      if (!ends) continue;
      REQUIRE(writer.seal_tiles(outputs, *laid_out, tiles, checksums,
                                [&](std::uint64_t offset, BytesView part) -> Status {
                                  put_bytes(files, *laid_out, made.file, offset, part);
                                  return {};
                                }));
      CHECK_FALSE(writer.seal_tiles(outputs, *laid_out, tiles, {}, nullptr));
      tiles.clear();
      checksums.clear();
    }
    for (const auto& [path, content] : files) CHECK(content == wanted.at(path));
    CHECK(files.size() == laid_out->files.size());
  }
}

TEST_CASE("safetensors are laid out whole in one file and in shards with one file per rank") {
  Outputs whole;
  whole.tensors.push_back({"a", Dtype::kInt8, false, {3}, {{{{0}, {3}}, 0}}});
  whole.tensors.push_back({"b", Dtype::kFloat32, false, {2, 2}, {{{{0, 0}, {2, 2}}, 0}}});
  std::vector<Bytes> bytes = {rising_bytes(3, 1), rising_bytes(16, 40)};
  auto made = written(*format_named("safetensors").writer, whole, bytes);
  CHECK(made->format().name == "safetensors");
  REQUIRE(made->tensor_count() == 2);
  for (const char* name : {"a", "b"}) {
    auto values = read_tensor(*made, *made->find(name));
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    CHECK(values->bytes == bytes[name[0] == 'a' ? 0 : 1]);
  }
  CHECK(made->rank_count() == 0);

  Outputs shards;
  shards.tensors.push_back(
      {"w", Dtype::kFloat32, false, {3, 2}, {{{{0, 0}, {2, 2}}, 0}, {{{2, 0}, {1, 2}}, 1}}});
  bytes = {rising_bytes(16, 0), rising_bytes(8, 16)};
  made = written(*format_named("hf-sharded").writer, shards, bytes);
  CHECK(made->format().name == "hf-sharded");
  auto values = read_tensor(*made, *made->find("w"));
  REQUIRE_MESSAGE(values.has_value(), values.error().message);
  CHECK(values->bytes == rising_bytes(24, 0));
  CHECK(made->writer(made->chunks(*made->find("w"))[1]) == 1u);
}

TEST_CASE("a source of another format gives elements and not its form") {
  auto source = open_checkpoint(test::fixture_cases("healthy_").front() + "/ckpt");
  REQUIRE_MESSAGE(source.has_value(), source.error().message);
  Outputs outputs;
  outputs.source = source->get();
  outputs.tensors.push_back({"w", Dtype::kFloat32, false, {2}, {{{{0}, {2}}, 0}}});
  for (const char* name : {"safetensors", "hf-sharded"}) {
    CAPTURE(name);
    auto made = written(*format_named(name).writer, outputs, {rising_bytes(8, 1)});
    CHECK(made->format().name == name);
    CHECK(made->file_count() == 1);
  }
  auto files = written(*format_named("safetensors").writer, outputs, {rising_bytes(8, 1)});
  outputs.source = files.get();
  auto made = written(*format_named("dcp").writer, outputs, {rising_bytes(8, 1)});
  CHECK(made->file(FileId{0}).path == "__0_0.distcp");
  auto laid_out = format_named("dcp").writer->lay_out(outputs);
  REQUIRE(laid_out.has_value());
  CHECK(laid_out->replaced.empty());
}

TEST_CASE("a value that is given becomes an item of a DCP checkpoint") {
  Outputs outputs;
  outputs.tensors.push_back({"w", Dtype::kFloat32, false, {2}, {{{{0}, {2}}, 0}}});
  outputs.tensors.push_back({"v", Dtype::kInt8, false, {2}, {{{{0}, {2}}, 1}}});
  const std::string seven = "K\7", pair = "(K\1Nt";
  outputs.objects.push_back({.fqn = "opt.step", .path = {"opt", "step"}, .plain = seven});
  outputs.objects.push_back({.fqn = "opt.pair", .path = {"opt", "pair"}, .plain = pair});
  auto made =
      written(*format_named("dcp").writer, outputs, {rising_bytes(8, 3), rising_bytes(2, 9)});
  CHECK(made->opening_findings().empty());
  CHECK(read_tensor(*made, *made->find("w"))->bytes == rising_bytes(8, 3));
  REQUIRE(made->objects().size() == 2);
  CHECK(made->objects()[0].fqn == "opt.step");
  CHECK(made->object_path(1)[1] == PathPart("pair"));
  CHECK(to_text(*read_plain_value(*made, 0, 4096)) == "7");
  CHECK(to_text(*read_plain_value(*made, 1, 4096)) == "(1, None)");
  for (std::size_t i : {0u, 1u})
    CHECK(check_object_data(*made, i, nullptr)->crc == DataCheck::Crc::kMatches);
}

TEST_CASE("new safetensors files are filled in order as Hugging Face fills them") {
  Outputs outputs;
  auto add = [&](const char* name, std::int64_t bytes) {
    outputs.tensors.push_back({name, Dtype::kUint8, false, {bytes}, {{{{0}, {bytes}}, 0}}});
  };
  add("a", 6), add("b", 6), add("c", 2), add("huge", 11), add("d", 2), add("e", 1);
  outputs.shard_bytes = 10;
  std::vector<Bytes> bytes;
  for (const OutputTensor& tensor : outputs.tensors)
    bytes.push_back(rising_bytes(static_cast<std::size_t>(tensor.shape[0]), tensor.fqn[0]));
  auto made = written(*format_named("safetensors").writer, outputs, bytes);
  CHECK(made->opening_findings().empty());
  auto file_of = [&](const char* name) {
    return made->file(made->item(made->chunks(*made->find(name))[0])->file).path;
  };
  // Sizes per file: 6 | 6 + 2 + 2 | 11 alone, closed before the one that was open | 1.
  CHECK(file_of("a") == "model-00001-of-00004.safetensors");
  CHECK(file_of("huge") == "model-00002-of-00004.safetensors");
  for (const char* name : {"b", "c", "d"})
    CHECK(file_of(name) == "model-00003-of-00004.safetensors");
  CHECK(file_of("e") == "model-00004-of-00004.safetensors");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    CHECK(read_tensor(*made, *made->find(outputs.tensors[i].fqn))->bytes == bytes[i]);

  outputs.shard_bytes = 0;
  CHECK(format_named("safetensors").writer->lay_out(outputs)->files.size() == 1);
  CHECK(format_named("safetensors").writer->lay_out(outputs)->files[0].path == "model.safetensors");
}

TEST_CASE("a new safetensors file has wider elements first and then names") {
  Outputs outputs;
  auto add = [&](const char* name, Dtype dtype) {
    outputs.tensors.push_back({name, dtype, false, {8}, {{{{0}, {8}}, 0}}});
  };
  add("z", Dtype::kInt8), add("flags", Dtype::kBool), add("b", Dtype::kFloat16);
  add("y", Dtype::kBfloat16), add("a", Dtype::kBfloat16), add("n", Dtype::kInt64);
  add("r", Dtype::kFloat64);
  auto laid_out = format_named("safetensors").writer->lay_out(outputs);
  REQUIRE(laid_out.has_value());
  std::map<std::uint64_t, std::string> order;
  for (const WrittenTile& made : laid_out->made)
    order.emplace(made.offset, outputs.tensors[made.tensor].fqn);
  std::string text;
  for (const auto& [offset, fqn] : order) text += fqn + " ";
  CHECK(text == "n r a y b z flags ");
  REQUIRE(laid_out->before.size() == 1);
  CHECK(laid_out->before[0].bytes.size() % 8 == 0);
}

TEST_CASE("all that new safetensors cannot say is named in one error") {
  Outputs outputs;
  outputs.tensors.push_back({"whole", Dtype::kFloat32, false, {2}, {{{{0}, {2}}, 0}}});
  outputs.tensors.push_back({"half", Dtype::kFloat32, false, {2}, {{{{0}, {1}}, 0}}});
  outputs.tensors.push_back({"wave", Dtype::kComplex32, false, {2}, {{{{0}, {2}}, 0}}});
  outputs.tensors.push_back({"coded", Dtype::kQint8, false, {2}, {{{{0}, {2}}, 0}}});
  outputs.objects.push_back({"step", std::nullopt});
  auto laid_out = format_named("safetensors").writer->lay_out(outputs);
  REQUIRE_FALSE(laid_out.has_value());
  CHECK(laid_out.error().kind == ErrorKind::kUnsupported);
  for (const char* name : {"half", "wave (complex32)", "coded (qint8)", "step"})
    CHECK(laid_out.error().message.find(name) != std::string::npos);
  CHECK(laid_out.error().message.find("whole,") == std::string::npos);
}

TEST_CASE("a layout is refused where a tile cannot be and a seal where a checksum is missing") {
  for (const char* name : {"dcp", "safetensors"}) {
    CAPTURE(name);
    const FormatWriter& writer = *format_named(name).writer;
    Outputs outputs;
    outputs.tensors.push_back({"w", Dtype::kFloat32, false, {4}, {{{{0}, {-4}}, 0}}});
    CHECK_FALSE(writer.lay_out(outputs).has_value());
    outputs.tensors[0].tiles = {OutputTile{{{0}, {4}}, 0}};
    auto laid_out = writer.lay_out(outputs);
    REQUIRE(laid_out.has_value());
    if (writer.seal_file == nullptr) continue;
    CHECK_FALSE(writer.seal_file(outputs, *laid_out, 0, {}).has_value());
  }
}
