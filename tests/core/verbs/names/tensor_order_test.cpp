// The list of tensors while a filter is typed, compared with a fresh filter and sort.
#include "core/verbs/names/tensor_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "core/model/builder.h"
#include "core/verbs/names/fuzzy_match.h"

using namespace shw;

namespace {

std::shared_ptr<const Checkpoint> layered_model() {
  CheckpointBuilder builder;
  for (int layer = 0; layer < 40; ++layer) {
    std::string before = "model.Layers." + std::to_string(layer);
    for (const char* name : {".mlp.down_proj.weight", ".mlp.gate_proj.weight", ".norm.bias"}) {
      builder.add_tensor(before + name, layer % 3 == 0 ? Dtype::kFloat32 : Dtype::kBfloat16,
                         Extents{8, layer + 1});
      builder.add_chunk(Extents{0, 0}, Extents{8, layer + 1},
                        {builder.file("__" + std::to_string(layer % 4) + "_0.distcp"), 0, 10});
    }
  }
  builder.add_tensor("a:b", Dtype::kInt64, Extents{1});
  builder.add_tensor("~tilde", Dtype::kInt64, Extents{1});
  return builder.finish();
}

std::vector<std::uint32_t> in_two_steps(const ListOptions& wish) {
  auto order = filter_tensors(*wish.checkpoint, wish.report.get(), wish.filter, nullptr);
  REQUIRE(order.has_value());
  sort_tensors(*wish.checkpoint, wish.report.get(), wish.sort, wish.descending, *order);
  return *order;
}

std::vector<std::uint32_t> passing_letters(const Checkpoint& checkpoint, std::string_view text) {
  auto found = filter_tensors(checkpoint, nullptr, text, nullptr);
  REQUIRE(found.has_value());
  return *found;
}

// The rule in its simplest form: the next letter follows the previous one, or begins a part.
bool begins_part(std::string_view name, std::size_t at) {
  auto kind = [](char c) { return std::isdigit(c) != 0 ? 2 : std::isalpha(c) != 0 ? 1 : 0; };
  return kind(name[at]) == 0 || at == 0 || kind(name[at]) != kind(name[at - 1]);
}
bool letters_from(std::string_view name, std::string_view letters, std::size_t next, bool first) {
  if (letters.empty()) return true;
  for (std::size_t at = next; at < name.size(); ++at) {
    bool may = begins_part(name, at) || (!first && at == next);
    if (may && std::tolower(name[at]) == std::tolower(letters[0]) &&
        letters_from(name, letters.substr(1), at + 1, false))
      return true;
  }
  return false;
}

std::shared_ptr<const Checkpoint> named(const std::vector<std::string>& names) {
  CheckpointBuilder builder;
  for (const std::string& name : names) builder.add_tensor(name, Dtype::kInt64, Extents{1});
  return builder.finish();
}

}  // namespace

TEST_CASE("a list that is typed at gives what filter and sort give one after the other") {
  auto model = layered_model();
  auto report = std::make_shared<CheckReport>();
  report->findings.push_back(
      {"coverage-gap", Severity::kError, {"model.Layers.7.norm.bias"}, "", {}, {}, {}, ""});
  std::mt19937 random(11);
  const std::string letters =
      "down_proj .7 ~l3dp dtype:bf rank:1 finding:* norm ndim:2 shape:[8,* ~";
  TensorOrder list;
  std::string typed;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 40 == 0) typed.clear();
    if (random() % 4 == 0 && !typed.empty())
      typed.pop_back();
    else if (random() % 5 == 0)
      typed += letters[random() % letters.size()];
    else  // the next typed letter
      typed += letters[std::min(letters.size() - 1, typed.size() + random() % 2)];
    ListOptions wish{model, random() % 3 == 0 ? nullptr : report, typed,
                     static_cast<SortKey>(random() % 7), random() % 2 == 0};
    CAPTURE(typed);
    auto given = list.list(wish, nullptr);
    REQUIRE(given.has_value());
    CHECK(*given == in_two_steps(wish));
  }
}

TEST_CASE("a list that is no longer wanted stops, and the next one is whole") {
  auto model = layered_model();
  TensorOrder list;
  Progress stopped;
  stopped.cancel();
  auto none = list.list({model, nullptr, "norm"}, &stopped);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kCancelled);
  auto given = list.list({model, nullptr, "norm.bias"}, nullptr);
  REQUIRE(given.has_value());
  CHECK(given->size() == 40);
}

TEST_CASE("letters find a name where they begin its parts or follow one another in them") {
  CHECK(has_letters_in_order("layers.3.mlp.down_proj.weight", "l3dp"));
  CHECK(has_letters_in_order("layers.3.mlp.down_proj.weight", "laydown"));
  CHECK(has_letters_in_order("layers.3.mlp.down_proj.weight", "L3MLP"));
  CHECK(has_letters_in_order("layers12", "l12"));
  CHECK(has_letters_in_order("layers12", "l1"));
  CHECK_FALSE(has_letters_in_order("layers12", "l2"));   // 2 begins nothing
  CHECK_FALSE(has_letters_in_order("layers.3", "ls3"));  // nor does s
  CHECK_FALSE(has_letters_in_order("layers.3", "3l"));
  CHECK(has_letters_in_order("d.down", "dow"));  // the first d fails, the second one matches
  CHECK(has_letters_in_order("anything", ""));
  auto model = layered_model();
  CHECK(passing_letters(*model, "~l3dp").size() == 11);  // layers 3 and 30 to 39
  CHECK(passing_letters(*model, "~l3dp dtype:f32") ==
        std::vector<std::uint32_t>{9, 90, 99, 108, 117});
  CHECK(passing_letters(*model, "~") == std::vector<std::uint32_t>{121});  // a part of a name
}

TEST_CASE("letters are found in a list as in each of its names alone") {
  std::mt19937 random(5);
  constexpr std::string_view kSigns = "aB1.a_b2", kLetters = "ab12.";
  for (int round = 0; round < 60; ++round) {
    // Neighbours with a common prefix, one that is a prefix of the next, equal ones, and short
    // ones.
    std::vector<std::string> names(1);
    while (names.size() < 200) {
      std::string name = names.back().substr(0, random() % (names.back().size() + 1));
      for (auto more = random() % 6; more > 0; --more) name += kSigns[random() % kSigns.size()];
      names.push_back(std::move(name));
    }
    auto checkpoint = named(names);
    TensorOrder list;
    std::string typed = "~";
    while (typed.size() < 6) {
      typed += kLetters[random() % kLetters.size()];
      // The extended filter searches earlier matches or all names, with one or two words.
      std::string text = random() % 3 == 0 ? typed + " ~1" : typed;
      std::vector<std::uint32_t> wanted;
      for (std::uint32_t t = 0; t < names.size(); ++t) {
        bool also = text == typed || letters_from(names[t], "1", 0, true);
        if (also && letters_from(names[t], typed.substr(1), 0, true)) wanted.push_back(t);
      }
      CAPTURE(text);
      CHECK(*list.list({checkpoint, nullptr, text}, nullptr) == wanted);
      CHECK(passing_letters(*checkpoint, text) == wanted);
    }
  }
}

TEST_CASE("a filter that finds nothing can be asked for its letters") {
  CHECK(as_fuzzy_filter("l3dp") == "~l3dp");
  CHECK(as_fuzzy_filter("l3 dtype:bf16 dp") == "~l3 dtype:bf16 ~dp");
  CHECK(as_fuzzy_filter("~l3dp").empty());
  CHECK(as_fuzzy_filter("dtype:bf16").empty());
  CHECK(as_fuzzy_filter("").empty());
}

TEST_CASE("what was typed on is narrower, and a term that was typed on is another one") {
  CHECK(is_narrower("down", "do"));
  CHECK(is_narrower("down 3", "down"));
  CHECK(is_narrower("down", ""));
  CHECK(is_narrower("~l3d", "~l3"));
  CHECK_FALSE(is_narrower("do", "down"));
  CHECK_FALSE(is_narrower("~l", "~"));
  CHECK_FALSE(is_narrower("dtype:bf16", "dtype:bf1"));
  CHECK_FALSE(is_narrower("dtype:b", "dtype:"));
  CHECK_FALSE(is_narrower("down", "own"));  // true for these two, but not worth a search
}
