// Reads boxes of tensors in any tiles, and compares with a loop over elements.
#include "core/verbs/values/read_elements.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/fixtures.h"
#include "core/formats/common/codecs.h"
#include "core/model/builder.h"

using namespace shw;

namespace {

const Format kPlainFormat{.name = "plain", .title = "plain", .codec = &kRawCodec};

// A tensor [6, 4] of bytes 0 to 23, in tiles of two rows; the last may be left out.
std::shared_ptr<const Checkpoint> six_rows(bool with_last) {
  Bytes bytes(24);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  CheckpointBuilder builder;
  builder.set_format(kPlainFormat);
  builder.set_directory(memory_directory("memory", {{"data", std::move(bytes)}}));
  builder.add_tensor("rows", Dtype::kUint8, Extents{6, 4});
  for (std::int64_t row = 0; row < (with_last ? 6 : 4); row += 2)
    builder.add_chunk(Extents{row, 0}, Extents{2, 4}, {builder.file("data"), row * 4, 8});
  return builder.finish();
}

Status read(const Checkpoint& checkpoint, const Box& box, Bytes& out) {
  return verbs::read_elements(checkpoint, TensorId{0}, box, out);
}

}  // namespace

TEST_CASE("boxes across tiles have the elements that a loop finds") {
  const auto checkpoint = six_rows(true);
  for (std::int64_t first = 0; first < 6; ++first) {
    for (std::int64_t last = first; last <= 6; ++last) {
      for (std::int64_t column = 0; column <= 4; ++column) {
        const Box box{{first, column}, {last - first, 4 - column}};
        Bytes got(static_cast<std::size_t>((last - first) * (4 - column)));
        REQUIRE(read(*checkpoint, box, got).has_value());
        std::size_t at = 0;
        for (std::int64_t r = first; r < last; ++r) {
          for (std::int64_t c = column; c < 4; ++c)
            CHECK(got[at++] == static_cast<std::byte>(r * 4 + c));
        }
      }
    }
  }
}

TEST_CASE("elements in no chunk are an error, and those next to them are read") {
  const auto checkpoint = six_rows(false);
  Bytes got(24);
  const Status all = read(*checkpoint, {{0, 0}, {6, 4}}, got);
  REQUIRE_FALSE(all.has_value());
  CHECK(all.error().kind == ErrorKind::kDamaged);
  CHECK(all.error().message.starts_with("8 elements"));
  CHECK(all.error().place.tensor == "rows");
  got.resize(16);
  CHECK(read(*checkpoint, {{0, 0}, {4, 4}}, got).has_value());
}

TEST_CASE("a box outside of a tensor is refused") {
  const auto checkpoint = six_rows(true);
  Bytes got(4);
  for (const Box& box :
       {Box{{6, 0}, {1, 4}}, Box{{-1, 0}, {1, 4}}, Box{{0}, {4}}, Box{{0, 0}, {1, INT64_MAX}},
        Box{{INT64_MAX, 0}, {1, 4}}, Box{{0, 0}, {2, 4}}, Box{{0, 0}, {1, -4}}}) {
    const Status done = read(*checkpoint, box, got);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().kind == ErrorKind::kUsage);
  }
}
