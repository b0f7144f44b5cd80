#include "core/facts/values/tensor_statistics.h"

#include <doctest/doctest.h>
#include <tbb/global_control.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "core/fixtures.h"
#include "core/formats/common/codecs.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/model/builder.h"

using namespace shw;

namespace {

const Format kBareFormat{.name = "bare", .title = "bare", .codec = &kRawCodec};

// One file, "data", and tensors that are anywhere in it.
struct BareCheckpoint {
  CheckpointBuilder builder;
  explicit BareCheckpoint(std::shared_ptr<const Directory> directory) {
    builder.set_format(kBareFormat);
    builder.set_directory(std::move(directory));
  }
  explicit BareCheckpoint(Bytes bytes)
      : BareCheckpoint(memory_directory("memory", {{"data", std::move(bytes)}})) {}
  void tensor(const std::string& fqn, Dtype dtype, const Extents& shape) {
    builder.add_tensor(fqn, dtype, shape);
    width = size_of(dtype);
  }
  void chunk(const Extents& offsets, const Extents& sizes, std::int64_t at,
             const char* file = "data") {
    builder.add_chunk(offsets, sizes,
                      {builder.file(file), at, *volume(sizes) * static_cast<std::int64_t>(width)});
  }
  std::size_t width = 0;
};

std::vector<TensorStatistics> all_statistics(const Checkpoint& checkpoint) {
  std::vector<TensorId> tensors;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) tensors.push_back(TensorId{t});
  auto told = statistics_of(checkpoint, tensors, nullptr);
  REQUIRE(told.has_value());
  return std::move(*told);
}

Statistics slow_statistics(Dtype dtype, BytesView bytes) {
  StatisticsSums sums(dtype);
  std::size_t width = size_of(dtype);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, width);
    add_elements(sums, bits, 1);
  }
  return statistics_of(sums);
}

Bytes bytes_of_floats(const std::vector<float>& numbers) {
  Bytes bytes(numbers.size() * 4);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> counted_up(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  return numbers;
}

}  // namespace

TEST_CASE("statistics of what real torch wrote are those of its elements one by one") {
  std::size_t compared = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    if (!checkpoint) continue;
    for (const TensorStatistics& told : all_statistics(**checkpoint)) {
      CAPTURE(told.fqn);
      auto values = read_tensor(**checkpoint, *(*checkpoint)->find(told.fqn));
      if (!told.is_whole() || size_of(told.dtype) > 8) continue;
      REQUIRE(values.has_value());
      CHECK(values->uncovered == 0);
      CHECK(told.statistics == slow_statistics(told.dtype, values->bytes));
      ++compared;
    }
  }
  CHECK(compared > 200);
}

TEST_CASE(
    "one large tile in ranges and many small ones come to the same on any number of threads") {
  constexpr std::int64_t kElements = 9 << 20;  // 36 MiB: two ranges
  Bytes bytes(static_cast<std::size_t>(kElements) * 4);
  std::mt19937 random(3);
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    auto word = static_cast<std::uint32_t>(random());
    std::memcpy(bytes.data() + at, &word, 4);
  }
  BareCheckpoint bare(std::move(bytes));
  bare.tensor("large", Dtype::kFloat32, {kElements});
  bare.chunk({0}, {kElements}, 0);
  bare.tensor("small", Dtype::kFloat32, {kElements});
  for (std::int64_t at = 0; at < kElements; at += 12'345)
    bare.chunk({at}, {std::min<std::int64_t>(12'345, kElements - at)}, at * 4);
  auto checkpoint = bare.builder.finish();
  std::optional<Statistics> first;
  for (std::size_t threads : {1, 2, 7}) {
    tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
    auto told = all_statistics(*checkpoint);
    CHECK(told[0].is_whole());
    CHECK(told[1].is_whole());
    if (!first) first = told[0].statistics;
    CHECK(told[0].statistics == *first);
    CHECK(told[1].statistics == *first);
  }
  CHECK(first->elements == kElements);
  CHECK(first->nan > 0);
}

TEST_CASE("views with gaps and views in another order give their own elements alone") {
  Bytes bytes = bytes_of_floats(counted_up(60));
  BareCheckpoint bare(bytes);
  StorageId storage = bare.builder.add_storage({bare.builder.file("data"), 0, 240});
  auto view = [&](const char* fqn, const Extents& sizes, std::int64_t element,
                  const Extents& strides) {
    bare.tensor(fqn, Dtype::kFloat32, sizes);
    bare.builder.set_view(bare.builder.add_chunk(Extents(sizes.size(), 0), sizes), storage, element,
                          strides);
  };
  view("turned", {6, 10}, 0, {1, 6});
  view("gaps", {5, 3}, 2, {12, 2});
  view("part", {2, 10}, 20, {10, 1});
  auto told = all_statistics(*bare.builder.finish());
  CHECK(told[0].statistics == slow_statistics(Dtype::kFloat32, bytes));
  CHECK(told[1].statistics.elements == 15);
  CHECK(told[1].statistics.least == "3");
  CHECK(told[1].statistics.greatest == "55");
  CHECK(*told[1].statistics.mean == 29);
  CHECK(told[2].statistics == slow_statistics(Dtype::kFloat32, BytesView(bytes).subspan(80, 80)));
  for (const TensorStatistics& tensor : told) CHECK(tensor.is_whole());
}

TEST_CASE("elements in no tile and in several are reported and not passed over in silence") {
  BareCheckpoint bare(bytes_of_floats(counted_up(12)));
  bare.tensor("hole", Dtype::kFloat32, {10});
  bare.chunk({0}, {4}, 0);
  bare.chunk({6}, {4}, 16);
  bare.tensor("twice", Dtype::kFloat32, {8});
  bare.chunk({0}, {5}, 0);
  bare.chunk({3}, {5}, 20);
  bare.tensor("both", Dtype::kFloat32, {10});
  bare.chunk({0}, {4}, 0);
  bare.chunk({0}, {4}, 16);
  bare.tensor("outside", Dtype::kFloat32, {6});
  bare.chunk({0}, {4}, 0);
  bare.chunk({4}, {4}, 16);
  auto told = all_statistics(*bare.builder.finish());
  CHECK(told[0].missing == 2);
  CHECK(told[0].repeated == 0);
  CHECK(told[0].statistics.elements == 8);
  CHECK(told[1].missing == 0);
  CHECK(told[1].repeated == 2);
  CHECK(told[1].statistics.elements == 10);
  CHECK(told[2].missing == 6);
  CHECK(told[2].repeated == 4);
  CHECK(told[3].missing == 2);
  CHECK(told[3].unread == 4);
  REQUIRE(told[3].error.has_value());
  CHECK(told[3].error->message.find("is not inside") != std::string::npos);
  CHECK(told[3].statistics.elements == 4);
  for (const TensorStatistics& tensor : told) CHECK_FALSE(tensor.is_whole());
}

TEST_CASE(
    "what cannot be read is reported of its tensor, and the others are reported as they are") {
  auto memory = memory_directory("memory", {{"data", bytes_of_floats(counted_up(64))}});
  auto faulty = faulty_directory(
      memory,
      [](const std::string&, std::uint64_t offset, std::size_t length) -> std::optional<Error> {
        if (offset > 44 || offset + length <= 44) return std::nullopt;
        return Error{ErrorKind::kIo, "the disk broke", {"data", 44}};
      });
  BareCheckpoint bare(faulty);
  bare.tensor("gone", Dtype::kFloat32, {8});
  bare.chunk({0}, {4}, 0, "nowhere");
  bare.chunk({4}, {4}, 16);
  bare.tensor("sick", Dtype::kFloat32, {16});
  for (std::int64_t i = 0; i < 4; ++i) bare.chunk({4 * i}, {4}, 16 * i);
  bare.tensor("short", Dtype::kFloat32, {8});
  bare.chunk({0}, {8}, 250);
  bare.tensor("fine", Dtype::kFloat32, {8});
  bare.chunk({0}, {8}, 64);
  bare.tensor("unknown", Dtype::kUnknown, {8});
  auto told = all_statistics(*bare.builder.finish());
  CHECK(told[0].unread == 4);
  CHECK(told[0].statistics.elements == 4);
  REQUIRE(told[0].error.has_value());
  CHECK(told[0].error->place.file == "nowhere");
  CHECK(told[1].unread == 4);
  CHECK(told[1].statistics.elements == 12);
  REQUIRE(told[1].error.has_value());
  CHECK(told[1].error->message == "the disk broke");
  CHECK(*told[1].statistics.mean == (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 13 + 14 + 15 + 16) / 12.0);
  CHECK(told[2].unread == 8);
  CHECK(told[2].statistics.elements == 0);
  CHECK(told[3].is_whole());
  CHECK(told[3].statistics.least == "17");
  CHECK(told[4].error.has_value());
}

TEST_CASE("empty tensors, scalars and shapes that were made up end soon") {
  BareCheckpoint bare(bytes_of_floats({3.5f}));
  bare.tensor("empty", Dtype::kFloat32, {0, 100'000'000});
  bare.chunk({0, 0}, {0, 100'000'000}, 0);
  bare.tensor("scalar", Dtype::kFloat32, {});
  bare.chunk({}, {}, 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  bare.tensor("made up", Dtype::kFloat32, {kMost});
  bare.chunk({0}, {kMost}, 0);
  StorageId storage = bare.builder.add_storage({bare.builder.file("data"), 0, 4});
  bare.tensor("repeated", Dtype::kFloat32, {kMost});
  bare.builder.set_view(bare.builder.add_chunk(Extents{0}, Extents{kMost}), storage, 0, Extents{0});
  auto told = all_statistics(*bare.builder.finish());
  CHECK(told[0].is_whole());
  CHECK(told[0].statistics.elements == 0);
  CHECK(told[1].is_whole());
  CHECK(*told[1].statistics.mean == 3.5);
  for (std::size_t i : {2, 3}) {
    CHECK(told[i].error.has_value());
    CHECK(told[i].unread == kMost);
    CHECK(told[i].statistics.elements == 0);
  }
}

TEST_CASE("a pass that is stopped ends with that, not with numbers") {
  BareCheckpoint bare(bytes_of_floats(counted_up(8)));
  bare.tensor("some", Dtype::kFloat32, {8});
  bare.chunk({0}, {8}, 0);
  Progress progress;
  progress.cancel();
  std::vector<TensorId> tensors{TensorId{0}};
  auto told = statistics_of(*bare.builder.finish(), tensors, &progress);
  REQUIRE_FALSE(told.has_value());
  CHECK(told.error().kind == ErrorKind::kCancelled);
}
