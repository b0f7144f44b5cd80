#include "core/facts/reference/class_constraints.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace shw {
namespace {

using Words = std::string_view;

// Keys of further layers, which follow those that num_hidden_layers counts.
constexpr Words kFurtherLayers =
    "num_nextn_predict_layers|num_mtp_layers|mtp_num_hidden_layers|"
    "text_config.num_nextn_predict_layers|text_config.num_mtp_layers|"
    "text_config.mtp_num_hidden_layers";

// "model.layers." and "mlp.experts." of "model.layers.*.mlp.experts.".
std::pair<Words, Words> split_at_layer_number(Words list) {
  constexpr Words kNumber = "*.";
  const std::size_t star = list.find(kNumber);
  if (star == Words::npos) return {list, {}};
  return {list.substr(0, star), list.substr(star + kNumber.size())};
}

std::vector<StackConstraint> stack_constraints_of_class(const ClassSizes& table) {
  std::vector<StackConstraint> stacks;
  const auto stack_of = [&](Words name) -> StackConstraint& {
    auto found = std::find_if(stacks.begin(), stacks.end(),
                              [&](const StackConstraint& one) { return one.name == name; });
    if (found != stacks.end()) return *found;
    return stacks.emplace_back(StackConstraint{name, {}, kFurtherLayers});
  };
  for (const CountOfList& one : table.counts) {
    const auto [outer, inner] = split_at_layer_number(one.list);
    if (inner.find('*') != Words::npos) continue;
    StackConstraint& stack = stack_of(outer);
    if (inner.empty()) {
      stack.count = one.key;
    } else if (stack.inner.empty()) {
      stack.inner = inner;
      stack.inner_count = one.key;
    }
  }
  return stacks;
}

ConfigPart merge_config_parts(const ModelConfig& config) {
  ConfigPart all;
  for (const ConfigPart& part : config.parts) {
    const std::string before = part.name.empty() ? "" : part.name + ".";
    for (const auto& [key, size] : part.sizes) all.sizes.emplace(before + key, size);
  }
  return all;
}

// "DetrModel" for "DetrForObjectDetection", which holds it as an attribute.
std::string body_class(Words name) {
  const std::size_t task = name.find("For");
  return task == Words::npos || task == 0 ? "" : std::string(name.substr(0, task)) + "Model";
}

// The sizes of the class's body behind "model.", where the class itself is not in the table.
std::optional<ClassSizes> sizes_of_body(Words name) {
  auto table = sizes_of_class(body_class(name));
  if (!table) return std::nullopt;
  for (SizesOfName& one : table->sizes) one.name.insert(0, "model.");
  for (CountOfList& one : table->counts) one.list.insert(0, "model.");
  return table;
}

}  // namespace

std::unique_ptr<ClassConstraints> ClassConstraints::of(const ModelConfig& config) {
  if (config.architectures.size() != 1 || config.has_own_code) return nullptr;
  // Under another model type the class may read other keys: "exaone" for Llama's classes.
  if (!is_transformers_class(config.architectures.front(), config.parts.front().model_type))
    return nullptr;
  auto table = sizes_of_class(config.architectures.front());
  if (!table) table = sizes_of_body(config.architectures.front());
  const std::string& type = config.parts.front().model_type;
  if (!table || std::find(table->types.begin(), table->types.end(), type) == table->types.end())
    return nullptr;
  return std::unique_ptr<ClassConstraints>(new ClassConstraints(config, std::move(*table)));
}

ClassConstraints::ClassConstraints(const ModelConfig& config, ClassSizes table)
    : table_(std::move(table)),
      keys_(merge_config_parts(config)),
      stacks_(stack_constraints_of_class(table_)) {
  for (const SizesOfName& one : table_.sizes)
    sizes_.push_back({one.name, {one.extents[0], one.extents[1]}});
  constraints_.stacks = stacks_;
  constraints_.sizes = sizes_;
  constraints_.is_of_class = true;
}

}  // namespace shw
