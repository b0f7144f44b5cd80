// Items that have to be decoded, within a memory budget and beyond it.
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "core/faulty_store.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/items/decoded_items.h"
#include "core/formats/items/element_pass.h"
#include "core/formats/items/item_access.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/zip/zip.h"
#include "core/make_zip.h"
#include "core/memory_store.h"
#include "core/model/builder.h"
#include "core/put_folder.h"
#include "core/tensor/statistics_counter.h"
#include "core/tensor/strided_copy.h"

using namespace shw;
using namespace shw::test;

namespace {

const Extents kSizes{96, 128, 200};  // 9.8 MB of float32

std::string some_floats() {
  std::mt19937 dice(5);
  std::vector<float> numbers(static_cast<std::size_t>(*volume(kSizes)));
  for (float& number : numbers) number = static_cast<float>(dice() % 1000) - 500;
  numbers[77] = std::numeric_limits<float>::quiet_NaN();
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

struct Encoded {
  bool transposed = false, big_endian = false, negative = false, with_crc = true;
};

// One item whose payload is deflated, as zip tools do it with a file of torch.
std::shared_ptr<const Checkpoint> deflated_item(const Encoded& how = {}) {
  TensorText tensor;
  tensor.count = *volume(kSizes);
  tensor.sizes = kSizes;
  tensor.strides = how.transposed ? Extents{1, 96, 96 * 128} : row_major_strides(kSizes);
  if (how.negative) tensor.more = flags("neg");
  std::vector<ZipRecord> records{{"archive/data.pkl", as_pickle(tensor_call(tensor))},
                                 {"archive/byteorder", how.big_endian ? "big" : "little"},
                                 {"archive/data/0", some_floats(), true},
                                 {"archive/version", "3\n"}};
  for (ZipRecord& record : records) record.crc = how.with_crc;
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  Bytes file = to_bytes(make_zip(records));
  const auto length = static_cast<std::int64_t>(file.size());
  builder.set_directory(memory_directory("memory", {{"__0_0.distcp", std::move(file)}}));
  builder.add_tensor("w", Dtype::kFloat32, kSizes);
  builder.add_chunk(Extents(3, 0), kSizes, {builder.file("__0_0.distcp"), 0, length});
  return builder.finish();
}

Bytes cut_out(const Bytes& all, const Box& box) {
  Extents strides = row_major_strides(kSizes);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < kSizes.size(); ++d) first += box.offsets[d] * strides[d];
  Bytes out(static_cast<std::size_t>(*volume(box.sizes)) * 4);
  copy_strided({all, strides, first}, {out, row_major_strides(box.sizes), 0}, box.sizes, 4);
  return out;
}

const Encoded kWays[] = {{}, {.transposed = true}, {.big_endian = true}, {.negative = true}};

}  // namespace

TEST_CASE("boxes that are decoded while they are read are those of the item decoded whole") {
  for (const Encoded& how : kWays) {
    auto checkpoint = deflated_item(how);
    auto all = read_chunk(*checkpoint, ChunkId{0});
    REQUIRE(all.has_value());
    const std::uint64_t needed = decoding_bytes(*checkpoint, ChunkId{0}, all->size());
    ItemCursor whole_items(*checkpoint, needed), streaming(*checkpoint, needed - 1);
    std::mt19937 dice(11);
    for (int i = 0; i < 24; ++i) {
      Box box = whole(kSizes);
      for (std::size_t d = 0; d < 3; ++d) {
        // First boxes of rows in order, then boxes at any place.
        box.offsets[d] = i < 12 ? (d == 0 ? 8 * i : 0) : dice() % (kSizes[d] / 2);
        box.sizes[d] = i < 12 ? (d == 0 ? 8 : kSizes[d]) : 1 + dice() % (kSizes[d] / 2);
      }
      auto held = whole_items.read(ChunkId{0}, box), passed = streaming.read(ChunkId{0}, box);
      REQUIRE(held.has_value());
      REQUIRE(passed.has_value());
      CHECK(*passed == cut_out(*all, box));
      CHECK(*held == *passed);
    }
    CHECK(whole_items.peak_decoded_bytes() == needed);
    CHECK(streaming.peak_decoded_bytes() == 0);
  }
}

TEST_CASE("elements that pass are those of the item, however it is encoded") {
  for (const Encoded& how : kWays) {
    auto checkpoint = deflated_item(how);
    auto all = read_chunk(*checkpoint, ChunkId{0});
    REQUIRE(all.has_value());
    Bytes passed;
    ExtentVisitor parts;
    parts.bytes = [&](BytesView bytes) -> Status {
      passed.insert(passed.end(), bytes.begin(), bytes.end());
      return {};
    };
    ItemCursor items(*checkpoint);
    const std::int64_t count = *volume(kSizes);
    for (std::int64_t first = 0; first < count; first += count / 3) {
      auto given = stream_elements(items, ChunkId{0}, {first, first + count / 3}, parts, nullptr);
      REQUIRE(given.has_value());
      CHECK(*given == (first == 0 ? count : 0));
    }
    // Elements come in the order in the file.
    if (!how.transposed) CHECK(passed == *all);
    StatisticsCounter seen, wanted;
    seen.begin(Dtype::kFloat32);
    wanted.begin(Dtype::kFloat32);
    seen.add(passed);
    wanted.add(*all);
    CHECK(range_text(seen.take()) == range_text(wanted.take()));
  }
}

TEST_CASE("what an encoded item holds is counted while its checksum is taken") {
  for (bool with_crc : {true, false}) {
    auto checkpoint = deflated_item({.with_crc = with_crc});
    auto header = read_item_header(*checkpoint, ChunkId{0});
    REQUIRE(header.has_value());
    REQUIRE(header->compressed);
    StatisticsCounter counter, wanted;
    ItemNumbers numbers{counter};
    auto check = check_item_data(*checkpoint, ChunkId{0}, nullptr, &*header, &numbers);
    REQUIRE(check.has_value());
    CHECK(check->crc == (with_crc ? DataCheck::Crc::kMatches : DataCheck::Crc::kAbsent));
    REQUIRE(check->floats.has_value());
    CHECK(check->floats->count == *volume(kSizes));
    CHECK(check->floats->nan == 1);
    CHECK(numbers.sums.has_value() == with_crc);
    if (!numbers.sums) continue;
    auto all = read_chunk(*checkpoint, ChunkId{0});
    wanted.begin(Dtype::kFloat32);
    wanted.add(*all);
    const StatisticsSums sums = wanted.take();
    CHECK(range_text(*numbers.sums) == range_text(sums));
    CHECK(numbers.sums->zero == sums.zero);
    CHECK(numbers.sums->elements == sums.elements);
  }
}

TEST_CASE("all of an item passes in pieces as they are, each element once") {
  for (const Encoded& how : kWays) {
    auto checkpoint = deflated_item(how);
    const auto all = read_chunk(*checkpoint, ChunkId{0});
    REQUIRE(all.has_value());
    for (const Box& asked : {whole(kSizes), Box{{3, 10, 7}, {90, 110, 180}}}) {
      ItemCursor reader(*checkpoint, /*decoded_bytes=*/0);
      std::int64_t elements = 0;
      std::size_t pieces = 0, wrong = 0;
      auto take = [&](const Box& box, BytesView bytes) -> Status {
        CHECK(bytes.size() <= std::size_t{4} << 20);
        CHECK(intersect(box, asked) == box);
        elements += *volume(box.sizes);
        ++pieces;
        wrong += Bytes(bytes.begin(), bytes.end()) != cut_out(*all, box);
        return {};
      };
      REQUIRE(stream_boxes(reader, ChunkId{0}, asked, take, nullptr));
      CHECK(elements == *volume(asked.sizes));  // pieces do not overlap, since they are slabs
      CHECK(pieces > 1);
      CHECK(wrong == 0);
      CHECK(reader.peak_decoded_bytes() == 0);
    }
  }
}

TEST_CASE("a deflated record of another length than it announces is damaged") {
  const std::string bytes(200'000, 'x');
  for (std::uint64_t announced : {std::uint64_t{199'999}, std::uint64_t{200'001}}) {
    const std::string file = make_zip({{"archive/data/0", bytes, true, announced}});
    auto zip = ZipReader::open(memory_source("a.zip", to_bytes(file)), 0, file.size());
    REQUIRE(zip.has_value());
    const ZipEntry& entry = zip->entries().front();
    CHECK_FALSE(zip->read(entry, 1 << 20).has_value());
    CHECK_FALSE(zip->crc_of(entry, nullptr).has_value());
  }
  const std::string empty = make_zip({{"archive/data/0", "", true}, {"b", "x"}});
  auto zip = ZipReader::open(memory_source("a.zip", to_bytes(empty)), 0, empty.size());
  REQUIRE(zip.has_value());
  CHECK(zip->read(zip->entries().front(), 1).value().empty());
  CHECK(zip->crc_of(zip->entries().front(), nullptr).value() == 0);
}

TEST_CASE("an item that is decoded into a file is the item, however it is encoded") {
  std::vector<std::shared_ptr<const Checkpoint>> checkpoints;
  for (const Encoded& how : kWays) checkpoints.push_back(deflated_item(how));
  for (const char* folder : {"/torch-2.14/healthy_zstd/ckpt", "/h5py/filled.h5", "/h5py/tiles.h5"})
    checkpoints.push_back(open_checkpoint(std::string(SHW_TEST_DATA) + folder).value());
  MemoryStore store;
  auto folder = store.make_folder("/out").value();
  for (const auto& checkpoint : checkpoints) {
    for (std::uint32_t i = 0; i < checkpoint->chunk_count(); ++i) {
      auto wanted = read_chunk(*checkpoint, ChunkId{i});
      if (!wanted || wanted->empty()) continue;
      auto elements =
          decode_item(*checkpoint, ChunkId{i}, folder->create_scratch().value(), nullptr);
      if (!elements) FAIL(elements.error().message);
      CHECK(read_bytes(**elements, 0, (*elements)->size()).value() == *wanted);
      CHECK(decode_item(*checkpoint, ChunkId{i}, wanted->size(), nullptr).value() == *wanted);
      CHECK(store.scratch().now >= wanted->size());
    }
  }
  CHECK(store.scratch().now == 0);
  CHECK(store.read_folder("/out").value()->list()->empty());
}

TEST_CASE("a compressed item is read once where it is decoded into a file") {
  MemoryStore store;
  put_folder(store, SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt", "/ck");
  std::uint64_t read = 0;
  FaultyStore counting(
      store, [](const auto&, const auto&) { return std::nullopt; },
      [&](const std::string& path, std::uint64_t, std::size_t length) -> std::optional<Error> {
        if (path.ends_with(".distcp")) read += length;
        return std::nullopt;
      });
  auto checkpoint = open_checkpoint(counting.read_folder("/ck").value()).value();
  auto folder = store.make_folder("/out").value();
  for (std::uint32_t i = 0; i < checkpoint->chunk_count(); ++i) {
    read = 0;
    auto scratch = folder->create_scratch().value();
    REQUIRE(decode_item(*checkpoint, ChunkId{i}, scratch, nullptr).has_value());
    CHECK(read == static_cast<std::uint64_t>(checkpoint->item(ChunkId{i})->length));
  }
}

TEST_CASE("what cannot be decoded into a file says whose bytes are wrong") {
  MemoryStore store;
  put_folder(store, SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt", "/ck");
  auto healthy = open_checkpoint(store.read_folder("/ck").value()).value();
  const ItemPlace place = healthy->item(ChunkId{0}).value();
  const std::string path = healthy->file(place.file).path;
  Bytes bytes = store.get("/ck/" + path).value();
  std::fill_n(bytes.begin() + place.offset + place.length / 8, place.length / 2, std::byte{0x55});
  store.put("/ck/" + path, bytes);
  auto checkpoint = open_checkpoint(store.read_folder("/ck").value()).value();
  auto folder = store.make_folder("/out").value();
  auto damaged = decode_item(*checkpoint, ChunkId{0}, folder->create_scratch().value(), nullptr);
  REQUIRE_FALSE(damaged.has_value());
  CHECK(damaged.error().kind == ErrorKind::kDamaged);
  CHECK(damaged.error().place.file == path);
  CHECK(damaged.error().place.tensor == healthy->fqn(healthy->tensor_of(ChunkId{0})));
  // A full disk is not reported as damage of the item.
  FaultyStore full(store, [](const std::string& step, const std::string& where) {
    return step == "write" ? std::optional<Error>(Error{ErrorKind::kIo, "it is full", {where}})
                           : std::nullopt;
  });
  auto scratch = full.edit_folder("/out").value()->create_scratch().value();
  auto refused = decode_item(*healthy, ChunkId{1}, scratch, nullptr);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kIo);
  CHECK(refused.error().place.file == "/out/(decoded)");
  Progress stopped;
  stopped.cancel();
  auto cancelled = decode_item(*healthy, ChunkId{1}, folder->create_scratch().value(), &stopped);
  REQUIRE_FALSE(cancelled.has_value());
  CHECK(cancelled.error().kind == ErrorKind::kCancelled);
}
