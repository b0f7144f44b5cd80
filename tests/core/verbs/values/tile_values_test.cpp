// Statistics of tiles, compared with a loop over their elements.
#include "core/verbs/values/tile_values.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/formats/items/item_cursor.h"
#include "core/formats/open.h"
#include "core/session/content_run.h"
#include "core/session/session.h"
#include "core/tensor/cast.h"

using namespace shw;
using verbs::TileNumbers;

namespace {

std::string healthy_case(const char* name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/" + name + "/ckpt";
}

double element_value(Dtype dtype, BytesView bytes, std::size_t i) {
  if (dtype == Dtype::kFloat32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * 4, 4);
    return static_cast<double>(value);
  }
  if (dtype == Dtype::kBfloat16) {
    std::uint32_t bits = 0;
    std::memcpy(reinterpret_cast<std::byte*>(&bits) + 2, bytes.data() + i * 2, 2);
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return static_cast<double>(value);
  }
  return std::nan("");
}

}  // namespace

TEST_CASE("tiles hold as many zeros and as large a magnitude as their elements do") {
  std::size_t compared = 0;
  for (const char* name : {"healthy_fsdp", "healthy_moe_ep"}) {
    auto checkpoint = open_checkpoint(healthy_case(name));
    REQUIRE(checkpoint.has_value());
    const Checkpoint& c = **checkpoint;
    for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
      Dtype dtype = c.dtype(TensorId{t});
      if (dtype != Dtype::kFloat32 && dtype != Dtype::kBfloat16) continue;
      auto values = verbs::unexamined_tiles(c, TensorId{t});
      CHECK(values.done == 0);
      while (!values.is_complete())
        REQUIRE(verbs::read_further_tiles(c, values, nullptr).has_value());
      CHECK(values.unread == 0);
      for (std::uint32_t i = 0; i < values.tiles.size(); ++i) {
        auto bytes = read_chunk(c, c.chunks(TensorId{t})[i]);
        REQUIRE(bytes.has_value());
        std::size_t count = bytes->size() / size_of(dtype);
        std::uint64_t zero = 0;
        double greatest = -1;
        for (std::size_t e = 0; e < count; ++e) {
          double value = element_value(dtype, *bytes, e);
          zero += value == 0 ? 1 : 0;
          greatest = std::max(greatest, std::abs(value));
        }
        const TileNumbers& tile = values.tiles[i];
        CHECK(tile.state == TileNumbers::State::kLooked);
        CHECK(tile.elements == count);
        CHECK(tile.zero == zero);
        CHECK(tile.greatest == doctest::Approx(greatest).epsilon(1e-6));
        ++compared;
      }
    }
  }
  CHECK(compared > 20);
}

TEST_CASE("a cancelled look at tiles says nothing of those that it did not finish") {
  auto checkpoint = open_checkpoint(healthy_case("healthy_fsdp"));
  REQUIRE(checkpoint.has_value());
  auto values = verbs::unexamined_tiles(**checkpoint, TensorId{0});
  Progress progress;
  progress.cancel();
  auto stopped = verbs::read_further_tiles(**checkpoint, values, &progress);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
  CHECK(values.done == 0);
  CHECK(values.tiles[0].state == TileNumbers::State::kNotLooked);
}

TEST_CASE("a session looks at the tiles of the selected tensor alone, and keeps what it has seen") {
  Session session;
  session.apply({OpenCommand{healthy_case("healthy_fsdp")}, CheckCommand{}});
  session.wait();
  auto opened = session.snapshot();
  std::string first(opened->checkpoint->fqn(TensorId{0}));
  std::string second(opened->checkpoint->fqn(TensorId{1}));
  session.apply({SelectTensorCommand{first}, TileValuesCommand{false, second}});
  session.wait();
  CHECK(session.snapshot()->tile_values == nullptr);  // the other tensor's values are gone
  session.apply(TileValuesCommand{});
  session.wait();
  const auto* values = tile_values_of(*session.snapshot(), TensorId{0});
  REQUIRE(values != nullptr);
  CHECK(values->is_complete());
  CHECK_FALSE(has_more_results(*session.snapshot(), TileValuesCommand{}));
  session.apply(SelectTensorCommand{second});
  session.apply(TileValuesCommand{true});
  session.wait();
  CHECK(tile_values_of(*session.snapshot(), TensorId{0}) == values);
  CHECK(tile_values_of(*session.snapshot(), TensorId{1}) == nullptr);
}
