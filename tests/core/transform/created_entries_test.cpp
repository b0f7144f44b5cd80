// Tensors and other entries that steps create.
#include "core/formats/plain_value.h"
#include "core/transform/step_cases.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("created entries: each value is read back as Python has it") {
  Saved saved(two_tensors());
  const std::pair<EntryValue, const char*> values[] = {{std::monostate(), "None"},
                                                       {true, "1"},
                                                       {std::int64_t{-7}, "-7"},
                                                       {0.25, "0.25"},
                                                       {"text", "text"},
                                                       {std::vector{0.9, 0.95}, "(0.9, 0.95)"},
                                                       {std::vector<double>(), "()"}};
  std::vector<Step> steps;
  std::size_t number = 0;
  for (const auto& [value, text] : values)
    steps.emplace_back(CreateEntriesStep{{"entry." + std::to_string(number++)}, value});
  auto all = apply_steps(target_state_of(saved.checkpoint), steps);
  REQUIRE(all.has_value());
  make_into(saved.store, *all, "/created");
  const auto made = open_in(saved.store, "/created");
  REQUIRE(made->objects().size() == number);
  for (std::size_t i = 0; i < number; ++i) {
    const std::string fqn = made->objects()[i].fqn;
    auto value = read_plain_value(*made, i, 1 << 20);
    REQUIRE(value.has_value());
    CHECK_MESSAGE(to_text(*value) == values[fqn.back() - '0'].second, fqn);
  }
}

TEST_CASE(
    "created entries: a name that exists, a shape that is none and a wrong number are refused") {
  Saved saved(two_tensors());
  const CreateTensorsStep step{{"new"}, Dtype::kUint8, {2, 3}, 255};
  CHECK(refusal(saved, {step}).empty());
  auto changed = [&](auto change) {
    CreateTensorsStep other = step;
    change(other);
    return refusal(saved, {other});
  };
  CHECK(says(changed([](auto& one) { one.tensors = {"a.weight"}; }), "two entries"));
  CHECK(says(changed([](auto& one) { one.tensors = {"new", "new"}; }), "two entries"));
  CHECK(says(changed([](auto& one) { one.tensors.clear(); }), "no entry is named"));
  CHECK(says(changed([](auto& one) { one.shape = {-1}; }), "is not a shape"));
  CHECK(says(changed([](auto& one) { one.shape = {1LL << 62, 8}; }), "is not a shape"));
  CHECK(says(changed([](auto& one) { one.value = 256; }), "is not a uint8"));
  CHECK(says(refusal(saved, {CreateEntriesStep{{"a.weight"}, true}}), "two entries"));
}
