// Checkpoints that real torch wrote, read back bit for bit.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/fixtures.h"
#include "core/formats/common/codecs.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/model/builder.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

constexpr Format kBareFormat = {.name = "bare", .title = "elements alone", .codec = &kRawCodec};

}  // namespace

TEST_CASE("every tensor of a healthy checkpoint reads back as torch holds it") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto truth = test::read_truth(folder + "/truth.safetensors");
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(truth.has_value());
    REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
    std::size_t compared = 0;
    for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t) {
      std::string fqn((*checkpoint)->fqn(TensorId{t}));
      CAPTURE(fqn);
      auto values = read_tensor(**checkpoint, TensorId{t});
      REQUIRE_MESSAGE(values.has_value(), values.error().message);
      CHECK(values->uncovered == 0);
      auto expected = truth->find(fqn);
      if (expected == truth->end()) continue;  // safetensors has no complex dtype
      CHECK(values->dtype == expected->second.dtype);
      CHECK(values->shape == expected->second.shape);
      CHECK(values->bytes == expected->second.bytes);
      ++compared;
    }
    CHECK(compared == truth->size());
  }
}

TEST_CASE("the first elements of a tensor are those of all of it") {
  std::size_t shorter = 0;
  for (const char* kind : {"healthy_", "s1_", "s4_"}) {
    for (const std::string& folder : test::fixture_cases(kind)) {
      CAPTURE(folder);
      auto checkpoint = open_checkpoint(folder + "/ckpt");
      REQUIRE(checkpoint.has_value());
      for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t) {
        auto all = read_tensor(**checkpoint, TensorId{t});
        for (std::uint64_t count : {0, 1, 2, 7, 100, 1'000'000}) {
          auto first = read_first_elements(**checkpoint, TensorId{t}, count);
          CHECK(first.has_value() == all.has_value());
          if (!all || !first) continue;
          CHECK(first->shape == all->shape);
          CHECK(first->dtype == all->dtype);
          CHECK(first->uncovered == all->uncovered);
          const std::size_t wanted = static_cast<std::size_t>(count) * size_of(all->dtype);
          CHECK(first->bytes.size() ==
                (count == 0 ? all->bytes.size() : std::min(all->bytes.size(), wanted)));
          CHECK(std::equal(first->bytes.begin(), first->bytes.end(), all->bytes.begin()));
          shorter += first->bytes.size() < all->bytes.size() ? 1 : 0;
        }
      }
    }
  }
  CHECK(shorter > 100);
}

TEST_CASE("the first elements of a large tensor are read without the rest") {
  // 16 GB of float32, half of it in the file: holes except for the first bytes.
  const Extents shape{2, 1'000'000, 2'000};
  std::uint64_t read = 0;
  TemporaryFolder folder;
  const float numbers[] = {1, 2, 3};
  {
    std::ofstream file(folder / "data", std::ios::binary);
    file.write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  std::filesystem::resize_file(folder / "data", 8'000'000'000);
  CheckpointBuilder builder;
  builder.set_format(kBareFormat);
  builder.set_directory(
      faulty_directory(open_directory(folder.path()).value(),
                       [&](const std::string&, std::uint64_t, std::size_t length) {
                         read += length;
                         return std::optional<Error>();
                       }));
  builder.add_tensor("w", Dtype::kFloat32, shape);
  builder.add_chunk(Extents(3, 0), Extents{1, 1'000'000, 2'000},
                    {builder.file("data"), 0, 8'000'000'000});
  auto checkpoint = builder.finish();
  auto first = read_first_elements(*checkpoint, TensorId{0}, 3);
  if (!first) FAIL(first.error().message);
  CHECK(std::memcmp(first->bytes.data(), numbers, sizeof numbers) == 0);
  CHECK(first->bytes.size() == sizeof numbers);
  CHECK(first->uncovered == 2'000'000'000);
  CHECK(read < 1 << 20);
}

TEST_CASE("every record of a healthy checkpoint has the CRC that it announces") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      auto check = check_item_data(**checkpoint, ChunkId{c}, nullptr);
      REQUIRE_MESSAGE(check.has_value(), check.error().message);
      // Bare elements have no checksum of their own; those in a record of an archive have the
      // record's.
      const bool may_be_absent = (*checkpoint)->codec(ChunkId{c}).is_without_header;
      const bool is_absent = may_be_absent && check->crc == DataCheck::Crc::kAbsent;
      CHECK((is_absent || check->crc == DataCheck::Crc::kMatches));
    }
    for (std::size_t object = 0; object < (*checkpoint)->objects().size(); ++object) {
      auto check = check_object_data(**checkpoint, object, nullptr);
      REQUIRE_MESSAGE(check.has_value(), check.error().message);
      CHECK(check->crc == DataCheck::Crc::kMatches);
    }
  }
}

TEST_CASE("what elements are is counted as they pass, whatever form they are saved in") {
  std::size_t counted = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    if (!checkpoint) continue;
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      auto header = read_item_header(**checkpoint, ChunkId{c});
      auto elements = read_chunk(**checkpoint, ChunkId{c});
      if (!header || !elements) continue;
      auto check = check_item_data(**checkpoint, ChunkId{c}, nullptr, &*header);
      REQUIRE(check.has_value());
      bool as_recorded =
          header->dtype == (*checkpoint)->dtype((*checkpoint)->tensor_of(ChunkId{c})) &&
          same(header->sizes, (*checkpoint)->sizes(ChunkId{c}));
      REQUIRE(check->floats.has_value() == (as_recorded && can_be_counted(header->dtype)));
      if (!check->floats) continue;
      FloatCounter slow(header->dtype);
      for (std::byte one : *elements) slow.add(BytesView(&one, 1));
      CHECK(*check->floats == slow.counts());
      ++counted;
    }
  }
  CHECK(counted > 500);
}

TEST_CASE("headers read together are those read one by one") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    auto headers = read_item_headers(**checkpoint, nullptr);
    REQUIRE(headers.has_value());
    REQUIRE(headers->size() == (*checkpoint)->chunk_count());
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      auto alone = read_item_header(**checkpoint, ChunkId{c});
      REQUIRE((*headers)[c].has_value());
      REQUIRE(alone.has_value());
      CHECK(alone->payload_offset == (*headers)[c]->payload_offset);
      CHECK(alone->sizes == (*headers)[c]->sizes);
      CHECK(alone->strides == (*headers)[c]->strides);
      CHECK(same(alone->sizes, (*checkpoint)->sizes(ChunkId{c})));
    }
  }
}
