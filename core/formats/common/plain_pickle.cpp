#include "core/formats/common/plain_pickle.h"

#include <bit>
#include <cstring>

#include "core/tensor/dtype.h"

namespace shw {
namespace {

constexpr int kDeepest = 100;

template <class T>
void append_little(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// Python refuses text that is not UTF-8 while it unpickles; "str" of Python 2 may be anything.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i]);
    std::size_t more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : 3;
    bool valid = lead < 0x80 || (lead >= 0xC2 && lead <= 0xF4);
    if (!valid || more >= text.size() - i) return false;
    std::uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += more + 1;
  }
  return true;
}

struct Encoder {
  const PickleTree& tree;
  std::size_t budget;
  std::string out = {};

  // Items between a mark and `closing`.
  bool all(std::span<const NodeId> items, std::string_view before, char closing, int depth) {
    out.append(before);
    for (NodeId item : items) {
      if (!value(item, depth + 1)) return false;
    }
    out.push_back(closing);
    return true;
  }

  bool text(std::string_view value) {
    if (!is_utf8(value) || value.size() > budget) return false;
    out.push_back('X');
    append_little(out, static_cast<std::uint32_t>(value.size()));
    out.append(value);
    return true;
  }

  bool number(BytesView twos_complement) {
    if (twos_complement.size() > 255) return false;
    out.push_back('\x8a');
    out.push_back(static_cast<char>(twos_complement.size()));
    for (std::byte byte : twos_complement) out.push_back(static_cast<char>(byte));
    return true;
  }

  bool real(double value) {
    out.push_back('G');
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(bits >> shift));
    return true;
  }

  bool size(NodeId id, int depth) {
    auto arguments = tree.items(tree.arguments(id));
    bool is_size = tree.is_global(tree.callable(id), "torch", "Size") && arguments.size() == 1 &&
                   tree.state(id) == NodeId::kAbsent && tree.contents(id) == NodeId::kAbsent;
    if (!is_size || !is_list_of_numbers(arguments[0])) return false;
    out.append("ctorch\nSize\n");
    if (!value(arguments[0], depth + 1)) return false;
    out.append("\x85R");
    return true;
  }
  bool is_list_of_numbers(NodeId id) const {
    if (tree.kind(id) != NodeKind::kTuple && tree.kind(id) != NodeKind::kList) return false;
    for (NodeId item : tree.items(id)) {
      if (tree.kind(item) != NodeKind::kInt) return false;
    }
    return true;
  }

  bool dtype(NodeId id) {
    const PickleGlobal* global = tree.global(id);
    if (global->module != "torch" || !dtype_from_torch(global->name)) return false;
    out.append("ctorch\n").append(global->name).push_back('\n');
    return true;
  }

  bool value(NodeId id, int depth) {
    if (depth > kDeepest || out.size() > budget) return false;
    switch (tree.kind(id)) {
      case NodeKind::kNone:
        out.push_back('N');
        return true;
      case NodeKind::kBool:
        out.push_back(tree.integer(id) != 0 ? '\x88' : '\x89');
        return true;
      case NodeKind::kInt:
        out.append("\x8a\x08");
        append_little(out, *tree.integer(id));
        return true;
      case NodeKind::kBigInt:
        return number(*tree.bytes(id));
      case NodeKind::kFloat:
        return real(*tree.real(id));
      case NodeKind::kBytes: {
        BytesView bytes = *tree.bytes(id);
        if (bytes.size() > budget) return false;
        out.push_back('B');
        append_little(out, static_cast<std::uint32_t>(bytes.size()));
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return true;
      }
      case NodeKind::kString:
        return text(*tree.text(id));
      case NodeKind::kTuple:
        return all(tree.items(id), "(", 't', depth);
      case NodeKind::kList:
        return all(tree.items(id), "](", 'e', depth);
      case NodeKind::kDict:
        return all(tree.items(id), "}(", 'u', depth);
      case NodeKind::kGlobal:
        return dtype(id);
      case NodeKind::kReduce:
        return size(id, depth);
      default:
        return false;
    }
  }
};

}  // namespace

std::optional<std::string> plain_pickle(const PickleTree& tree, NodeId value, std::size_t budget) {
  Encoder encoder{tree, budget};
  if (!encoder.value(value, 0) || encoder.out.size() > budget) return std::nullopt;
  return std::move(encoder.out);
}

}  // namespace shw
