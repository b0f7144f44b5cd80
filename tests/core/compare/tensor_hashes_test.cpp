#include "core/compare/tensor_hashes.h"

#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <map>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/compare/fingerprints.h"
#include "core/compare/laid.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"

using namespace shw;
using shw::test::laid;
using shw::test::TiledTensor;

namespace {

using Laid = std::shared_ptr<const Checkpoint>;

constexpr std::uint64_t kMemory = 1 << 20;

std::vector<TensorId> all_of(const Checkpoint& checkpoint) {
  std::vector<TensorId> tensors;
  for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i) tensors.push_back(TensorId{i});
  return tensors;
}

HashedTensors hashed(const Checkpoint& checkpoint, Team* team = nullptr,
                     std::uint64_t memory = kMemory) {
  auto hashes = tensor_hashes(checkpoint, all_of(checkpoint), memory, nullptr, team);
  REQUIRE(hashes.has_value());
  return {std::move(*hashes), {}};
}

Fingerprint of_run(const Bytes& bytes, std::size_t width) {
  Fingerprint sum;
  add_run(sum, bytes.data(), width, 0, bytes.size() / width);
  return sum;
}

TiledTensor random_tensor(const std::string& fqn, Dtype dtype, const Extents& shape,
                          std::mt19937& random) {
  const auto bytes = static_cast<std::size_t>(*volume(shape)) * size_of(dtype);
  return {fqn, dtype, shape, test::random_bytes(bytes, random)};
}

}  // namespace

TEST_CASE("a tensor has the hash of its elements in whatever tiles they are") {
  std::mt19937 random(11);
  constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kInt64, Dtype::kUint8,
                               Dtype::kComplex64};
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    Extents shape(random() % 4);
    for (std::int64_t& size : shape) size = static_cast<std::int64_t>(1 + random() % 17);
    TiledTensor tensor = random_tensor("w", kDtypes[random() % 5], shape, random);
    tensor.tiles = test::random_tiles(shape, random);
    const HashedTensors told = hashed(*laid({tensor}));
    REQUIRE(told.is_whole());
    CHECK(*told.tensors[0].fingerprint == of_run(tensor.bytes, size_of(tensor.dtype)));
    TiledTensor other = tensor;
    other.bytes[random() % other.bytes.size()] ^= std::byte{1};
    CHECK_FALSE(*hashed(*laid({other})).tensors[0].fingerprint == *told.tensors[0].fingerprint);
    CHECK(total_hash(hashed(*laid({other}))) != total_hash(told));
  }
}

TEST_CASE("a tile of several parts is hashed as one, whatever the memory") {
  // 210 MiB of zeros that need no disk space, and some numbers at the borders of parts and blocks.
  constexpr std::uint64_t kRow = 70 << 20, kBytes = 3 * kRow;
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const std::string header = R"({"w":{"dtype":"BF16","shape":[3,36700160],"data_offsets":[0,)" +
                             std::to_string(kBytes) + "]}}";
  Fingerprint expected;
  {
    std::ofstream file(path, std::ios::binary);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << header;
    for (std::uint64_t at : {std::uint64_t{0}, std::uint64_t{64} << 20, kRow - 2, kRow,
                             std::uint64_t{100} << 20, 2 * kRow + 4098, kBytes - 2}) {
      const Bytes number{std::byte(at >> 20 | 1), std::byte(63)};
      file.seekp(static_cast<std::streamoff>(8 + header.size() + at));
      file.write(reinterpret_cast<const char*>(number.data()), 2);
      add_run(expected, number.data(), 2, at / 2, 1);
    }
  }
  auto opened = open_checkpoint(path);
  REQUIRE(opened.has_value());
  for (const std::uint64_t memory : {std::uint64_t{1} << 16, std::uint64_t{1} << 28}) {
    const HashedTensors told = hashed(**opened, nullptr, memory);
    REQUIRE(told.is_whole());
    CHECK(*told.tensors[0].fingerprint == expected);
  }
}

TEST_CASE("elements in no tile or in two, and bytes that are gone, leave a tensor without a hash") {
  std::mt19937 random(13);
  TiledTensor sound = random_tensor("sound", Dtype::kFloat32, {4}, random);
  TiledTensor gap = random_tensor("gap", Dtype::kFloat32, {4}, random);
  gap.tiles = {{{{0}, {3}}}};
  TiledTensor twice = random_tensor("twice", Dtype::kFloat32, {4}, random);
  twice.tiles = {{{{0}, {3}}}, {{{2}, {2}}}};
  TiledTensor cut = random_tensor("cut", Dtype::kFloat32, {4}, random);
  const HashedTensors told = hashed(*laid({sound, gap, twice, cut}, "memory", 4));
  REQUIRE(told.tensors.size() == 4);
  CHECK(told.tensors[0].fingerprint.has_value());
  for (std::size_t i = 1; i < 4; ++i) {
    CAPTURE(told.tensors[i].fqn);
    REQUIRE_FALSE(told.tensors[i].fingerprint.has_value());
    CHECK_FALSE(told.tensors[i].fingerprint.error().message.empty());
  }
  CHECK_FALSE(told.is_whole());
  CHECK(total_hash(told).empty());
}

TEST_CASE("a tensor without elements has the hash of nothing") {
  const HashedTensors told =
      hashed(*laid({{"none", Dtype::kFloat32, {0, 4}, {}}, {"too", Dtype::kInt64, {0}, {}}}));
  REQUIRE(told.is_whole());
  CHECK(*told.tensors[0].fingerprint == Fingerprint{});
  CHECK_FALSE(total_hash(told).empty());
}

TEST_CASE("the total is that of names, dtypes, shapes and elements, in whatever order they are") {
  std::mt19937 random(14);
  const TiledTensor a = random_tensor("a", Dtype::kFloat32, {2, 3}, random);
  const TiledTensor b = random_tensor("b", Dtype::kFloat32, {2, 3}, random);
  const std::string total = total_hash(hashed(*laid({a, b})));
  CHECK(total == total_hash(hashed(*laid({b, a}))));
  auto differs = [&](TiledTensor other) {
    return total_hash(hashed(*laid({a, std::move(other)}))) != total;
  };
  TiledTensor other = b;
  other.fqn = "c";
  CHECK(differs(other));
  other = b;
  other.shape = {3, 2};
  CHECK(differs(other));
  other = b;
  other.dtype = Dtype::kInt32;
  CHECK(differs(other));
  CHECK(total_hash(hashed(*laid({a}))) != total);
  HashedTensors open = hashed(*laid({a, b}));
  open.unread = {"model-2.safetensors"};
  CHECK(total_hash(open).empty());
}

TEST_CASE("members of a team share the reading out and tell the same") {
  std::mt19937 random(15);
  std::vector<TiledTensor> tensors;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(random_tensor("t" + std::to_string(i), Dtype::kFloat32, {40, 30}, random));
    tensors.back().tiles = test::random_tiles({40, 30}, random);
  }
  tensors.push_back(random_tensor("gone", Dtype::kFloat32, {4}, random));
  const Laid checkpoint = laid(tensors, "memory", 4);
  const HashedTensors alone = hashed(*checkpoint);
  const auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60), "here");
    // Members with other memory limits divide the work in the same way.
    const HashedTensors told = hashed(*checkpoint, &team, kMemory << team.rank());
    for (std::size_t i = 0; i < alone.tensors.size(); ++i) {
      const auto &one = alone.tensors[i].fingerprint, &other = told.tensors[i].fingerprint;
      CHECK(one.has_value() == other.has_value());
      if (one && other) CHECK(*one == *other);
      if (!one && !other) CHECK(one.error().message == other.error().message);
    }
    return {};
  });
  for (const Status& end : ended) CHECK(end.has_value());
}

TEST_CASE("what torch saved in tiles has the hashes of what it saved whole") {
  std::size_t compared = 0;
  for (const char* name : {"healthy_fsdp", "healthy_fsdp_tp_strided", "healthy_moe_ep",
                           "healthy_zstd", "healthy_dtypes", "healthy_hf_sharded"}) {
    CAPTURE(name);
    const std::string folder = std::string(SHW_TEST_DATA) + "/torch-2.14/" + name;
    auto tiled = open_checkpoint(folder + "/ckpt"),
         truth = open_checkpoint(folder + "/truth.safetensors");
    REQUIRE(tiled.has_value());
    REQUIRE(truth.has_value());
    std::map<std::string, std::string> hashes;
    for (const TensorHash& tensor : hashed(**tiled).tensors) {
      REQUIRE(tensor.fingerprint.has_value());
      hashes[tensor.fqn] = to_hex(*tensor.fingerprint);
    }
    for (const TensorHash& tensor : hashed(**truth).tensors) {
      CAPTURE(tensor.fqn);
      REQUIRE(tensor.fingerprint.has_value());
      const auto found = hashes.find(tensor.fqn);
      if (found == hashes.end()) continue;
      CHECK(found->second == to_hex(*tensor.fingerprint));
      ++compared;
    }
  }
  CHECK(compared > 50);
}

TEST_CASE("hashing that was cancelled is an error") {
  Progress progress;
  progress.cancel();
  std::mt19937 random(16);
  const Laid checkpoint = laid({random_tensor("w", Dtype::kFloat32, {4}, random)});
  auto told = tensor_hashes(*checkpoint, all_of(*checkpoint), kMemory, &progress);
  REQUIRE_FALSE(told.has_value());
  CHECK(told.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("fingerprints: progress ends where all bytes are read, and nothing to read begins none") {
  const TiledTensor w{"w", Dtype::kUint8, {300}, Bytes(300, std::byte{7})};
  const Laid checkpoint = laid({w});
  Progress progress;
  REQUIRE(fingerprints_of(*checkpoint, all_of(*checkpoint), kMemory, &progress).has_value());
  CHECK(progress.phase == Phase::kReadingBytes);
  CHECK(progress.total == 300);
  CHECK(progress.done == 300);
  Progress idle;
  REQUIRE(fingerprints_of(*checkpoint, {}, kMemory, &idle).has_value());
  CHECK(idle.phase == Phase::kIdle);
}
