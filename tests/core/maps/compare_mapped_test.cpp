// The same weights as saved by transformers and megatron-core (data/README.md), compared through
// the built-in maps.
#include "core/maps/compare_mapped.h"

#include <doctest/doctest.h>

#include <string>

#include "core/formats/open.h"
#include "core/maps/choose_map.h"
#include "core/maps/map_steps.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kPair = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/";

std::shared_ptr<const Checkpoint> opened(const std::string& name) {
  auto checkpoint = open_checkpoint(kPair + name);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

}  // namespace

TEST_CASE("compare through a map: the same weights in two layouts are the same both ways") {
  const auto hf = opened("hf"), megatron = opened("megatron");
  const ModelFacts facts = facts_in_folder(*hf);
  CHECK(needs_map(*hf, *megatron, facts));
  for (const bool is_hf_compared : {true, false}) {
    auto compared = compare_mapped(is_hf_compared ? hf : megatron, is_hf_compared ? megatron : hf,
                                   {}, facts, nullptr);
    REQUIRE_MESSAGE(compared.has_value(), compared.error().message);
    REQUIRE(compared->has_value());
    CHECK((*compared)->is_same());
    CHECK((*compared)->equal == 9);
    CHECK((*compared)->map == "hf-megatron");
  }
}

TEST_CASE("compare through a map: a prefix that is added or lost asks for no map") {
  const auto hf = opened("hf");
  const ModelFacts facts = facts_in_folder(*hf);
  const auto renamed = [&](const std::string& added, std::string_view dropped) {
    NamedTensors tensors;
    for (const TensorId tensor : hf->tensors()) {
      std::string_view fqn = hf->fqn(tensor);
      if (fqn.starts_with(dropped)) fqn.remove_prefix(dropped.size());
      tensors[added + std::string(fqn)] = {"F32", copy_of(hf->shape(tensor))};
    }
    return opened_tensors(tensors);
  };
  const auto lost = renamed("", "model.");
  // The names alone look like another program's.
  CHECK(naming_scheme_of(tensor_names_and_shapes(*lost), facts) !=
        naming_scheme_of(tensor_names_and_shapes(*hf), facts));
  CHECK_FALSE(needs_map(*lost, *hf, facts));
  CHECK_FALSE(needs_map(*renamed("model.", ""), *hf, facts));
}

TEST_CASE("maps: a Megatron checkpoint becomes what transformers saved, names and shapes") {
  const auto hf = opened("hf"), megatron = opened("megatron");
  auto mapped = mapped_steps(*megatron, nullptr, "hf", facts_in_folder(*hf), {});
  REQUIRE_MESSAGE(mapped.has_value(), mapped.error().message);
  CHECK(mapped->tensors.size() == hf->tensor_count());
  for (const MapTensor& tensor : mapped->tensors) {
    const auto there = hf->find(tensor.fqn);
    REQUIRE_MESSAGE(there.has_value(), tensor.fqn);
    CHECK(copy_of(hf->shape(*there)) == tensor.shape);
  }
}
