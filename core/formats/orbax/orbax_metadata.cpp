#include "core/formats/orbax/orbax_metadata.h"

#include <algorithm>

#include "core/base/json.h"

namespace shw {
namespace {

using OrbaxJson = nlohmann::json;

// Keys of dictionaries and indices of lists, joined by dots as Orbax does.
std::string leaf_name(const OrbaxJson& leaf) {
  std::string name;
  const OrbaxJson* keys = find_member(leaf, "key_metadata");
  if (keys == nullptr || !keys->is_array()) return name;
  for (const OrbaxJson& one : *keys) {
    const OrbaxJson* key = find_member(one, "key");
    if (key == nullptr) return {};
    if (!name.empty()) name += '.';
    name += key->is_string() ? key->get<std::string>() : key->dump();
  }
  return name;
}

ParsedJson<OrbaxJson> parsed(BytesView json) {
  return parse_json<OrbaxJson>(
      std::string_view(reinterpret_cast<const char*>(json.data()), json.size()));
}

}  // namespace

Result<OrbaxTree> parse_orbax_tree(BytesView json) {
  const auto read = parsed(json);
  if (!read.problem.empty()) return fail(ErrorKind::kDamaged, "is " + json_error_text(read));
  OrbaxTree tree;
  const OrbaxJson* all = find_member(read.tree, "store_array_data_equal_to_fill_value");
  tree.has_all_chunks = all != nullptr && all->is_boolean() && all->get<bool>();
  const OrbaxJson* leaves = find_member(read.tree, "tree_metadata");
  if (leaves == nullptr || !leaves->is_object())
    return fail(ErrorKind::kDamaged, "has no tree_metadata");
  for (const OrbaxJson& leaf : *leaves) {
    const OrbaxJson* value = find_member(leaf, "value_metadata");
    const OrbaxJson* type = value == nullptr ? nullptr : find_member(*value, "value_type");
    const std::string word =
        type != nullptr && type->is_string() ? type->get<std::string>() : std::string();
    const bool is_array = word == "jax.Array" || word == "np.ndarray" || word == "scalar";
    // Nodes without children, such as optax's EmptyState, have no saved data.
    const bool is_empty = word == "Dict" || word == "List" || word == "Tuple" || word == "None";
    std::string name = leaf_name(leaf);
    if (name.empty() || is_empty) continue;
    const bool is_text = word == "string";
    (is_array ? tree.arrays : is_text ? tree.texts : tree.others).push_back(std::move(name));
  }
  return tree;
}

std::map<std::string, std::string> parse_orbax_texts(BytesView json) {
  std::map<std::string, std::string> texts;
  const auto read = parsed(json);
  if (!read.problem.empty() || !read.tree.is_object()) return texts;
  for (const auto& [name, value] : read.tree.items()) {
    if (value.is_string()) texts[name] = value.get<std::string>();
  }
  return texts;
}

std::vector<std::string> saved_items(BytesView json) {
  std::vector<std::string> items;
  const auto read = parsed(json);
  if (!read.problem.empty()) return items;
  const OrbaxJson* handlers = find_member(read.tree, "item_handlers");
  if (handlers == nullptr || !handlers->is_object()) return items;
  for (const auto& [name, handler] : handlers->items()) {
    if (is_safe_relative_path(name)) items.push_back(name);
  }
  return items;
}

bool is_uncommitted(BytesView json) {
  const auto read = parsed(json);
  if (!read.problem.empty()) return false;
  const OrbaxJson* begun = find_member(read.tree, "init_timestamp_nsecs");
  const OrbaxJson* ended = find_member(read.tree, "commit_timestamp_nsecs");
  return begun != nullptr && begun->is_number() && ended != nullptr && ended->is_null();
}

}  // namespace shw
