// Which tensors make one quantised weight.
#include "core/verbs/quantised_parts.h"

#include <doctest/doctest.h>

#include <set>

#include "core/formats/open.h"

using namespace shw;

namespace {

std::string quantised_data(const std::string& name) {
  return std::string(SHW_TEST_DATA) + "/quantised/" + name;
}

// Every part names the same parts.
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
