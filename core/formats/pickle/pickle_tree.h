// The contents of a pickle as a tree, without executing it: imports and calls are nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

enum class NodeId : std::uint32_t { kAbsent = 0xFFFFFFFFu };

enum class NodeKind : std::uint8_t {
  kAbsent,  // kind of NodeId::kAbsent, so that look-ups can be chained without tests
  kNone,
  kBool,
  kInt,
  kBigInt,  // does not fit 64 bits
  kFloat,
  kBytes,   // bytes and bytearray
  kString,  // bytes of the file, not checked to be UTF-8
  kTuple,
  kList,
  kDict,
  kSet,  // set and frozenset
  kGlobal,
  kObject,        // class(*arguments), then state: NEWOBJ, INST, OBJ
  kReduce,        // callable(*arguments), then state: REDUCE
  kPersistentId,  // one item: the id
  kShortcut,      // stands for rows that a shortcut has parsed; decode_pickle never creates it
};

// A name that the pickle asks Python to import. `called_at`: byte of its first call, if any.
struct PickleGlobal {
  std::string module;
  std::string name;
  std::uint64_t at = 0;
  std::optional<std::uint64_t> called_at = std::nullopt;
  // True if the name is getattr used to look up enumeration members (pickle_calls.h), not a call.
  bool is_enum_member_lookup = false;
};

struct PickleLimits {
  std::uint32_t nodes = 1u << 28;
  std::uint32_t depth = 1000;
  std::uint32_t globals = 1u << 16;
};

// The tree is a graph: nodes may be shared, and a list may contain itself, so code that walks it
// needs its own limit. Strings and bytes are views of the decoded bytes, which must outlive it.
class PickleTree {
 public:
  NodeId root() const { return root_; }
  // Number of bytes of the pickle, including STOP.
  std::uint64_t end() const { return end_; }
  int protocol() const { return protocol_; }
  std::size_t node_count() const { return nodes_.size(); }

  NodeKind kind(NodeId id) const {
    if (static_cast<std::uint32_t>(id) >= kFirstShortcut)
      return id == NodeId::kAbsent ? NodeKind::kAbsent : NodeKind::kShortcut;
    return nodes_[static_cast<std::uint32_t>(id)].kind;
  }
  // Byte offset in the file of the opcode that created the node.
  std::uint64_t at(NodeId id) const { return is_plain(id) ? node(id).at : 0; }

  std::optional<std::int64_t> integer(NodeId id) const;   // for kInt and kBool
  std::optional<double> real(NodeId id) const;            // for kFloat
  std::optional<std::string_view> text(NodeId id) const;  // for kString
  // For kBytes the bytes; for kBigInt its two's complement, little-endian.
  std::optional<BytesView> bytes(NodeId id) const;

  // Elements of a tuple, list or set; key, value, key, value of a dict; the id of a kPersistentId.
  // Empty for other kinds.
  std::span<const NodeId> items(NodeId id) const;
  // The value of a key in a dict; for duplicates the last one, as in Python.
  NodeId find(NodeId dict, std::string_view key) const;

  // The imported name of a kGlobal node; null for other kinds.
  const PickleGlobal* global(NodeId id) const;
  bool is_global(NodeId id, std::string_view module, std::string_view name) const;

  // Parts of a kObject or kReduce node: `callable` is the class or function, `arguments` a tuple,
  // `state` the argument of BUILD, `contents` a dict or list of items added one by one
  // (OrderedDict, a subclass of list), or NEWOBJ_EX's keyword arguments.
  NodeId callable(NodeId id) const { return part(id, 0); }
  NodeId arguments(NodeId id) const { return part(id, 1); }
  NodeId state(NodeId id) const { return part(id, 2); }
  NodeId contents(NodeId id) const { return part(id, 3); }
  // The attribute dict of an object: its state, or the first half of a (dict, slots) pair.
  NodeId attributes(NodeId id) const;
  NodeId attribute(NodeId id, std::string_view name) const { return find(attributes(id), name); }

  // All imported names, in order of appearance.
  std::span<const PickleGlobal> globals() const { return globals_; }
  // Byte of the first call of something other than a name: a call's result or a value.
  std::optional<std::uint64_t> unusual_call_at() const { return unusual_call_at_; }
  // Byte of the first class that is named by a module id, as in the format before zip. The tree has
  // the class at this place.
  std::optional<std::uint64_t> module_id_at() const { return module_id_at_; }
  // The first content at which Python's unpickler stops but this parser continues.
  struct Refused {
    std::uint64_t at;
    const char* what;
  };
  const std::optional<Refused>& refused() const { return refused_; }
  // The first opcode that torch's own unpickler (weights_only.h) rejects; only known if the pickle
  // was decoded without a shortcut.
  struct UnusualOpcode {
    std::uint64_t at;
    std::uint8_t opcode;
  };
  const std::optional<UnusualOpcode>& weights_only_violation() const {
    return first_non_weights_only_;
  }

 private:
  template <class Shortcut>
  friend class PickleMachine;
  static constexpr std::uint32_t kFirstShortcut = 0x80000000u;

  struct Node {
    NodeKind kind = NodeKind::kNone;
    std::uint16_t depth = 0;
    std::uint32_t count = 0;     // of children or bytes
    std::uint32_t capacity = 0;  // of children
    std::uint64_t at = 0;
    union {
      std::int64_t integer;
      double real;
      const char* text;
      std::uint64_t first;  // index of the first child, or of the global
    };
    Node() : integer(0) {}
  };

  static bool is_plain(NodeId id) { return static_cast<std::uint32_t>(id) < kFirstShortcut; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::uint32_t>(id)]; }
  NodeId part(NodeId id, std::size_t which) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> children_;
  std::deque<std::string> texts_;  // unescaped strings
  std::vector<PickleGlobal> globals_;
  std::optional<std::uint64_t> unusual_call_at_, module_id_at_;
  std::optional<Refused> refused_;
  std::optional<UnusualOpcode> first_non_weights_only_;
  NodeId root_ = NodeId::kAbsent;
  std::uint64_t end_ = 0;
  int protocol_ = 0;
};

// Decodes raw-unicode-escape: "\u00e9" and "\U0001F600" become UTF-8, all else stays. `is_cut`: set
// if an escape has too few digits or a value out of range.
std::string unescape_unicode(std::string_view text, bool* is_cut = nullptr);

}  // namespace shw
