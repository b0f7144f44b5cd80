// Elements that all have the same bytes are counted at once, to the same sums.
#include <doctest/doctest.h>

#include "core/facts/values/tensor_statistics.h"
#include "core/formats/items/element_pass.h"
#include "core/formats/open.h"
#include "core/tensor/statistics_counter.h"

using namespace shw;

TEST_CASE("elements that were never written come as one and their number, and count the same") {
  auto checkpoint = open_checkpoint(SHW_TEST_DATA "/h5py/filled.h5");
  REQUIRE(checkpoint.has_value());
  const Checkpoint& c = **checkpoint;
  std::int64_t at_once = 0;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    const TensorId tensor{t};
    StatisticsSums by_bytes(c.dtype(tensor)), together(c.dtype(tensor));
    for (ChunkId chunk : c.chunks(tensor)) {
      if (!c.item(chunk)) continue;
      const std::int64_t count = volume(c.sizes(chunk)).value_or(0);
      auto count_into = [&](StatisticsSums& sums, const ConstantRunSink& alike) {
        StatisticsCounter counter;
        counter.begin(c.dtype(tensor));
        ExtentVisitor parts;
        parts.bytes = [&](BytesView bytes) -> Status {
          counter.add(bytes);
          return {};
        };
        // In two ranges: the first gives all elements that are in no tile.
        const std::int64_t half = (count + 1) / 2;
        std::int64_t given = 0;
        ItemCursor items(c);
        for (const ElementRange range : {ElementRange{0, half}, {half, count}}) {
          auto some = stream_elements(items, chunk, range, parts, nullptr, alike);
          REQUIRE(some.has_value());
          given += *some;
        }
        CHECK(given == count);
        sums += counter.take();
      };
      count_into(by_bytes, nullptr);
      ConstantRunSink counting = constant_run_counter(together);
      count_into(together, [&](BytesView element, std::uint64_t many) {
        CHECK(element.size() == size_of(c.dtype(tensor)));
        at_once += static_cast<std::int64_t>(many);
        return counting(element, many);
      });
    }
    CHECK(by_bytes == together);
  }
  CHECK(at_once > 0);
}
