#include "core/formats/dcp/dcp_properties.h"

#include <fmt/core.h>

#include <algorithm>

namespace shw {

std::optional<std::string> refused_property(const PickleTree& tree, std::span<const NodeId> fields,
                                            std::size_t arity) {
  constexpr std::string_view kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                           "sparse_bsr", "sparse_bsc", "_mkldnn",    "jagged"};
  if (arity != 0 && fields.size() != arity)
    return fmt::format("it has {} properties, the tensors before it have {}.", fields.size(),
                       arity);
  auto layout = tree.items(tree.arguments(fields[1]));
  if (auto name = layout.empty() ? std::nullopt : tree.text(layout[0])) {
    bool known = std::any_of(std::begin(kLayouts), std::end(kLayouts), [&](std::string_view one) {
      return name->starts_with("torch.") && name->substr(6) == one;
    });
    if (!known) return std::string("its layout has a name that no torch knows.");
  }
  const PickleGlobal* encoding = tree.global(tree.callable(fields[3]));
  auto memory = tree.items(tree.arguments(fields[3]));
  bool known = encoding != nullptr && encoding->name.ends_with("MEM_FORMAT_ENCODING");
  if (known) {
    auto code = memory.empty() ? std::nullopt : tree.integer(memory[0]);
    known = code && *code >= 0 && *code <= 2;
  }
  if (!known && tree.kind(fields[3]) != NodeKind::kNone)
    return std::string("its memory format is none that torch knows.");
  return std::nullopt;
}

}  // namespace shw
