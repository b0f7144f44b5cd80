// Deltas in memory: applying a written delta gives the second checkpoint to the bit.
#include "core/combine/delta.h"

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

namespace {

const TotalHash kBase{"aa", 3}, kResult{"bb", 3};

TiledTensor random_laid(const std::string& fqn, const Extents& shape, Dtype dtype,
                        std::mt19937& random) {
  const auto count = static_cast<std::size_t>(volume(shape).value());
  TiledTensor tensor{fqn, dtype, shape, random_bytes(count * size_of(dtype), random), {}};
  tensor.tiles = random_tiles(shape, random);
  return tensor;
}

std::shared_ptr<const Checkpoint> delta_between(const std::shared_ptr<const Checkpoint>& a,
                                                const std::shared_ptr<const Checkpoint>& b) {
  auto delta = compute_delta(a, b, kBase, kResult, nullptr);
  REQUIRE(delta.has_value());
  return *delta;
}

std::string message_of_applying(const std::vector<TiledTensor>& delta, const DeltaInfo& info = {}) {
  std::mt19937 random(1);
  const auto base = laid({random_laid("a", {3, 4}, Dtype::kFloat32, random)});
  auto made = apply_delta(base, laid(delta), info, nullptr);
  return made ? "" : made.error().message;
}

TiledTensor indices(const std::string& fqn, const std::vector<std::int32_t>& all) {
  const auto bytes = std::as_bytes(std::span(all));
  return {fqn,
          Dtype::kInt32,
          {static_cast<std::int64_t>(all.size())},
          Bytes(bytes.begin(), bytes.end()),
          {}};
}

}  // namespace

TEST_CASE("delta: applied to its base it gives the result to the bit") {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<TiledTensor> before, after;
    for (int i = 0; i < 4; ++i) {
      const Extents shape =
          std::array<Extents, 4>{{{7, 9}, {40}, {}, {3, 2, 5}}}[static_cast<std::size_t>(i)];
      const Dtype dtype =
          std::array{Dtype::kBfloat16, Dtype::kFloat32, Dtype::kInt64, Dtype::kUint8}[random() % 4];
      TiledTensor tensor = random_laid("t" + std::to_string(i), shape, dtype, random);
      before.push_back(tensor);
      // Few, many or no elements change, and the tiles differ.
      const unsigned changed = random() % 4;
      for (std::size_t at = 0; at < tensor.bytes.size() && changed != 0; at += 1 + random() % 60)
        tensor.bytes[at] = changed == 1 ? static_cast<std::byte>(random()) : tensor.bytes[at];
      if (changed == 3) tensor.bytes = random_bytes(tensor.bytes.size(), random);
      tensor.tiles = random_tiles(shape, random);
      after.push_back(tensor);
    }
    if (round % 3 == 0) after.push_back(random_laid("new", {3}, Dtype::kFloat32, random));
    if (round % 4 == 0) after.erase(after.begin());
    if (round % 5 == 0) after.back() = random_laid(after.back().fqn, {2, 2}, Dtype::kInt8, random);
    const auto a = laid(before, "a"), b = laid(after, "b");
    const bool is_changed = std::any_of(after.begin(), after.end(), [&](const TiledTensor& now) {
      return std::none_of(before.begin(), before.end(), [&](const TiledTensor& was) {
        return was.fqn == now.fqn && was.dtype == now.dtype && was.shape == now.shape &&
               was.bytes == now.bytes;
      });
    });
    if (!is_changed) continue;
    const auto delta = delta_between(a, b);
    const DeltaInfo info = read_delta_info(*delta->directory()).value();
    CHECK(info.base.hash == "aa");
    CHECK(info.result.tensors == 3);
    auto made = apply_delta(a, delta, info, nullptr);
    INFO((made ? std::string() : made.error().message));
    REQUIRE(made.has_value());
    CHECK((*made)->tensor_count() == after.size());
    for (const TiledTensor& tensor : after) {
      CHECK(bytes_of(**made, tensor.fqn) == tensor.bytes);
      CHECK((*made)->dtype(*(*made)->find(tensor.fqn)) == tensor.dtype);
    }
  }
}

TEST_CASE("delta: holds what changed and nothing else") {
  std::mt19937 random(6);
  TiledTensor big = random_laid("big", {100, 100}, Dtype::kBfloat16, random);
  const TiledTensor same = random_laid("same", {10}, Dtype::kFloat32, random);
  const auto a = laid({big, same});
  big.bytes[2 * 1234] ^= std::byte{1};
  big.bytes[2 * 9999] ^= std::byte{1};
  const auto delta = delta_between(a, laid({big, same}));
  CHECK(delta->tensor_count() == 2);
  CHECK(bytes_of(*delta, "big.delta_indices") == indices("", {1234, 9999}).bytes);
  CHECK(bytes_of(*delta, "big.delta_values").size() == 4);
}

TEST_CASE("delta: two that are the same, or differ in what is gone alone, have none") {
  std::mt19937 random(6);
  const TiledTensor one = random_laid("one", {4}, Dtype::kFloat32, random),
                    two = random_laid("two", {4}, Dtype::kFloat32, random);
  const auto a = laid({one, two});
  CHECK_FALSE(compute_delta(a, laid({one, two}), kBase, kResult, nullptr).has_value());
  CHECK_FALSE(compute_delta(a, laid({one}), kBase, kResult, nullptr).has_value());
}

TEST_CASE("delta: a damaged one is refused before it is applied") {
  const TiledTensor values = numbers_tensor("a.delta_values", {2}, {1, 2});
  CHECK(message_of_applying({indices("a.delta_indices", {1, 5}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {5, 1}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {1, 1}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {-1, 1}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {1, 12}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {1}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("b.delta_indices", {1, 5}), values}).empty());
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {1, 5})}).empty());
  CHECK_FALSE(message_of_applying({values}).empty());
  CHECK_FALSE(message_of_applying({numbers_tensor("a", {1}, {1})}).empty());
  CHECK_FALSE(message_of_applying({}, {{}, {}, {"b"}}).empty());
  const TiledTensor narrow = numbers_tensor("a.delta_values", {2}, {1, 2}, Dtype::kBfloat16);
  CHECK_FALSE(message_of_applying({indices("a.delta_indices", {1, 5}), narrow}).empty());
}

TEST_CASE("delta: delta.json that is none, or of something else, is an error") {
  auto read = [](const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return read_delta_info(
        *memory_directory("d", {{"delta.json", Bytes(bytes.begin(), bytes.end())}}));
  };
  const std::string sides = R"("base": {"hash": "a", "tensors": 1},
                               "result": {"hash": "b", "tensors": 1})";
  CHECK(
      read(R"({"schema": "shardwright/delta-1", )" + sides + R"(, "dropped": ["x"]})").has_value());
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), "{" + sides + "}",
        R"({"schema": "shardwright/delta-2", )" + sides + R"(, "dropped": []})",
        R"({"schema": "shardwright/delta-1", )" + sides + "}",
        R"({"schema": "shardwright/delta-1", )" + sides + R"(, "dropped": [1]})",
        std::string(R"({"schema": "shardwright/delta-1", "base": 1, "result": 2, "dropped": []})"),
        std::string(100'000, '[')})
    CHECK_FALSE(read(text).has_value());
  auto none = read_delta_info(*memory_directory("d", {}));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kUsage);
}
