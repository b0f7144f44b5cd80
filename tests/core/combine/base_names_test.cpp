#include "core/combine/base_names.h"

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

namespace {

std::shared_ptr<const Checkpoint> named(const std::vector<std::string>& names) {
  std::vector<TiledTensor> tensors;
  for (const std::string& name : names) tensors.push_back(numbers_tensor(name, {1}, {1}));
  return laid(tensors);
}

std::string found(const Checkpoint& base, BaseNames& names, const std::string& name) {
  const auto tensor = names.find(name);
  return tensor ? std::string(base.fqn(*tensor)) : std::string();
}

}  // namespace

TEST_CASE("base_names: the same name comes first, then one that ends the same way") {
  const auto base =
      named({"model.layers.0.q.weight", "vision.layers.0.q.weight", "lm.head.weight"});
  BaseNames names(*base);
  CHECK(found(*base, names, "model.layers.0.q.weight") == "model.layers.0.q.weight");
  CHECK(found(*base, names, "other.layers.0.q.weight").empty());  // of two
  CHECK(found(*base, names, "model.layers.1.q.weight").empty());  // no such layer
}

TEST_CASE("base_names: an exchanged prefix is the same for all names") {
  const auto base = named(
      {"model.text.layers.0.q.weight", "model.text.layers.1.q.weight", "other.layers.2.q.weight"});
  BaseNames names(*base);
  CHECK(found(*base, names, "model.layers.0.q.weight") == "model.text.layers.0.q.weight");
  CHECK(found(*base, names, "model.layers.1.q.weight") == "model.text.layers.1.q.weight");
  CHECK(found(*base, names, "model.layers.2.q.weight").empty());
}

TEST_CASE("base_names: one layer alone is not taken for another") {
  const auto base = named({"model.layers.0.self_attn.q.weight"});
  BaseNames names(*base);
  CHECK(found(*base, names, "model.layers.7.self_attn.q.weight").empty());
  CHECK(found(*base, names, "q.weight").empty());
}
