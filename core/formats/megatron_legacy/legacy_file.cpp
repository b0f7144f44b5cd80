#include "core/formats/megatron_legacy/legacy_file.h"

#include <set>

#include "core/base/words.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/pickle/plain_pickle.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxOfArgs = 1 << 20;

LegacyArgs legacy_args(const PickleTree& tree, NodeId args) {
  auto number = [&](std::string_view name) -> std::optional<std::uint32_t> {
    const auto value = tree.integer(tree.attribute(args, name));
    if (!value || *value < 1 || *value > kMaxOfArgs) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
  };
  auto flag = [&](std::string_view name) -> std::optional<bool> {
    const NodeId value = tree.attribute(args, name);
    if (tree.kind(value) != NodeKind::kBool) return std::nullopt;
    return tree.integer(value) == 1;
  };
  LegacyArgs out;
  out.tensor = number("tensor_model_parallel_size");
  // Argument of Megatron versions before pipeline parallelism.
  if (!out.tensor) out.tensor = number("model_parallel_size");
  out.pipeline = number("pipeline_model_parallel_size");
  out.expert = number("expert_model_parallel_size");
  out.expert_tensor = number("expert_tensor_parallel_size");
  out.world = number("world_size");
  out.experts = number("num_experts");
  out.is_gated = flag("swiglu");
  for (std::string_view other : {"gated_linear_unit", "geglu", "quick_geglu"}) {
    if (const auto own = flag(other); own && (*own || !out.is_gated)) out.is_gated = own;
  }
  return out;
}

void read_legacy_values(const OpenedTorchFile& side, const std::set<std::string>& with_tensors,
                        LegacyFile& file) {
  const PickleTree& tree = side.tree;
  const NodeId root = tree.root();
  const auto items = tree.items(tree.kind(root) == NodeKind::kDict ? root : tree.contents(root));
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto key = tree.text(items[i]);
    if (!key || with_tensors.contains(std::string(*key))) continue;
    InlinedValue value;
    auto opcodes = plain_pickle(tree, items[i + 1], 4 * tree.end() + (1 << 16));
    value.is_all = opcodes.has_value();
    if (opcodes)
      value.opcodes = std::move(*opcodes);
    else
      value.not_plain = non_plain_value_reason(tree, items[i + 1]);
    file.values.push_back({std::string(*key), std::move(value)});
  }
}

}  // namespace

Result<LegacyFile> read_legacy_file(const Directory& directory, const std::string& path,
                                    PickleFindings& notes) {
  SHW_TRY(OpenedTorchFile side, open_torch_file_with_findings(directory, path, notes));
  SHW_TRY(SideFile tensors, tensors_with_findings(side, path, notes));
  LegacyFile file;
  file.tensors = std::move(tensors.tensors);
  file.unreadable = std::move(tensors.unreadable);
  const NodeId root = side.tree.root();
  const NodeId mapping = side.tree.kind(root) == NodeKind::kDict ? root : side.tree.contents(root);
  file.args = legacy_args(side.tree, side.tree.find(mapping, "args"));
  file.iteration = side.tree.integer(side.tree.find(mapping, "iteration"));
  std::set<std::string> with_tensors;
  auto take_key = [&](const std::vector<PathPart>& key) {
    const auto* text = key.empty() ? nullptr : std::get_if<std::string>(&key.front());
    if (text != nullptr) with_tensors.insert(*text);
  };
  for (const TorchFileTensor& tensor : file.tensors) take_key(tensor.path);
  for (const UnreadableTensor& one : file.unreadable) take_key(one.path);
  read_legacy_values(side, with_tensors, file);
  return file;
}

std::optional<std::uint32_t> model_chunk(const PathPart& key) {
  const auto* text = std::get_if<std::string>(&key);
  if (text == nullptr || !text->starts_with("model")) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(5);
  if (rest.empty()) return 0;
  const auto number = consume_number(rest);
  if (!number || !rest.empty() || *number > 4096) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace shw
