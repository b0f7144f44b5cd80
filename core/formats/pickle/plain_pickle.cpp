#include "core/formats/pickle/plain_pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/base/utf8.h"
#include "core/tensor/dtype.h"

namespace shw {
namespace {

constexpr int kDeepestPlain = 100;

template <class T>
void append_little(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

std::string latin1_as_utf8(BytesView bytes) {
  std::string text;
  for (std::byte byte : bytes) {
    auto code = static_cast<unsigned char>(byte);
    if (code >= 0x80) text.push_back(static_cast<char>(0xC0 | code >> 6));
    text.push_back(static_cast<char>(code < 0x80 ? code : 0x80 | (code & 0x3F)));
  }
  return text;
}

// UTF-8 with characters up to U+00FF only, as `encode` requires.
bool is_latin1(std::string_view utf8) {
  return is_utf8(utf8) && std::all_of(utf8.begin(), utf8.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0xC4; });
}

struct PickleEncoder {
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
    // Python rejects other text when unpickling; "str" of Python 2 may hold any bytes.
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

  // Protocol 2 has no opcode for bytes, and torch.load with weights_only accepts no later protocol:
  // like Python, writes them as Latin-1 text.
  bool encoded(std::string_view utf8) {
    if (utf8.size() > budget) return false;
    out.append("c_codecs\nencode\n(");
    if (!text(utf8)) return false;
    return text("latin1") && (out.append("tR"), true);
  }
  bool coded_bytes(NodeId id) {
    if (tree.state(id) != NodeId::kAbsent || tree.contents(id) != NodeId::kAbsent) return false;
    auto arguments = tree.items(tree.arguments(id));
    if (arguments.empty() && tree.is_global(tree.callable(id), "__builtin__", "bytes"))
      return encoded("");
    bool is_coded = tree.is_global(tree.callable(id), "_codecs", "encode") &&
                    arguments.size() == 2 && tree.text(arguments[1]) == "latin1";
    auto coded = is_coded ? tree.text(arguments[0]) : std::nullopt;
    return coded && is_latin1(*coded) && encoded(*coded);
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
    if (depth > kDeepestPlain || out.size() > budget) return false;
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
      case NodeKind::kBytes:
        return encoded(latin1_as_utf8(*tree.bytes(id)));
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
        return size(id, depth) || coded_bytes(id);
      default:
        return false;
    }
  }
};

}  // namespace

std::optional<std::string> plain_pickle(const PickleTree& tree, NodeId value, std::size_t budget) {
  PickleEncoder encoder{tree, budget};
  if (!encoder.value(value, 0) || encoder.out.size() > budget) return std::nullopt;
  return std::move(encoder.out);
}

std::string non_plain_value_reason(const PickleTree& tree, NodeId value) {
  // Breadth-first with a limit, because graphs may be cyclic.
  constexpr std::size_t kMaxLookedAt = 10'000;
  std::vector<NodeId> queue{value};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    NodeId node = queue[i];
    const PickleGlobal* made = tree.global(tree.callable(node));
    if (made == nullptr) made = tree.global(node);
    switch (tree.kind(node)) {
      case NodeKind::kPersistentId:
        return "a tensor's storage";
      case NodeKind::kSet:
        return "a set";
      case NodeKind::kGlobal:
      case NodeKind::kObject:
      case NodeKind::kReduce:
        if (plain_pickle(tree, node, 1 << 16)) break;
        return made == nullptr ? "the result of a function call" : made->module + "." + made->name;
      default:
        break;
    }
    for (NodeId item : tree.items(node)) {
      if (queue.size() < kMaxLookedAt) queue.push_back(item);
    }
  }
  return "data that cannot be written again";
}

}  // namespace shw
