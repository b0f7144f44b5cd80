#include "core/verbs/names/choose_tensors.h"

#include <doctest/doctest.h>

#include "core/model/builder.h"

using namespace shw;

namespace {

std::shared_ptr<const Checkpoint> named_checkpoint() {
  CheckpointBuilder builder;
  for (const char* fqn : {"layers.10.w", "layers.2.w", "layers.2.b", "odd[0]", "norm"})
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{1});
  return builder.finish();
}

std::vector<std::string> chosen_names(const std::vector<std::string>& names) {
  auto checkpoint = named_checkpoint();
  auto tensors = choose_tensors(*checkpoint, names);
  REQUIRE(tensors.has_value());
  std::vector<std::string> found;
  for (TensorId tensor : *tensors) found.emplace_back(checkpoint->fqn(tensor));
  return found;
}

}  // namespace

TEST_CASE("tensors are chosen by name and by pattern, each once, in natural order") {
  using Names = std::vector<std::string>;
  CHECK(chosen_names({}) == Names{"layers.2.b", "layers.2.w", "layers.10.w", "norm", "odd[0]"});
  CHECK(chosen_names({"layers.*.w", "layers.2.w"}) == Names{"layers.2.w", "layers.10.w"});
  CHECK(chosen_names({"layers.?.*"}) == Names{"layers.2.b", "layers.2.w"});
  // An existing name is not treated as a pattern.
  CHECK(chosen_names({"odd[0]"}) == Names{"odd[0]"});
}

TEST_CASE("choosing tensors: words and terms choose as they do in ls") {
  using Names = std::vector<std::string>;
  CHECK(chosen_names({"layers.2"}) == Names{"layers.2.b", "layers.2.w"});
  CHECK(chosen_names({"layers w"}) == Names{"layers.2.w", "layers.10.w"});
  CHECK(chosen_names({"dtype:f32 nor"}) == Names{"norm"});
}

TEST_CASE("choosing tensors: one tensor is the only one that words fit") {
  auto checkpoint = named_checkpoint();
  auto one = find_one_tensor(*checkpoint, "2.b");
  REQUIRE(one.has_value());
  CHECK(checkpoint->fqn(*one) == "layers.2.b");
  const auto several = find_one_tensor(*checkpoint, "layers.2");
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().message.find("2 tensors fit") != std::string::npos);
}

TEST_CASE("a name or a pattern that fits nothing is a usage error with what is near") {
  auto checkpoint = named_checkpoint();
  auto near = choose_tensors(*checkpoint, std::vector<std::string>{"layers.2.ww"});
  REQUIRE_FALSE(near.has_value());
  CHECK(near.error().kind == ErrorKind::kNotFound);
  CHECK(near.error().advice.find("layers.2.w") != std::string::npos);
  auto none = choose_tensors(*checkpoint, std::vector<std::string>{"norm", "heads.*"});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kNotFound);
}
