// Checkpoints that real torch wrote, read back bit for bit.
#include <doctest/doctest.h>

#include "core/fixtures.h"
#include "core/formats/items.h"
#include "core/formats/open.h"

using namespace shw;

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
      if (expected == truth->end()) continue;  // complex: safetensors has none
      CHECK(values->dtype == expected->second.dtype);
      CHECK(values->shape == expected->second.shape);
      CHECK(values->bytes == expected->second.bytes);
      ++compared;
    }
    CHECK(compared == truth->size());
  }
}

TEST_CASE("every record of a healthy checkpoint has the CRC that it announces") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    auto wanted = (*checkpoint)->format().codec->lies_bare ? DataCheck::Crc::kAbsent
                                                           : DataCheck::Crc::kMatches;
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      auto check = check_item_data(**checkpoint, ChunkId{c}, nullptr);
      REQUIRE_MESSAGE(check.has_value(), check.error().message);
      CHECK(check->crc == wanted);
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
