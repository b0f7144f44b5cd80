// The tensors that make one quantised weight.
#include "core/verbs/values/quantised_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/formats/open.h"
#include "core/report/listing.h"
#include "core/report/report.h"

using namespace shw;

namespace {

std::string quantised_data(const std::string& name) {
  return std::string(SHW_TEST_DATA) + "/quantised/" + name;
}

// Checks that every part names the same parts.
void check_parts_agree(const std::string& path, std::size_t least) {
  CAPTURE(path);
  auto opened = open_checkpoint(path);
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  std::size_t found = 0;
  for (TensorId tensor : checkpoint.tensors()) {
    const auto parts = verbs::quantised_parts_of(checkpoint, tensor);
    if (!parts) continue;
    ++found;
    CHECK(parts->tensors.size() >= 2);
    CHECK_FALSE(parts->scheme.empty());
    std::set<std::size_t> own;
    for (TensorId part : parts->tensors) {
      own.insert(index_of(part));
      const auto of_part = verbs::quantised_parts_of(checkpoint, part);
      REQUIRE(of_part.has_value());
      CHECK(of_part->tensors == parts->tensors);
    }
    CHECK(own.contains(index_of(tensor)));
    CHECK(own.size() == parts->tensors.size());
  }
  CHECK(found >= least);
}

}  // namespace

TEST_CASE("quantised parts: a weight, its scales and zero points name each other") {
  for (const char* name : {"gptq", "awq", "fp8_block", "mxfp4"})
    check_parts_agree(quantised_data(name) + "/ckpt", 2);
}

TEST_CASE("quantised parts: a tensor of a float checkpoint has none") {
  auto opened = open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt");
  REQUIRE(opened.has_value());
  for (TensorId tensor : (*opened)->tensors())
    CHECK_FALSE(verbs::quantised_parts_of(**opened, tensor).has_value());
}

TEST_CASE("quantised parts: lists name the weight that a tensor is a part of") {
  auto opened = open_checkpoint(quantised_data("awq/ckpt"));
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  const auto weights = verbs::quantised_weights(checkpoint);
  REQUIRE_FALSE(weights.empty());
  std::vector<std::uint32_t> order(checkpoint.tensor_count());
  std::iota(order.begin(), order.end(), 0u);
  const auto list = nlohmann::json::parse(list_to_json(checkpoint, order, {}, weights));
  std::size_t named = 0, parts = 0;
  for (const auto& tensor : list["tensors"]) {
    if (!tensor.contains("quantised")) continue;
    ++named;
    const auto& names = tensor["quantised"]["tensors"];
    CHECK(std::find(names.begin(), names.end(), tensor["fqn"]) != names.end());
  }
  for (const QuantisedWeight& weight : weights) parts += weight.tensors.size();
  CHECK(named == parts);
  const TensorId first = weights.front().tensors.front();
  const auto shown =
      nlohmann::json::parse(tensor_to_json(checkpoint, first, nullptr, 0, false, &weights.front()));
  CHECK(shown["quantised"]["scheme"] == weights.front().scheme);
  const std::string with = list_to_text(checkpoint, order, {}, {}, weights);
  CHECK(with.find(weights.front().scheme + ", ") != std::string::npos);
  // A list of tensors that are not quantised has no such column.
  CHECK(list_to_text(checkpoint, order, {}) != with);
}
