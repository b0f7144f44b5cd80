// What a pickle says, without running it: what Python would import or call is a node of a tree.
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
  kAbsent,  // of NodeId::kAbsent, so that chains of look-ups need no tests between
  kNone,
  kBool,
  kInt,
  kBigInt,  // does not fit 64 bits
  kFloat,
  kBytes,   // bytes and bytearray
  kString,  // as it lies in the file: UTF-8, not checked
  kTuple,
  kList,
  kDict,
  kSet,  // set and frozenset
  kGlobal,
  kObject,        // class(*arguments), then state: NEWOBJ, INST, OBJ
  kReduce,        // callable(*arguments), then state: REDUCE
  kPersistentId,  // one item: the id
  kShortcut,      // stands for rows that a reader has already taken; decode_pickle never makes it
};

// A name that the pickle asks Python to import. `called_at`: where it is first called, if it is.
struct PickleGlobal {
  std::string module;
  std::string name;
  std::uint64_t at = 0;
  std::optional<std::uint64_t> called_at = std::nullopt;
  // It is getattr and looks up members of enumerations (pickle_calls.h), which is no call.
  bool finds_members = false;
};

struct PickleLimits {
  std::uint32_t nodes = 1u << 28;
  std::uint32_t depth = 1000;
  std::uint32_t globals = 1u << 16;
};

// The tree is a graph: nodes may be shared, and a list may hold itself. Whoever walks it keeps its
// own limit. Strings and bytes are views of the bytes that were decoded, which must outlive it.
class PickleTree {
 public:
  NodeId root() const { return root_; }
  // Where the pickle ends: behind STOP, counted from the first byte given.
  std::uint64_t end() const { return end_; }
  int protocol() const { return protocol_; }
  std::size_t node_count() const { return nodes_.size(); }

  NodeKind kind(NodeId id) const {
    if (static_cast<std::uint32_t>(id) >= kFirstShortcut)
      return id == NodeId::kAbsent ? NodeKind::kAbsent : NodeKind::kShortcut;
    return nodes_[static_cast<std::uint32_t>(id)].kind;
  }
  // The opcode that made it: absolute in its file.
  std::uint64_t at(NodeId id) const { return is_plain(id) ? node(id).at : 0; }

  std::optional<std::int64_t> integer(NodeId id) const;   // of kInt, and of kBool
  std::optional<double> real(NodeId id) const;            // of kFloat
  std::optional<std::string_view> text(NodeId id) const;  // of kString
  // Of kBytes; of kBigInt its two's complement, little-endian.
  std::optional<BytesView> bytes(NodeId id) const;

  // Elements of a tuple, list or set; key, value, key, value of a dict; the id of a kPersistentId.
  // Empty for all others.
  std::span<const NodeId> items(NodeId id) const;
  // The value of that key in a dict, the last one where it is there twice, as in Python.
  NodeId find(NodeId dict, std::string_view key) const;

  // Of kGlobal.
  const PickleGlobal* global(NodeId id) const;
  bool is_global(NodeId id, std::string_view module, std::string_view name) const;

  // Of kObject and kReduce. `callable` is the class or function, `arguments` a tuple; `state` what
  // BUILD gave; `contents` a dict or list of what was put in item by item (OrderedDict, a subclass
  // of list), or NEWOBJ_EX's keyword arguments.
  NodeId callable(NodeId id) const { return part(id, 0); }
  NodeId arguments(NodeId id) const { return part(id, 1); }
  NodeId state(NodeId id) const { return part(id, 2); }
  NodeId contents(NodeId id) const { return part(id, 3); }
  // The attribute dict of an object: its state, or the first half of a (dict, slots) pair.
  NodeId attributes(NodeId id) const;
  NodeId attribute(NodeId id, std::string_view name) const { return find(attributes(id), name); }

  // Every name that would be imported, in order of appearance.
  std::span<const PickleGlobal> globals() const { return globals_; }
  // Where something that is no plain name is called: the result of a call, a value.
  std::optional<std::uint64_t> odd_call_at() const { return odd_call_at_; }
  // Where a class is named by the id of a module, as the form before zip does; it is the class
  // here.
  std::optional<std::uint64_t> module_id_at() const { return module_id_at_; }
  // The first thing that was read on over and that Python's unpickler stops at.
  struct Refused {
    std::uint64_t at;
    const char* what;
  };
  const std::optional<Refused>& refused() const { return refused_; }
  // The first opcode that torch's own unpickler does not read (weights_only.h), where a pickle is
  // decoded without a shortcut.
  struct OddOpcode {
    std::uint64_t at;
    std::uint8_t opcode;
  };
  const std::optional<OddOpcode>& beyond_weights_only() const { return beyond_weights_only_; }

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
      std::uint64_t first;  // child, or global
    };
    Node() : integer(0) {}
  };

  static bool is_plain(NodeId id) { return static_cast<std::uint32_t>(id) < kFirstShortcut; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::uint32_t>(id)]; }
  NodeId part(NodeId id, std::size_t which) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> children_;
  std::deque<std::string> texts_;  // strings that had escapes
  std::vector<PickleGlobal> globals_;
  std::optional<std::uint64_t> odd_call_at_, module_id_at_;
  std::optional<Refused> refused_;
  std::optional<OddOpcode> beyond_weights_only_;
  NodeId root_ = NodeId::kAbsent;
  std::uint64_t end_ = 0;
  int protocol_ = 0;
};

// raw-unicode-escape: "\u00e9" and "\U0001F600" become UTF-8, all else stays.
// `is_cut`: of one the digits are missing, or too large.
std::string unescape_unicode(std::string_view text, bool* is_cut = nullptr);

}  // namespace shw
