#include <doctest/doctest.h>

#include <string_view>

#include "core/fixtures.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/zip/crc32.h"
#include "core/memory_sink.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

bool has_new_layout(BytesView item) {
  std::string_view text(reinterpret_cast<const char*>(item.data()), item.size());
  return text.find(".format_version") != std::string_view::npos;
}

// Pretends to have written `length` bytes without storing them, for items larger than 4 GiB.
class CountingSink final : public ByteSink {
 public:
  Status write(std::span<const std::byte> part) override {
    if (end_ >= kept_from) tail.insert(tail.end(), part.begin(), part.end());
    if (end_ < kept_from) head.insert(head.end(), part.begin(), part.end());
    end_ += part.size();
    return {};
  }
  Status skip(std::uint64_t length) override {
    kept_from = end_ + length;
    hole = end_;
    end_ += length;
    return {};
  }
  std::uint64_t position() const override { return end_; }
  Status finish() override { return {}; }

  Bytes head, tail;
  std::uint64_t hole = 0, kept_from = std::uint64_t{1} << 62;

 private:
  std::uint64_t end_ = 0;
};

// Presents what CountingSink kept as a sparse source.
class SparseSource final : public ByteSource {
 public:
  explicit SparseSource(CountingSink sink) : sink_(std::move(sink)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return sink_.position(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint64_t at = offset + i;
      out[i] = at < sink_.hole        ? sink_.head[at]
               : at < sink_.kept_from ? std::byte{0}
                                      : sink_.tail[at - sink_.kept_from];
    }
    return {};
  }
  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    if (offset == sink_.hole && length == sink_.kept_from - sink_.hole)
      return {{offset, length, true}};
    return {{offset, length, false}};
  }

 private:
  std::string name_ = "sparse";
  CountingSink sink_;
};

}  // namespace

TEST_CASE("an item that torch wrote is rewritten byte for byte") {
  std::size_t compared = 0;
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    if ((*checkpoint)->format().codec->is_without_header) continue;
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      ChunkId chunk{c};
      auto header = read_item_header(**checkpoint, chunk);
      REQUIRE(header.has_value());
      auto place = *(*checkpoint)->item(chunk);
      auto file = (*checkpoint)->directory()->open((*checkpoint)->file(place.file).path);
      REQUIRE(file.has_value());
      auto original = read_bytes(**file, static_cast<std::uint64_t>(place.offset),
                                 static_cast<std::uint64_t>(place.length));
      REQUIRE(original.has_value());
      if (header->compressed || header->conjugate || header->negative ||
          header->strides != row_major_strides(header->sizes) || !has_new_layout(*original))
        continue;
      auto payload = read_chunk(**checkpoint, chunk);
      REQUIRE(payload.has_value());
      test::MemorySink sink;
      auto length = write_torch_item(sink, header->dtype, header->sizes, *payload);
      REQUIRE(length.has_value());
      CHECK(*length == sink.bytes.size());
      CHECK_MESSAGE(sink.bytes == *original, (*checkpoint)->fqn((*checkpoint)->tensor_of(chunk)));
      ++compared;
    }
  }
  CHECK(compared > 0);
}

TEST_CASE("every dtype and rank that is written reads back") {
  for (auto d = static_cast<std::size_t>(Dtype::kUnknown) + 1;
       d < static_cast<std::size_t>(Dtype::kCount); ++d) {
    auto dtype = static_cast<Dtype>(d);
    for (const Extents& sizes : {Extents{}, Extents{0}, Extents{3}, Extents{2, 3}, Extents{2, 1, 3},
                                 Extents{2, 2, 2, 2}, Extents{1, 300, 1, 1, 1}, Extents{70'000}}) {
      CAPTURE(name(dtype));
      CAPTURE(to_text(sizes));
      Bytes payload(static_cast<std::size_t>(*volume(sizes)) * size_of(dtype));
      for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
      test::MemorySink sink;
      REQUIRE(sink.write(Bytes(13)).has_value());  // items are not aligned in their file
      auto length = write_torch_item(sink, dtype, sizes, payload);
      REQUIRE(length.has_value());
      auto source = memory_source("item", sink.bytes);
      auto item = open_torch_item(source, 13, *length);
      REQUIRE_MESSAGE(item.has_value(), item.error().message);
      CHECK(item->header.dtype == dtype);
      CHECK(item->header.sizes == sizes);
      CHECK(item->header.payload_length == payload.size());
      CHECK((item->header.payload_offset - 13) % 64 == 0);
      auto read = read_bytes(*source, item->header.payload_offset, payload.size());
      REQUIRE(read.has_value());
      CHECK(*read == payload);
      for (const ZipEntry& entry : item->zip.entries())
        CHECK(item->zip.crc_of(entry, nullptr) == entry.crc);
    }
  }
}

TEST_CASE("an item beyond 4 GiB uses zip64 and its payload may be a hole") {
  constexpr std::int64_t kElements = (std::int64_t{5} << 30) / 4;
  CountingSink sink;
  PayloadWriter payload{[](ByteSink& out) -> Result<std::uint32_t> {
                          SHW_CHECK(out.skip(std::uint64_t{5} << 30));
                          return crc32_of_zeros(0, std::uint64_t{5} << 30);
                        },
                        std::uint64_t{5} << 30};
  auto length = write_torch_item(sink, Dtype::kFloat32, Extents{kElements}, payload);
  REQUIRE(length.has_value());
  auto source = std::make_shared<SparseSource>(std::move(sink));
  auto item = open_torch_item(source, 0, *length);
  REQUIRE_MESSAGE(item.has_value(), item.error().message);
  CHECK(item->header.sizes == Extents{kElements});
  CHECK(item->header.payload_length == std::uint64_t{5} << 30);
  for (const ZipEntry& entry : item->zip.entries())
    CHECK(item->zip.crc_of(entry, nullptr) == entry.crc);
}

TEST_CASE("a payload of another length than it was announced with is refused") {
  test::MemorySink sink;
  CHECK_FALSE(write_torch_item(sink, Dtype::kFloat32, Extents{2}, Bytes(7)).has_value());
  PayloadWriter liar{[](ByteSink& out) -> Result<std::uint32_t> {
                       SHW_CHECK(out.write(Bytes(4)));
                       return 0u;
                     },
                     8};
  CHECK_FALSE(write_torch_item(sink, Dtype::kFloat32, Extents{2}, liar).has_value());
}
