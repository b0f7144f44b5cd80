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

using WrittenFiles = std::map<std::string, Bytes>;

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

void put_bytes(WrittenFiles& files, const LaidOut& laid_out, std::uint32_t file,
               std::uint64_t offset, BytesView bytes) {
  REQUIRE(file < laid_out.files.size());
  Bytes& target = files[laid_out.files[file].path];
  target.resize(laid_out.files[file].size, std::byte{0xEE});
  REQUIRE(offset + bytes.size() <= target.size());
  std::copy(bytes.begin(), bytes.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Keeps what is written under a name.
class NamedSink final : public ByteSink {
 public:
  NamedSink(WrittenFiles& files, std::string path) : bytes_(files[std::move(path)]) {}
  Status write(BytesView more) override {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return {};
  }
  Status skip(std::uint64_t) override { return fail(ErrorKind::kUsage, "no"); }
  std::uint64_t position() const override { return bytes_.size(); }
  Status finish() override { return {}; }

 private:
  Bytes& bytes_;
};

// `bytes`: of every tile. Tiles last to first: nothing may depend on the order.
std::shared_ptr<const Checkpoint> written(const FormatWriter& writer, const Outputs& outputs,
                                          const std::vector<Bytes>& bytes) {
  auto laid_out = writer.lay_out(outputs);
  REQUIRE_MESSAGE(laid_out.has_value(), laid_out.error().message);
  REQUIRE(laid_out->made.size() == bytes.size());
  WrittenFiles files;
  std::vector<std::uint32_t> checksums(bytes.size());
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const MadeTile& made = laid_out->made[i];
    CHECK(made.length == bytes[i].size());
    put_bytes(files, *laid_out, made.file, made.offset, bytes[i]);
    checksums[i] = crc32_of(bytes[i]);
  }
  for (const OutputBytes& part : laid_out->before)
    put_bytes(files, *laid_out, part.file, part.offset, part.bytes);
  for (std::uint32_t f = 0; writer.seal_file != nullptr && f < laid_out->files.size(); ++f) {
    auto around = writer.seal_file(outputs, *laid_out, f, checksums);
    REQUIRE_MESSAGE(around.has_value(), around.error().message);
    for (const OutputBytes& part : *around)
      put_bytes(files, *laid_out, part.file, part.offset, part.bytes);
  }
  auto sealed = writer.seal(outputs, *laid_out, [&](const std::string& path) {
    return Result<std::unique_ptr<ByteSink>>(std::make_unique<NamedSink>(files, path));
  });
  REQUIRE_MESSAGE(sealed.has_value(), sealed.error().message);
  std::vector<std::pair<std::string, Bytes>> all(files.begin(), files.end());
  auto opened = open_checkpoint(memory_directory("written", all));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

std::vector<Bytes> bytes_in(const Checkpoint& checkpoint) {
  std::vector<Bytes> all;
  for (std::uint32_t c = 0; c < checkpoint.chunk_count(); ++c) {
    auto bytes = read_chunk(checkpoint, ChunkId{c});
    REQUIRE_MESSAGE(bytes.has_value(), bytes.error().message);
    all.push_back(std::move(*bytes));
  }
  return all;
}

Bytes rising_bytes(std::size_t length, int first) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(first + int(i));
  return bytes;
}

const Format& format_named(std::string_view name) {
  auto rows = formats();
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const FormatRow& one) { return one.format->name == name; });
  REQUIRE(row != rows.end());
  REQUIRE(row->format->writer != nullptr);
  return *row->format;
}

}  // namespace

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

TEST_CASE("safetensors are laid out whole in one file and in shards with one file a rank") {
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
  // 6 | 6 + 2 + 2 | 11 alone, closed before the one that was open | 1
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
  for (const MadeTile& made : laid_out->made)
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
    outputs.tensors[0].tiles[0].box.sizes = {4};
    auto laid_out = writer.lay_out(outputs);
    REQUIRE(laid_out.has_value());
    if (writer.seal_file == nullptr) continue;
    CHECK_FALSE(writer.seal_file(outputs, *laid_out, 0, {}).has_value());
  }
}
