// Any byte of an item may be wrong: the result is an error or a finding, never a crash, and no
// allocation larger than the file could fill.
#include <doctest/doctest.h>

#include <cstring>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/item_hash.h"
#include "core/formats/items/items.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"
#include "core/model/builder.h"
#include "core/tensor/element_text.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Case {
  Bytes file;
  Dtype dtype = Dtype::kFloat32;
  Extents sizes{2, 3};
  std::vector<std::string> transforms = {};
  std::int64_t offset = 0;
  std::int64_t length = -1;  // -1: all of the file
};

std::shared_ptr<const Checkpoint> checkpoint_of(const Case& given) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  auto length = given.length == -1 ? static_cast<std::int64_t>(given.file.size()) : given.length;
  builder.set_directory(memory_directory("memory", {{"__0_0.distcp", given.file}}));
  builder.add_tensor("w", given.dtype, given.sizes);
  ChunkId chunk = builder.add_chunk(Extents(given.sizes.size(), 0), given.sizes,
                                    {builder.file("__0_0.distcp"), given.offset, length});
  if (!given.transforms.empty()) builder.set_transforms(chunk, given.transforms);
  return builder.finish();
}

// Reads everything. True if the damage is noticed: an error, or a CRC that differs.
bool noticed(const Case& given) {
  auto checkpoint = checkpoint_of(given);
  ChunkId chunk{0};
  auto header = read_item_header(*checkpoint, chunk);
  auto elements = read_chunk(*checkpoint, chunk);
  auto tensor = read_tensor(*checkpoint, TensorId{0});
  auto check = check_item_data(*checkpoint, chunk, nullptr);
  auto hash = hash_item(*checkpoint, *checkpoint->item(chunk), nullptr);
  if (!header) {
    CHECK_FALSE(header.error().message.empty());
    CHECK(header.error().place.file == "__0_0.distcp");
    CHECK(header.error().place.tensor == "w");
  }
  return !header || !elements || !tensor || !check || check->crc == DataCheck::Crc::kDiffers;
}

Bytes healthy_item(Dtype dtype = Dtype::kFloat32, const Extents& sizes = {2, 3}) {
  Bytes payload(static_cast<std::size_t>(*volume(sizes)) * size_of(dtype));
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 37 + 1);
  MemorySink sink;
  REQUIRE(write_torch_item(sink, dtype, sizes, payload).has_value());
  return sink.bytes;
}

Bytes item_of(const std::string& pickle, const std::string& payload = std::string(24, '\1'),
              const std::string& byteorder = "little") {
  return to_bytes(make_zip({{"a/data.pkl", pickle},
                            {"a/byteorder", byteorder},
                            {"a/data/0", payload},
                            {"a/version", "3\n"}}));
}

Result<Bytes> elements_of(const Case& given) {
  return read_chunk(*checkpoint_of(given), ChunkId{0});
}

ErrorKind kind_of(const Case& given) {
  auto header = read_item_header(*checkpoint_of(given), ChunkId{0});
  REQUIRE_FALSE(header.has_value());
  return header.error().kind;
}

}  // namespace

TEST_CASE("a healthy item shows no damage") {
  CHECK_FALSE(noticed({healthy_item()}));
}

TEST_CASE("an item cut short at any byte is an error") {
  Bytes item = healthy_item();
  for (std::size_t length = 0; length < item.size(); ++length) {
    CAPTURE(length);
    Bytes cut(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK(noticed({cut}));
    CHECK(noticed({cut, Dtype::kFloat32, {2, 3}, {}, 0, static_cast<std::int64_t>(item.size())}));
  }
}

TEST_CASE("every flipped bit of a record shows, and none elsewhere does harm") {
  Bytes item = healthy_item();
  auto checkpoint = checkpoint_of({item});
  auto header = read_item_header(*checkpoint, ChunkId{0});
  REQUIRE(header.has_value());
  std::size_t pickle_begin = 64, pickle_end = 64 + 150;
  for (std::size_t at = 0; at < item.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      CAPTURE(at);
      CAPTURE(bit);
      Bytes damaged = item;
      damaged[at] ^= std::byte{1} << bit;
      bool shows = noticed({damaged});
      bool in_payload = at >= header->payload_offset && at < header->payload_offset + 24;
      if (in_payload || (at >= pickle_begin && at < pickle_end)) CHECK(shows);
    }
  }
}

TEST_CASE("an archive that torch does not open is damaged where no checksum says so") {
  const Bytes item = healthy_item();
  std::string_view text(reinterpret_cast<const char*>(item.data()), item.size());
  struct Field {
    std::string_view signature;
    std::size_t offset;
    int value;
  };
  // Fields that miniz, and so torch, checks: disks, records on this disk, lengths, flags, and
  // whether a record is a folder, of which it silently reads nothing.
  const Field fields[] = {{"PK\6\6", 4, 43}, {"PK\6\6", 16, 1}, {"PK\6\6", 20, 1},
                          {"PK\6\6", 24, 9}, {"PK\6\6", 27, 1}, {"PK\6\7", 16, 2},
                          {"PK\1\2", 8, 1},  {"PK\1\2", 8, 32}, {"PK\1\2", 8, 64},
                          {"PK\1\2", 9, 32}, {"PK\1\2", 34, 2}, {"PK\1\2", 35, 255},
                          {"PK\1\2", 38, 16}};
  for (const Field& field : fields) {
    std::size_t at = text.rfind(field.signature) + field.offset;
    CAPTURE(field.signature);
    CAPTURE(field.offset);
    CAPTURE(field.value);
    Bytes damaged = item;
    damaged[at] = static_cast<std::byte>(field.value);
    REQUIRE(damaged != item);
    auto header = read_item_header(*checkpoint_of({damaged}), ChunkId{0});
    REQUIRE_FALSE(header.has_value());
    CHECK(header.error().kind == ErrorKind::kDamaged);
    CHECK(header.error().place.offset.has_value());
  }
}

TEST_CASE("a differing record is named with its place") {
  Bytes item = healthy_item();
  auto header = read_item_header(*checkpoint_of({item}), ChunkId{0});
  REQUIRE(header.has_value());
  Bytes shifted(100);
  shifted.insert(shifted.end(), item.begin(), item.end());
  shifted[100 + header->payload_offset + 5] ^= std::byte{1};
  auto check = check_item_data(
      *checkpoint_of(
          {shifted, Dtype::kFloat32, {2, 3}, {}, 100, static_cast<std::int64_t>(item.size())}),
      ChunkId{0}, nullptr);
  REQUIRE(check.has_value());
  CHECK(check->crc == DataCheck::Crc::kDiffers);
  CHECK(check->record == "archive/data/0");
  CHECK(check->record_offset == 100 + header->payload_offset);
  CHECK(check->record_length == 24);
}

TEST_CASE("fields overwritten by zeros, ones and huge numbers never crash the reader") {
  Bytes item = healthy_item();
  for (std::size_t width : {2, 4, 8}) {
    for (int value : {0x00, 0x7F, 0xFF}) {
      for (std::size_t at = 0; at + width <= item.size(); at += 2) {
        Bytes damaged = item;
        std::memset(damaged.data() + at, value, width);
        noticed({damaged});
      }
    }
  }
  Bytes swapped(item.begin() + 700, item.end());
  swapped.insert(swapped.end(), item.begin(), item.begin() + 700);
  CHECK(noticed({swapped}));
}

TEST_CASE("places that cannot be are errors with the numbers in them") {
  Bytes item = healthy_item();
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (std::int64_t offset : {std::int64_t{-1}, std::int64_t{5}, kHuge})
    CHECK(kind_of({item, Dtype::kFloat32, {2, 3}, {}, offset, 1577}) == ErrorKind::kDamaged);
  for (std::int64_t length : {std::int64_t{-2}, std::int64_t{0}, std::int64_t{21}, kHuge})
    CHECK(kind_of({item, Dtype::kFloat32, {2, 3}, {}, 0, length}) == ErrorKind::kDamaged);
}

TEST_CASE("sizes, strides, offsets and counts that cannot be are errors") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  auto damaged = [](TensorText tensor) { return item_of(as_pickle(tensor_call(tensor))); };
  CHECK_FALSE(noticed({damaged({})}));
  TensorText t;
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{1}, kHuge}) {
    CHECK(kind_of({damaged({t.storage_class, 6, bad})}) == ErrorKind::kDamaged);
    CHECK(kind_of({damaged({t.storage_class, 6, 0, {2, 3}, {bad == 1 ? 4 : bad, 1}})}) ==
          ErrorKind::kDamaged);
    CHECK(kind_of({damaged({t.storage_class, bad})}) == ErrorKind::kDamaged);
  }
  CHECK(kind_of({damaged({t.storage_class, 6, 0, {kHuge, kHuge}, {0, 0}})}) == ErrorKind::kDamaged);
  CHECK(kind_of({damaged({t.storage_class, 6, 0, {2, 3}, {1}})}) == ErrorKind::kDamaged);
  CHECK(kind_of({damaged({t.storage_class, 6, 0, Extents(65, 1), Extents(65, 1)})}) ==
        ErrorKind::kDamaged);
  // 2^40 elements expanded from one: a valid header whose elements are never computed.
  Case expanded{damaged({t.storage_class, 6, 0, {std::int64_t{1} << 40}, {0}}),
                Dtype::kFloat32,
                {std::int64_t{1} << 40}};
  CHECK(read_item_header(*checkpoint_of(expanded), ChunkId{0}).has_value());
  CHECK_FALSE(elements_of(expanded).has_value());
  CHECK_FALSE(read_tensor(*checkpoint_of(expanded), TensorId{0}).has_value());
}

TEST_CASE("tensors that are not plain ones are named and not read") {
  TensorText t;
  t.function = "torch._utils\n_rebuild_device_tensor_from_numpy\n";
  CHECK(kind_of({item_of(as_pickle(tensor_call(t)))}) == ErrorKind::kUnsupported);
  std::string wrapped =
      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
      "ctorchao.float8\nFloat8Tensor\n(NNNNNNt)tR";
  auto header = read_item_header(*checkpoint_of({item_of(as_pickle(wrapped))}), ChunkId{0});
  REQUIRE_FALSE(header.has_value());
  CHECK(header.error().kind == ErrorKind::kUnsupported);
  CHECK(header.error().message.find("torchao.float8.Float8Tensor") != std::string::npos);
  CHECK(kind_of({item_of(as_pickle("K\7"))}) == ErrorKind::kDamaged);
}

TEST_CASE("strides, byte order, signs, wrappers and deflate are undone") {
  TensorText t;
  t.sizes = {3, 2};
  t.strides = {1, 3};
  std::string payload;
  for (int i = 0; i < 6; ++i) payload += little(static_cast<std::uint64_t>(i + 1), 4);
  auto transposed =
      elements_of({item_of(as_pickle(tensor_call(t)), payload), Dtype::kFloat32, {3, 2}});
  REQUIRE(transposed.has_value());
  CHECK((*transposed)[4] == std::byte{4});
  CHECK((*transposed)[8] == std::byte{2});

  TensorText complex{"torch\nComplexFloatStorage\n", 1, 0, {1}, {1}};
  complex.more = flags("conj");
  std::string pair = little(0x3F800000, 4) + little(0x40000000, 4);
  auto conjugated =
      elements_of({item_of(as_pickle(tensor_call(complex)), pair), Dtype::kComplex64, {1}});
  REQUIRE(conjugated.has_value());
  CHECK(element_text(Dtype::kComplex64, *conjugated, 0) == "[1, -2]");
  complex.more = flags("neg");
  auto negated =
      elements_of({item_of(as_pickle(tensor_call(complex)), pair), Dtype::kComplex64, {1}});
  REQUIRE(negated.has_value());
  CHECK(element_text(Dtype::kComplex64, *negated, 0) == "[-1, -2]");
  complex.more.clear();
  std::string swapped = {0x3F, static_cast<char>(0x80), 0, 0, 0x40, 0, 0, 0};
  auto big = elements_of(
      {item_of(as_pickle(tensor_call(complex)), swapped, "big"), Dtype::kComplex64, {1}});
  REQUIRE(big.has_value());
  CHECK(element_text(Dtype::kComplex64, *big, 0) == "[1, 2]");
  CHECK(noticed(
      {item_of(as_pickle(tensor_call(complex)), swapped, "middle"), Dtype::kComplex64, {1}}));

  TensorText v3{
      "torch.storage\nUntypedStorage\n", 3, 0, {3}, {1}, "torch._utils\n_rebuild_tensor_v3\n",
      "ctorch\nfloat8_e4m3fn\n"};
  CHECK_FALSE(noticed({item_of(as_pickle(tensor_call(v3)), "abc"), Dtype::kFloat8E4m3fn, {3}}));
  std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + tensor_call({}) + "\x88" +
                          "ccollections\nOrderedDict\n)RtR";
  CHECK_FALSE(noticed({item_of(as_pickle(parameter))}));

  Bytes squeezed = to_bytes(make_zip({{"x/data.pkl", as_pickle(tensor_call({})), true},
                                      {"x/data/0", std::string(24, '\2'), true},
                                      {"x/version", "3\n"}},
                                     "a comment"));
  CHECK_FALSE(noticed({squeezed}));
}

TEST_CASE("what torch 2.15 stops at in a rebuild call is damage") {
  TensorText t;
  auto with = [](TensorText text, const std::string& more) {
    text.more = more;
    return Case{item_of(as_pickle(tensor_call(text)))};
  };
  for (const char* falsy : {"N", "}", "K\0", "\x89"}) {
    const std::string more = falsy[0] == 'K' ? std::string("K\0", 2) : falsy;
    CHECK_FALSE(noticed(with(t, more)));
  }
  CHECK_FALSE(noticed(with(t, flags("neg"))));
  for (const char* truthy : {"K\3", "\x88", ")"})
    CHECK(kind_of(with(t, truthy)) == ErrorKind::kDamaged);
  CHECK(kind_of(with(t, flags("conj"))) == ErrorKind::kDamaged);  // of a real dtype
  CHECK(kind_of(with(t, "NN")) == ErrorKind::kDamaged);           // one argument too many
  TensorText v3 = t;
  v3.function = "torch._utils\n_rebuild_tensor_v3\n";
  CHECK_FALSE(noticed(with(v3, "ctorch\nfloat32\nN")));
  CHECK(kind_of(with(v3, "ctorch\nfloat32\nNN")) == ErrorKind::kDamaged);
  TensorText v1 = t;  // the function takes four arguments, and the call passes six
  v1.function = "torch._utils\n_rebuild_tensor\n";
  CHECK(kind_of(with(v1, "")) == ErrorKind::kDamaged);
}

TEST_CASE("an archive that torch opens not, or may read two ways, is damage") {
  const std::string pickle = as_pickle(tensor_call({})), one(24, '\1'), other(24, '\2');
  const std::vector<ZipRecord> whole = {
      {"a/data.pkl", pickle}, {"a/data/0", one}, {"a/version", "3\n"}};
  CHECK_FALSE(noticed({to_bytes(make_zip(whole))}));
  for (const char* name : {"a/data/0", "a/DATA/0", "a/Data.pkl", "A/version"}) {
    for (std::size_t others : {0, 40}) {
      for (std::size_t at = 0; at <= whole.size(); ++at) {
        CAPTURE(name);
        std::vector<ZipRecord> records = whole;
        records.insert(records.begin() + static_cast<std::ptrdiff_t>(at), {name, other});
        for (std::size_t i = 0; i < others; ++i)
          records.push_back({"a/data/" + std::to_string(i + 1), "x"});
        CHECK(kind_of({to_bytes(make_zip(records))}) == ErrorKind::kDamaged);
      }
    }
  }
  CHECK(kind_of({to_bytes(make_zip({whole[0], whole[1]}))}) == ErrorKind::kDamaged);
  CHECK_FALSE(noticed({to_bytes(make_zip({whole[0], whole[1], {"a/.data/version", "3\n"}}))}));
}

TEST_CASE("big-endian bytes that torch swaps by another width than the tensor's are not checked") {
  const std::string uint16 = "ctorch\nuint16\n";
  auto v3 = [&](const std::string& storage, std::int64_t count, const std::string& dtype) {
    TensorText text{storage, count, 0, {4}, {1}, "torch._utils\n_rebuild_tensor_v3\n", dtype};
    return item_of(as_pickle(tensor_call(text)), "abcdefgh", "big");
  };
  const std::string untyped = "torch.storage\nUntypedStorage\n";
  CHECK(kind_of({v3(untyped, 8, uint16), Dtype::kUint16, {4}}) == ErrorKind::kUnsupported);
  CHECK(kind_of({v3("torch\nDoubleStorage\n", 1, uint16), Dtype::kUint16, {4}}) ==
        ErrorKind::kUnsupported);
  CHECK_FALSE(noticed({v3("torch\nShortStorage\n", 4, uint16), Dtype::kUint16, {4}}));
  CHECK(kind_of({v3("torch\nDoubleStorage\n", 1, "ctorch\nint8\n"), Dtype::kInt8, {4}}) ==
        ErrorKind::kUnsupported);
}

TEST_CASE("a payload of other sizes than the chunk's is an error that names both") {
  auto checkpoint = checkpoint_of({healthy_item(), Dtype::kFloat32, {4, 3}});
  auto elements = read_chunk(*checkpoint, ChunkId{0});
  REQUIRE_FALSE(elements.has_value());
  CHECK(elements.error().message.find("[2, 3]") != std::string::npos);
  CHECK(elements.error().message.find("[4, 3]") != std::string::npos);
}

TEST_CASE("bombs are refused before they go off") {
  std::string pickle =
      as_pickle(tensor_call({"torch\nByteStorage\n", 1'000'000'000, 0, {1'000'000'000}, {1}}));
  Bytes deflate = to_bytes(make_zip({{"x/data.pkl", pickle},
                                     {"x/data/0", std::string(24, '\0'), true, 1'000'000'000},
                                     {"x/version", "3\n"}}));
  CHECK(noticed({deflate, Dtype::kUint8, {1'000'000'000}}));

  // 10,000 blocks that repeat one byte for 128 KiB: 1.3 GB from 40 KB.
  std::string zstd = std::string("\x28\xB5\x2F\xFD", 4) + '\0' + '\x58';
  for (int i = 0; i < 10'000; ++i) {
    bool last = i == 9'999;
    zstd += little((std::uint64_t{128} << 10) << 3 | 2u | (last ? 1u : 0u), 3) + '\0';
  }
  CHECK(kind_of({to_bytes(zstd), Dtype::kFloat32, {2, 3}, {"stream.zstd/1"}}) ==
        ErrorKind::kUnsupported);
  std::string announced =
      std::string("\x28\xB5\x2F\xFD\xE0", 5) + little(std::uint64_t{1} << 60, 8) + little(1, 3);
  CHECK(kind_of({to_bytes(announced), Dtype::kFloat32, {2, 3}, {"stream.zstd/1"}}) ==
        ErrorKind::kUnsupported);
  for (std::size_t length = 0; length < 40; ++length)
    CHECK(noticed({to_bytes(zstd.substr(0, length)), Dtype::kFloat32, {2, 3}, {"stream.zstd/1"}}));

  Case made_up{healthy_item(), Dtype::kFloat32, {std::int64_t{1} << 33}};
  CHECK_FALSE(read_tensor(*checkpoint_of(made_up), TensorId{0}).has_value());
  Case wrapped{healthy_item(), Dtype::kFloat32, {std::int64_t{1} << 62, 16}};
  CHECK_FALSE(read_tensor(*checkpoint_of(wrapped), TensorId{0}).has_value());
}

TEST_CASE("unknown transforms are named") {
  for (const char* transform : {"stream.zstd/2", "stream.lz4/1", "stream.zstd", ""}) {
    auto header = read_item_header(
        *checkpoint_of({healthy_item(), Dtype::kFloat32, {2, 3}, {transform}}), ChunkId{0});
    REQUIRE_FALSE(header.has_value());
    CHECK(header.error().kind == ErrorKind::kUnsupported);
    CHECK(header.error().message.find(transform) != std::string::npos);
  }
}

TEST_CASE("an object is read through the transforms of its record") {
  Bytes item = healthy_item();
  auto checked = [&](const std::vector<std::string>& transforms) {
    CheckpointBuilder builder;
    builder.set_format(kDcpFormat);
    builder.set_directory(memory_directory("memory", {{"__0_0.distcp", item}}));
    ItemPlace place{builder.file("__0_0.distcp"), 0, static_cast<std::int64_t>(item.size())};
    builder.add_object({"o", place, transforms}, {});
    return check_object_data(*builder.finish(), 0, nullptr);
  };
  REQUIRE(checked({}).has_value());
  CHECK(checked({})->crc == DataCheck::Crc::kMatches);
  REQUIRE_FALSE(checked({"stream.zstd/1"}).has_value());  // its bytes are not a zstd frame
  CHECK(checked({"stream.zstd/1"}).error().kind == ErrorKind::kDamaged);
  REQUIRE_FALSE(checked({"stream.lz4/1"}).has_value());
  CHECK(checked({"stream.lz4/1"}).error().kind == ErrorKind::kUnsupported);
}
