#include "core/transform/entry_names.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/program/random_program.h"
#include "core/transform/named_entries.h"

using namespace shw;
using shw::test::Dice;

namespace {

// The reference: a list that is edited at every step.
using NameList = std::vector<std::string>;

TargetState target_named(const NameList& tensors, const NameList& objects) {
  TargetState all;
  for (const std::string& name : tensors) all.tensors.push_back({name});
  for (const std::string& name : objects) all.objects.push_back({0, name, {}});
  return all;
}

template <class Entries>
NameList names_in(const Entries& entries) {
  NameList names;
  for (const auto& entry : entries) names.push_back(entry.fqn);
  return names;
}

struct NamesGame {
  Dice dice;
  NameList tensors, objects;
  TargetState all;
  int made = 0;

  std::string new_name() { return "new." + std::to_string(made++); }
  std::size_t pick(const NameList& list) {
    return static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(list.size()) - 1));
  }

  void replace_tensor() {
    const std::size_t at = pick(tensors);
    const std::size_t entry = *entry_named(all, tensors[at]);
    // One of the new names may equal the replaced one.
    NameList names;
    for (std::int64_t i = dice.pick(0, 3); i > 0; --i) names.push_back(new_name());
    if (!names.empty() && dice.one_in(3)) names.back() = tensors[at];
    std::vector<TargetEntry> instead;
    for (const std::string& name : names) instead.push_back({name});
    remove_entry(all, entry, std::move(instead));
    auto where = tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(at));
    tensors.insert(where, names.begin(), names.end());
  }

  void rename_tensor() {
    const std::size_t at = pick(tensors), entry = *entry_named(all, tensors[at]);
    TargetTensor tensor;
    tensor.fqn = tensors[at] = new_name();
    replace_entry_tensor(all, entry, std::move(tensor));
  }

  void change_object() {
    const std::size_t at = pick(objects);
    const std::size_t object = *entry_names_of(all).find(NamedKind::kObject, objects[at]);
    if (dice.one_in(2)) {
      rename_object(all, object, objects[at] = new_name());
    } else {
      remove_object(all, object);
      objects.erase(objects.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void step() {
    if (!tensors.empty() && dice.one_in(3)) rename_tensor();
    if (!tensors.empty() && dice.one_in(2)) replace_tensor();
    if (!objects.empty() && dice.one_in(3)) change_object();
    if (dice.one_in(6)) sort_and_remove_dropped(all);
  }

  void check_lookups() {
    Patterns some;
    for (const std::string& name : tensors) {
      if (dice.one_in(4)) some.push_back(name);
    }
    const NameList expected(some.begin(), some.end());
    if (some.empty()) return;
    dice.shuffle(some);
    auto found = entries_named(all, some);
    REQUIRE(found.has_value());
    NameList names;
    for (std::size_t entry : *found) names.push_back(all.tensors[entry].fqn);
    CHECK(names == expected);
  }
};

}  // namespace

TEST_CASE("entries that change their names, go and are replaced are as in a list of them") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    NamesGame game{Dice(seed), {"a", "b", "c", "d"}, {"x", "y"}, {}};
    game.all = target_named(game.tensors, game.objects);
    for (int i = 0; i < 40; ++i) {
      game.step();
      game.check_lookups();
      CHECK(entry_names_of(game.all).has_unique_names());
      CHECK_FALSE(entry_names_of(game.all).has("nobody"));
    }
    sort_and_remove_dropped(game.all);
    CHECK(names_in(game.all.tensors) == game.tensors);
    CHECK(names_in(game.all.objects) == game.objects);
  }
}

TEST_CASE("names that meet for a while, whatever has them, differ again once they part") {
  EntryNames names;
  names.add(NamedKind::kTensor, "a", 0);
  names.add(NamedKind::kTensor, "b", 1);
  names.add(NamedKind::kObject, "a", 0);
  CHECK_FALSE(names.has_unique_names());
  CHECK(names.find(NamedKind::kTensor, "a") == 0);
  CHECK(names.find(NamedKind::kObject, "a") == 0);
  CHECK_FALSE(names.find(NamedKind::kObject, "b").has_value());
  names.forget(NamedKind::kObject, "a", 0);
  CHECK(names.has_unique_names());
  names.forget(NamedKind::kTensor, "a", 0);
  names.add(NamedKind::kTensor, "b", 0);
  CHECK_FALSE(names.has_unique_names());
  names.forget(NamedKind::kTensor, "b", 1);
  CHECK(names.has_unique_names());
  CHECK(names.find(NamedKind::kTensor, "b") == 0);
  CHECK_FALSE(names.has("a"));
}
