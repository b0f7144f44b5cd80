// One pass that checks bytes and counts values, compared with one pass for each.
#include "core/facts/values/counted_chunks.h"

#include <doctest/doctest.h>

#include <atomic>
#include <numeric>

#include "core/facts/values/tensor_statistics.h"
#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/report/report.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

std::vector<TensorId> every_tensor(const Checkpoint& checkpoint) {
  std::vector<TensorId> tensors;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) tensors.push_back(TensorId{t});
  return tensors;
}

void expect_same(const TensorStatistics& one, const TensorStatistics& other) {
  CAPTURE(one.fqn);
  CHECK(one.fqn == other.fqn);
  CHECK(one.statistics == other.statistics);
  CHECK(one.missing == other.missing);
  CHECK(one.unread == other.unread);
  CHECK(one.repeated == other.repeated);
  REQUIRE(one.error.has_value() == other.error.has_value());
  if (one.error) CHECK(one.error->message == other.error->message);
}

}  // namespace

TEST_CASE("what a deep look counts is what a look for statistics finds, and it finds the same") {
  std::size_t counted_tensors = 0, left = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    if (!checkpoint) continue;
    CheckOptions options;
    options.depth = Depth::kData;
    auto alone = check(**checkpoint, options);
    CountedChunks counted(**checkpoint);
    options.counted = &counted;
    auto both = check(**checkpoint, options);
    REQUIRE(alone.has_value());
    REQUIRE(both.has_value());
    CHECK(check_to_json(*both) == check_to_json(*alone));
    const std::vector<TensorId> tensors = every_tensor(**checkpoint);
    auto plain = statistics_of(**checkpoint, tensors, nullptr);
    auto told =
        statistics_of(**checkpoint, tensors, nullptr, nullptr, cpu_statistics_backend, &counted);
    REQUIRE(plain.has_value());
    REQUIRE(told.has_value());
    REQUIRE(told->size() == plain->size());
    for (std::size_t i = 0; i < told->size(); ++i) {
      expect_same((*told)[i], (*plain)[i]);
      ++(counted.of(tensors[i]) != nullptr ? counted_tensors : left);
    }
  }
  CHECK(counted_tensors > 500);
  CHECK(left > 0);  // compressed or unreadable chunks
}

TEST_CASE("who was counted in the deep look is not read again") {
  for (const char* kind : {"healthy_fsdp", "healthy_hf_sharded", "healthy_moe_ep"}) {
    auto cases = test::fixture_cases(kind);
    REQUIRE_FALSE(cases.empty());
    CAPTURE(cases.front());
    auto read = std::make_shared<std::atomic<std::uint64_t>>(0);
    auto count = [read](const std::string&, std::uint64_t,
                        std::size_t length) -> std::optional<Error> {
      *read += length;
      return std::nullopt;
    };
    auto directory = open_directory(cases.front() + "/ckpt");
    REQUIRE(directory.has_value());
    auto checkpoint = open_checkpoint(faulty_directory(*directory, count));
    REQUIRE(checkpoint.has_value());
    CountedChunks counted(**checkpoint);
    CheckOptions options;
    options.depth = Depth::kData;
    options.counted = &counted;
    REQUIRE(check(**checkpoint, options).has_value());
    const std::vector<TensorId> tensors = every_tensor(**checkpoint);
    *read = 0;
    REQUIRE(statistics_of(**checkpoint, tensors, nullptr).has_value());
    const std::uint64_t of_its_own = *read;
    *read = 0;
    REQUIRE(statistics_of(**checkpoint, tensors, nullptr, nullptr, cpu_statistics_backend, &counted)
                .has_value());
    CHECK(of_its_own > 0);
    CHECK(*read == 0);
  }
}
