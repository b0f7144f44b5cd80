#include "core/formats/dcp/dcp_root.h"

namespace shw {

Result<NodeId> entries_of_metadata(const PickleTree& tree, const std::string& file) {
  const NodeId root = tree.root();
  const NodeId entries = tree.attribute(root, "state_dict_metadata");
  const PickleGlobal* made_of = tree.global(tree.callable(root));
  // PaddlePaddle uses the same names for file, class and attributes.
  const bool is_of_paddle = made_of != nullptr && made_of->module.starts_with("paddle.");
  if (tree.kind(entries) == NodeKind::kDict && !is_of_paddle) return entries;
  if (made_of != nullptr && made_of->name == "Metadata" && entries != NodeId::kAbsent &&
      !is_of_paddle)
    return fail(ErrorKind::kUnsupported, "has a state_dict_metadata that is not a plain dict",
                {file, tree.at(entries)});
  const std::string what =
      made_of == nullptr ? "a plain value" : made_of->module + "." + made_of->name;
  return fail(ErrorKind::kUnsupported,
              "is a pickle of " + what + ", not of torch.distributed.checkpoint's Metadata",
              {file, tree.at(root)},
              "Another library wrote it; Shardwright reads those of torch and Megatron.");
}

}  // namespace shw
