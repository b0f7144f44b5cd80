// Scales of the key-value cache next to weights.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("quantised pairs: a layer with one scale of its cache is reported") {
  for (const char* own : {"", "x_proj."}) {
    NamedTensors tensors;
    auto name = [&](int layer, char part) {
      std::string module = own;
      if (!module.empty()) module[0] = part;
      return fmt::format("model.layers.{}.self_attn.{}{}_scale", layer, module, part);
    };
    for (int layer = 0; layer < 4; ++layer) {
      tensors[name(layer, 'k')] = {"F32", {}};
      tensors[name(layer, 'v')] = {"F32", {}};
    }
    CHECK(find(checked_tensors(tensors), "quantised-pairs") == nullptr);
    tensors.erase(name(2, 'k'));
    const CheckReport report = checked_tensors(tensors);
    const Finding* finding = find(report, "quantised-pairs");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects == std::vector<std::string>{name(2, 'v')});
  }
}
