// A checkpoint that is mostly holes, compared with its source: holes cost no reads and hide no
// differences.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;

namespace {

constexpr std::uint64_t kSparseBytes = 64 << 20;

void put_byte(const std::string& file, std::uint64_t at, char byte) {
  std::fstream data(file, std::ios::in | std::ios::out | std::ios::binary);
  data.seekp(static_cast<std::streamoff>(at));
  data.put(byte);
}

// "w" of [4096, 4096] F32: zeros that need no disk space, except for two elements.
void write_sparse(const std::string& folder) {
  std::filesystem::create_directory(folder);
  std::string header = R"({"w":{"dtype":"F32","shape":[4096,4096],"data_offsets":[0,67108864]}})";
  header.resize(96, ' ');
  const std::string file = folder + "/model.safetensors";
  put(file, std::string("\x60\0\0\0\0\0\0\0", 8) + header);
  std::filesystem::resize_file(file, 104 + kSparseBytes);
  for (std::uint64_t at : {0u, 1u << 20}) put_byte(file, 104 + at + 3, 0x40);
}

std::shared_ptr<const Checkpoint> opened_counting(
    const std::string& folder, const std::shared_ptr<std::atomic<std::uint64_t>>& read) {
  auto directory = open_directory(folder);
  REQUIRE(directory.has_value());
  auto count = [read](const std::string&, std::uint64_t,
                      std::size_t length) -> std::optional<Error> {
    *read += length;
    return std::nullopt;
  };
  auto checkpoint = open_checkpoint(faulty_directory(*directory, count));
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

}  // namespace

TEST_CASE("holes of a result and of its source cost nothing to compare and hide no element") {
  TemporaryFolder folder;
  write_sparse(folder / "ckpt");
  const std::vector<std::pair<std::string, std::vector<Step>>> runs = {
      {"dcp", {}},
      {"cast", {CastStep{{"*"}, Dtype::kBfloat16}}},
      {"turned", {PermuteDimsStep{{"w"}, {1, 0}}}},
      {"split", {SplitStep{"w", 0, {1024, 3072}, {"a", "b"}}}},
  };
  for (const auto& [name, steps] : runs) {
    CAPTURE(name);
    Plan plan;
    plan.steps = steps;
    plan.format = "dcp";
    auto source = opened(folder / "ckpt");
    auto made = verbs::repair({source, nullptr, nullptr, {}}, plan, {folder / name}, nullptr);
    if (!made) FAIL(made.error().message);
    auto read = std::make_shared<std::atomic<std::uint64_t>>(0);
    auto counted = opened_counting(folder / "ckpt", read);
    *read = 0;
    auto honest = verified_against(folder / name, *counted);
    REQUIRE(honest.has_value());
    CHECK(honest->outcome == VerifyReport::Outcome::kProved);
    CHECK(*read > 0);
    // Holes of the source are skipped. Except after a transpose: blocks of the result then need the
    // whole source.
    if (name != "turned") CHECK(*read < kSparseBytes / 2);
    // Changes one element of the result where both sides are holes.
    auto result = opened(folder / name);
    auto header = read_item_header(*result, ChunkId{0});
    REQUIRE(header.has_value());
    const std::string file = result->file(result->item(ChunkId{0})->file).path;
    put_byte(folder / (name + "/" + file), header->payload_offset + (12 << 20) + 1, 0x40);
    auto told = verified_against(folder / name, *source);
    REQUIRE(told.has_value());
    CHECK(told->outcome == VerifyReport::Outcome::kBroken);
    REQUIRE(told->against.has_value());
    CHECK(told->against->differences.size() == 1);
  }
}

TEST_CASE("an element of the source where the result has a hole is seen next to it") {
  TemporaryFolder folder;
  write_sparse(folder / "ckpt");
  Plan plan;
  plan.format = "dcp";
  auto made = verbs::repair({opened(folder / "ckpt"), nullptr, nullptr, {}}, plan, {folder / "out"},
                            nullptr);
  REQUIRE(made.has_value());
  put_byte(folder / "ckpt/model.safetensors", 104 + (30 << 20) + 3, 0x40);
  auto told = verified_against(folder / "out", *opened(folder / "ckpt"));
  REQUIRE(told.has_value());
  CHECK(told->outcome == VerifyReport::Outcome::kBroken);
  REQUIRE(told->against.has_value());
  REQUIRE(told->against->differences.size() == 1);
  CHECK(told->against->differences[0].index == Extents{(30 << 20) / 4 / 4096, 0});
}
