// Pairs of tensors between two programs' checkpoints, for the pair of tests/core/maps.
#include "core/verbs/names/paired_names.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/formats/open.h"

using namespace shw;
using verbs::PairedNames;
using verbs::PairedRow;

namespace {

std::shared_ptr<const Checkpoint> side_of_pair(const std::string& name) {
  auto checkpoint =
      open_checkpoint(std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/" + name);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

PairedNames paired(const Checkpoint& a, const Checkpoint& b) {
  auto names = verbs::pair_names(a, b);
  REQUIRE_MESSAGE(names.has_value(), names.error().message);
  REQUIRE(names->has_value());
  return std::move(**names);
}

std::set<std::string> names_in(const Checkpoint& checkpoint) {
  std::set<std::string> out;
  for (const TensorId tensor : checkpoint.tensors()) out.emplace(checkpoint.fqn(tensor));
  return out;
}

const PairedRow& row_to(const PairedNames& names, const std::string& ending) {
  const auto found = std::find_if(names.rows.begin(), names.rows.end(), [&](const PairedRow& row) {
    return row.to.front().ends_with(ending);
  });
  REQUIRE(found != names.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("paired names: every tensor of both programs has its place in one row") {
  const auto hf = side_of_pair("hf"), megatron = side_of_pair("megatron");
  const PairedNames names = paired(*megatron, *hf);
  CHECK(names.from == "hf");
  CHECK_FALSE(names.is_first_from);
  CHECK(names.only_from.empty());
  CHECK(names.only_to.empty());
  std::multiset<std::string> from, to;
  for (const PairedRow& row : names.rows) {
    CHECK(row.missing == 0);
    std::size_t from_count = 0, to_count = 0;
    for (const verbs::PairedTensors& tensors : row.tensors) {
      from.insert(tensors.from.begin(), tensors.from.end());
      to.insert(tensors.to.begin(), tensors.to.end());
      from_count += tensors.from.size();
      to_count += tensors.to.size();
    }
    CHECK(row.from_count == from_count);
    CHECK(row.to_count == to_count);
  }
  const auto all_hf = names_in(*hf), all_megatron = names_in(*megatron);
  CHECK(from == std::multiset<std::string>(all_hf.begin(), all_hf.end()));
  CHECK(to == std::multiset<std::string>(all_megatron.begin(), all_megatron.end()));
  CHECK(paired(*hf, *megatron).is_first_from);
}

TEST_CASE("paired names: a row says its operations in their order, with shapes") {
  const auto hf = side_of_pair("hf"), megatron = side_of_pair("megatron");
  const PairedNames names = paired(*hf, *megatron);
  const PairedRow& qkv = row_to(names, "linear_qkv.weight");
  CHECK(qkv.from.size() == 3);
  CHECK(qkv.from_shapes.size() == 3);
  REQUIRE(qkv.does.size() == 2);
  CHECK(qkv.does[0].starts_with("Join"));
  CHECK(qkv.does[1].starts_with("Stack"));
  const auto tensor = megatron->find(qkv.tensors.front().to.front());
  REQUIRE(tensor.has_value());
  CHECK(qkv.does[1].find(to_text(megatron->shape(*tensor))) != std::string::npos);
  CHECK(row_to(names, "final_layernorm.weight").does.empty());
}

TEST_CASE("paired names: a learned map says how many tensors were compared") {
  const auto hf = side_of_pair("hf"), megatron = side_of_pair("megatron");
  auto learned = learn_map(hf, megatron, nullptr);
  REQUIRE_MESSAGE(learned.has_value(), learned.error().message);
  auto names = verbs::pair_learned(*hf, *megatron, *learned);
  REQUIRE_MESSAGE(names.has_value(), names.error().message);
  CHECK(names->map.empty());
  CHECK(names->tensors == megatron->tensor_count());
  CHECK(names->proved == learned->proved);
  CHECK(names->rows.size() == learned->rows.size());
  std::size_t made = 0;
  for (const PairedRow& row : names->rows)
    made += names->is_first_from ? row.to_count : row.from_count;
  CHECK(made + learned->unexplained.size() == learned->tensors);
}

TEST_CASE("paired names: two checkpoints of one program have no map") {
  const auto hf = side_of_pair("hf");
  auto names = verbs::pair_names(*hf, *hf);
  REQUIRE(names.has_value());
  CHECK_FALSE(names->has_value());
}
