#include "core/formats/dcp/dcp_provenance.h"

#include <algorithm>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/pickle/plain_pickle.h"

namespace shw {
namespace {

std::string torch_version(int arity, bool old_properties, bool version, bool storage_meta,
                          bool modules) {
  if (arity >= 6) return "2.15 or newer";
  if (version) return "2.9 to 2.14";
  if (modules) return "2.7 to 2.8";
  if (storage_meta) return "2.4 to 2.6";
  if (old_properties) return "2.0 to 2.2";
  return "";
}

bool is_identifier(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

Provenance provenance_of(const PickleTree& tree, std::uint64_t file_size, int arity,
                         bool old_properties) {
  Provenance seen;
  const NodeId root = tree.root();
  NodeId attributes = tree.attributes(root);
  NodeId storage_meta = tree.find(attributes, "storage_meta");
  seen.has_planner_data = tree.kind(tree.find(attributes, "planner_data")) == NodeKind::kDict;
  seen.has_storage_meta = tree.kind(storage_meta) == NodeKind::kObject;
  seen.version = tree.text(tree.find(attributes, "version")).value_or("").substr(0, 256);
  seen.save_id = tree.text(tree.attribute(storage_meta, "save_id")).value_or("").substr(0, 256);
  seen.properties_arity = arity;
  seen.pickle_protocol = tree.protocol();
  NodeId checkpoint_id = tree.attribute(storage_meta, "checkpoint_id");
  if (tree.kind(checkpoint_id) == NodeKind::kString) seen.path_class = "str";
  if (const PickleGlobal* made_of = tree.global(tree.callable(checkpoint_id)))
    seen.path_class = (made_of->module + "." + made_of->name).substr(0, 256);
  seen.torch = torch_version(arity, old_properties, !seen.version.empty(), seen.has_storage_meta,
                             tree.attribute(storage_meta, "modules") != NodeId::kAbsent);
  constexpr std::string_view kFields[] = {
      "state_dict_metadata", "planner_data", "storage_data",
      "storage_meta",        "version",      kReorderedAttribute};
  for (NodeId fqn : tree.items(tree.find(attributes, kReorderedAttribute)))
    seen.reordered.emplace_back(tree.text(fqn).value_or(""));
  std::sort(seen.reordered.begin(), seen.reordered.end());
  auto pairs = tree.items(attributes);
  // Values are written without memo references, so shared ones grow; this limits them.
  std::size_t plain_budget = static_cast<std::size_t>(16 * file_size + 65536);
  for (std::size_t i = 0; i + 1 < pairs.size() && seen.extra_attributes.size() < 64; i += 2) {
    auto name = tree.text(pairs[i]);
    if (!name || std::find(std::begin(kFields), std::end(kFields), *name) != std::end(kFields))
      continue;
    seen.extra_attributes.emplace_back(name->substr(0, 256));
    if (name->size() > 256 || !is_identifier(*name)) continue;
    auto value = plain_pickle(tree, pairs[i + 1], plain_budget);
    if (!value) continue;
    plain_budget -= value->size();
    std::erase_if(seen.plain_attributes, [&](const auto& other) { return other.first == *name; });
    seen.plain_attributes.emplace_back(*name, std::move(*value));
  }
  return seen;
}

}  // namespace shw
