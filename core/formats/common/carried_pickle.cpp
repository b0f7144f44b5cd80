#include "core/formats/common/carried_pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/utf8.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/formats/pickle/weights_only.h"

namespace shw {
namespace {

constexpr int kDeepestCarried = 150;
// Shorter texts are cheaper than a memo reference.
constexpr std::size_t kShortText = 64;

void append_number(std::string& out, std::uint32_t value) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  out.append(bytes, sizeof(value));
}
std::uint32_t number_at(std::string_view opcodes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, opcodes.data() + at, sizeof(value));
  return value;
}

std::vector<NodeId> children_of_node(const PickleTree& tree, NodeId node) {
  auto items = tree.items(node);
  std::vector<NodeId> parts(items.begin(), items.end());
  for (NodeId part :
       {tree.callable(node), tree.arguments(node), tree.contents(node), tree.state(node)}) {
    if (part != NodeId::kAbsent) parts.push_back(part);
  }
  return parts;
}

bool needs_memo_entry(const PickleTree& tree, NodeId node) {
  switch (tree.kind(node)) {
    case NodeKind::kTuple:
      return !tree.items(node).empty();
    case NodeKind::kList:
    case NodeKind::kDict:
    case NodeKind::kSet:
    case NodeKind::kReduce:
    case NodeKind::kObject:
      return true;
    case NodeKind::kString:
      return tree.text(node)->size() > kShortText;
    case NodeKind::kBytes:
      return tree.bytes(node)->size() > kShortText;
    default:
      return false;
  }
}

struct ReachableNodes {
  std::vector<NodeId> nodes;
  std::unordered_set<NodeId> twice;
};

ReachableNodes reachable_nodes(const PickleTree& tree, NodeId value) {
  ReachableNodes out;
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> open{value};
  while (!open.empty()) {
    NodeId node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) {
      if (needs_memo_entry(tree, node)) out.twice.insert(node);
      continue;
    }
    out.nodes.push_back(node);
    for (NodeId part : children_of_node(tree, node)) open.push_back(part);
  }
  return out;
}

class CarriedEncoder {
 public:
  CarriedEncoder(const PickleTree& tree, BytesView pickle, std::uint64_t base, std::size_t budget,
                 std::unordered_set<NodeId> twice)
      : tree_(tree), pickle_(pickle), base_(base), budget_(budget), twice_(std::move(twice)) {}

  Result<CarriedPickle> run(NodeId value) {
    if (put(value, 0)) return std::move(out_);
    return fail(ErrorKind::kUnsupported, why_.empty() ? "holds data that cannot be copied" : why_);
  }

 private:
  bool refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }
  void raw(std::string_view opcodes) { out_.opcodes.append(opcodes); }
  void number(NodeId node) {
    if (!twice_.contains(node)) return;
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    numbers_.emplace(node, next);
    out_.opcodes.push_back('r');
    append_number(out_.opcodes, next);
  }
  // The opcode that created the node.
  std::uint8_t opcode_of(NodeId node) const {
    return static_cast<std::uint8_t>(pickle_[tree_.at(node) - base_]);
  }

  bool put(NodeId node, int depth) {
    if (depth > kDeepestCarried) return refuse("is nested too deep to be copied");
    if (out_.opcodes.size() > budget_) return refuse("is too large to be copied");
    if (auto known = numbers_.find(node); known != numbers_.end()) {
      out_.opcodes.push_back('j');
      append_number(out_.opcodes, known->second);
      return true;
    }
    // Refuses a value that contains itself through a tuple or a call: Python must create the inner
    // object first, and this encoder cannot.
    if (!open_.insert(node).second) return refuse("contains itself in a way that cannot be copied");
    const bool good = encode_container(node, depth);
    open_.erase(node);
    return good;
  }

  bool encode_container(NodeId node, int depth) {
    switch (tree_.kind(node)) {
      case NodeKind::kList:
        raw("]");
        number(node);
        open_.erase(node);
        return all(tree_.items(node), 'e', depth);
      case NodeKind::kDict:
        raw("}");
        number(node);
        open_.erase(node);
        return all(tree_.items(node), 'u', depth);
      case NodeKind::kTuple:
        return all(tree_.items(node), 't', depth) && (number(node), true);
      case NodeKind::kSet:
        return set(node, depth) && (number(node), true);
      case NodeKind::kString:
        return text(node);
      case NodeKind::kBytes:
        return bytes(node);
      case NodeKind::kGlobal:
        return global(node);
      case NodeKind::kPersistentId:
        return storage(node, depth);
      case NodeKind::kReduce:
      case NodeKind::kObject:
        return call(node, depth);
      default:
        return plain(node);
    }
  }

  bool plain(NodeId node) {
    auto opcodes = plain_pickle(tree_, node, budget_);
    if (!opcodes) return refuse("holds data that cannot be written again");
    raw(*opcodes);
    return true;
  }

  bool all(std::span<const NodeId> items, char closing, int depth) {
    raw("(");
    for (NodeId item : items) {
      if (!put(item, depth + 1)) return false;
    }
    out_.opcodes.push_back(closing);
    return true;
  }

  // Encodes sets as Python does in protocol 2, which has no opcodes for them.
  bool set(NodeId node, int depth) {
    constexpr std::uint8_t kFrozenSet = 0x91;
    raw(opcode_of(node) == kFrozenSet ? "c__builtin__\nfrozenset\n(](" : "c__builtin__\nset\n(](");
    for (NodeId item : tree_.items(node)) {
      if (!put(item, depth + 1)) return false;
    }
    raw("etR");
    return true;
  }

  // Accepts lone surrogates, which Python's unpickler allows although they are not UTF-8.
  bool text(NodeId node) {
    const std::string_view value = *tree_.text(node);
    if (!is_utf8_or_surrogates(value)) return refuse("holds text that Python cannot read");
    if (value.size() > budget_) return refuse("is too large to be copied");
    raw("X");
    append_number(out_.opcodes, static_cast<std::uint32_t>(value.size()));
    raw(value);
    number(node);
    return true;
  }

  bool bytes(NodeId node) {
    constexpr std::uint8_t kByteArray = 0x96;
    const bool is_array = opcode_of(node) == kByteArray;
    if (is_array) raw("c__builtin__\nbytearray\n(");
    if (!plain(node)) return false;
    if (is_array) raw("tR");
    number(node);
    return true;
  }

  bool global(NodeId node) {
    const PickleGlobal& named = *tree_.global(node);
    const std::string full = named.module + "." + named.name;
    if (classify_pickled_name(named.module, named.name) != NameKind::kKnown)
      return refuse("holds more than known data: " + full);
    raw("c" + named.module + "\n" + named.name + "\n");
    return true;
  }

  bool storage(NodeId node, int depth) {
    auto key = storage_key(tree_, node);
    if (!key) return refuse("refers to a storage in a form that torch does not write");
    auto [found, added] = storages_.try_emplace(
        std::string(*key), static_cast<std::uint32_t>(out_.storage_keys.size()));
    if (added) out_.storage_keys.emplace_back(*key);
    // The storage id of the format before zip has a sixth item, None, which is dropped.
    const auto id = tree_.items(tree_.items(node)[0]).first(5);
    raw("(");
    for (std::size_t i = 0; i < id.size(); ++i) {
      if (i != 2 && !put(id[i], depth + 1)) return false;
      if (i != 2) continue;
      out_.opcodes.push_back(kStorageHole);
      append_number(out_.opcodes, found->second);
    }
    raw("tQ");
    return true;
  }

  // torch.Size and bytes have one form, however they were created.
  bool has_plain_form(NodeId node) const {
    const NodeId made_of = tree_.callable(node);
    return tree_.is_global(made_of, "torch", "Size") ||
           tree_.is_global(made_of, "_codecs", "encode") ||
           tree_.is_global(made_of, "__builtin__", "bytes");
  }

  bool call(NodeId node, int depth) {
    constexpr std::uint8_t kNewObject = 0x81;
    if (tree_.kind(node) == NodeKind::kObject && opcode_of(node) != kNewObject)
      return refuse("holds an object in a form that torch.save does not write");
    if (tree_.kind(tree_.callable(node)) != NodeKind::kGlobal)
      return refuse("holds the result of a function call");
    if (has_plain_form(node)) {
      if (auto opcodes = plain_pickle(tree_, node, budget_)) {
        raw(*opcodes);
        number(node);
        return true;
      }
    }
    if (!put(tree_.callable(node), depth + 1) || !put(tree_.arguments(node), depth + 1))
      return false;
    raw(tree_.kind(node) == NodeKind::kObject ? "\x81" : "R");
    number(node);
    if (twice_.contains(node)) open_.erase(node);
    return contents(node, depth) && state(node, depth);
  }
  bool contents(NodeId node, int depth) {
    const NodeId held = tree_.contents(node);
    // An object with an empty item list is written like an object without items.
    if (tree_.kind(held) != NodeKind::kAbsent && tree_.items(held).empty()) return true;
    switch (tree_.kind(held)) {
      case NodeKind::kAbsent:
        return true;
      case NodeKind::kList:
        return all(tree_.items(held), 'e', depth);
      case NodeKind::kDict:
        return all(tree_.items(held), 'u', depth);
      default:
        return refuse("holds an object whose state cannot be copied");
    }
  }
  bool state(NodeId node, int depth) {
    if (tree_.state(node) == NodeId::kAbsent) return true;
    if (!put(tree_.state(node), depth + 1)) return false;
    raw("b");
    return true;
  }

  const PickleTree& tree_;
  BytesView pickle_;
  std::uint64_t base_;
  std::size_t budget_;
  std::unordered_set<NodeId> twice_, open_;
  std::unordered_map<NodeId, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::uint32_t> storages_;
  std::string why_;
  CarriedPickle out_;
};

// Length of an opcode that we write, with its argument; nullopt if truncated or
// unknown.
std::optional<std::size_t> length_of_opcode(std::string_view opcodes) {
  auto counted = [&](std::size_t width) -> std::size_t {
    if (opcodes.size() <= width) return SIZE_MAX;
    return 1 + width + (width == 1 ? static_cast<std::uint8_t>(opcodes[1]) : number_at(opcodes, 1));
  };
  auto lines = [&] {
    const std::size_t first = opcodes.find('\n');
    const std::size_t second = first == opcodes.npos ? first : opcodes.find('\n', first + 1);
    return second == opcodes.npos ? SIZE_MAX : second + 1;
  };
  std::size_t length = 1;
  switch (opcodes.front()) {
    case 'G':
      length = 9;
      break;
    case 'J':
    case 'j':
    case 'r':
    case kStorageHole:
      length = 5;
      break;
    case 'M':
      length = 3;
      break;
    case 'K':
    case 'h':
    case 'q':
      length = 2;
      break;
    case 'X':
      length = counted(4);
      break;
    case 'U':
    case '\x8a':
      length = counted(1);
      break;
    case 'c':
      length = lines();
      break;
    default:
      if (!kIsWeightsOnly[static_cast<std::uint8_t>(opcodes.front())]) return std::nullopt;
  }
  return length > opcodes.size() ? std::nullopt : std::optional(length);
}

}  // namespace

Result<CarriedPickle> carried_pickle(const PickleTree& tree, NodeId value, BytesView pickle,
                                     std::uint64_t base, std::size_t budget) {
  ReachableNodes reached = reachable_nodes(tree, value);
  return CarriedEncoder(tree, pickle, base, budget, std::move(reached.twice)).run(value);
}

std::vector<NodeId> reachable_nodes_in_order(const PickleTree& tree, NodeId value) {
  return reachable_nodes(tree, value).nodes;
}

bool contains_repeated_object(const PickleTree& tree, NodeId value) {
  return !reachable_nodes(tree, value).twice.empty();
}

Result<RenumberedOpcodes> renumber_memo_entries(std::string_view opcodes, std::uint32_t first_memo,
                                                std::uint32_t first_storage) {
  RenumberedOpcodes out;
  while (!opcodes.empty()) {
    auto length = length_of_opcode(opcodes);
    if (!length) return fail(ErrorKind::kUsage, "a value uses unsupported opcodes");
    const char opcode = opcodes.front();
    if (opcode == kStorageHole) {
      const std::string key = std::to_string(first_storage + number_at(opcodes, 1));
      out.opcodes.push_back('X');
      append_number(out.opcodes, static_cast<std::uint32_t>(key.size()));
      out.opcodes += key;
    } else if (opcode == 'r' || opcode == 'j') {
      const std::uint32_t number = number_at(opcodes, 1);
      if (opcode == 'r') out.memo = std::max(out.memo, number + 1);
      out.opcodes.push_back(opcode);
      append_number(out.opcodes, first_memo + number);
    } else {
      out.opcodes.append(opcodes.substr(0, *length));
    }
    opcodes.remove_prefix(*length);
  }
  return out;
}

}  // namespace shw
