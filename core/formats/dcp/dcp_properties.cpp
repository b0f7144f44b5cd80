#include "core/formats/dcp/dcp_properties.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "core/formats/pickle/pickle_calls.h"

namespace shw {
namespace {

bool is_encoding(const PickleGlobal* global) {
  return global != nullptr && global->name.ends_with("MEM_FORMAT_ENCODING");
}

// True for class(value), or for getattr(class, "NAME") by Python 3.11.0 to 3.11.3.
bool is_memory_format(const PickleTree& tree, NodeId node) {
  constexpr std::string_view kNames[] = {"TORCH_CONTIGUOUS_FORMAT", "TORCH_CHANNELS_LAST",
                                         "TORCH_PRESERVE_FORMAT"};
  constexpr std::int64_t kMaxCode = std::size(kNames) - 1;
  const PickleGlobal* called = tree.global(tree.callable(node));
  const auto arguments = tree.items(tree.arguments(node));
  if (is_encoding(called) && !arguments.empty()) {
    const auto code = tree.integer(arguments[0]);
    return code && *code >= 0 && *code <= kMaxCode;
  }
  if (called == nullptr || !is_getattr(*called) || arguments.size() != 2 ||
      !is_encoding(tree.global(arguments[0])))
    return false;
  const auto name = tree.text(arguments[1]);
  return name && std::find(std::begin(kNames), std::end(kNames), *name) != std::end(kNames);
}

}  // namespace

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
    if (!known) return std::string("its layout is not a torch layout.");
  }
  if (!is_memory_format(tree, fields[3]) && tree.kind(fields[3]) != NodeKind::kNone)
    return std::string("its memory format is not a torch memory format.");
  return std::nullopt;
}

}  // namespace shw
