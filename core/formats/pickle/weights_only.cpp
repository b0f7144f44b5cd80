#include "core/formats/pickle/weights_only.h"

#include <algorithm>
#include <utility>

#include "core/tensor/dtype.h"

namespace shw {

std::string_view name_of_opcode(std::uint8_t opcode) {
  struct Row {
    std::uint8_t opcode;
    std::string_view name;
  };
  static constexpr Row kRows[] = {
      {'0', "POP"},
      {'1', "POP_MARK"},
      {'2', "DUP"},
      {'F', "FLOAT"},
      {'I', "INT"},
      {'L', "LONG"},
      {'P', "PERSID"},
      {'S', "STRING"},
      {'T', "BINSTRING"},
      {'V', "UNICODE"},
      {'B', "BINBYTES"},
      {'C', "SHORT_BINBYTES"},
      {'d', "DICT"},
      {'g', "GET"},
      {'i', "INST"},
      {'l', "LIST"},
      {'o', "OBJ"},
      {'p', "PUT"},
      {0x82, "EXT1"},
      {0x83, "EXT2"},
      {0x84, "EXT4"},
      {0x8b, "LONG4"},
      {0x8c, "SHORT_BINUNICODE"},
      {0x8d, "BINUNICODE8"},
      {0x8e, "BINBYTES8"},
      {0x90, "ADDITEMS"},
      {0x91, "FROZENSET"},
      {0x92, "NEWOBJ_EX"},
      {0x93, "STACK_GLOBAL"},
      {0x94, "MEMOIZE"},
      {0x95, "FRAME"},
      {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"},
      {0x98, "READONLY_BUFFER"},
  };
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return row.name;
  }
  return {};
}

bool is_weights_only_safe(std::string_view module, std::string_view name) {
  using Name = std::pair<std::string_view, std::string_view>;
  constexpr auto kNames = std::to_array<Name>({
      {"collections", "OrderedDict"},
      {"collections", "Counter"},
      {"torch.nn.parameter", "Parameter"},
      {"torch.serialization", "_get_layout"},
      {"torch", "Size"},
      {"torch", "Tensor"},
      {"torch", "device"},
      {"torch.storage", "UntypedStorage"},
      {"torch.storage", "TypedStorage"},
      {"torch._tensor", "_rebuild_from_type_v2"},
      {"_codecs", "encode"},
      {"builtins", "bytearray"},
      {"builtins", "set"},
      {"builtins", "complex"},
      {"__builtin__", "bytearray"},
      {"__builtin__", "set"},
      {"__builtin__", "complex"},
  });
  if (std::find(kNames.begin(), kNames.end(), Name(module, name)) != kNames.end()) return true;
  if (module == "torch._utils") return name.starts_with("_rebuild_");
  const bool is_storage = name.ends_with("Storage") || name.ends_with("Tensor");
  if (module == "torch" || module.starts_with("torch.cuda") || module == "torch.sparse")
    return is_storage || dtype_from_torch(name).has_value();
  return false;
}

}  // namespace shw
