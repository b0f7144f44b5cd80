// The machine behind decode_pickle: one pass over the opcodes, a stack, a memo, no recursion. A
// reader of large files passes a Shortcut, which may parse whole entries at once (dcp_shortcut.h).
// Later opcodes may refer to values inside them: `recall` then creates the nodes. If that is not
// possible exactly, the shortcut gives up and the whole file is read again without it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/formats/pickle/pickle_calls.h"
#include "core/formats/pickle/pickle_memo.h"
#include "core/formats/pickle/pickle_tree.h"
#include "core/formats/pickle/weights_only.h"

namespace shw {

struct NoShortcut {
  static constexpr bool kEnabled = false;
};

template <class Shortcut>
class PickleMachine {
 public:
  PickleMachine(BytesView bytes, const std::string& file, std::uint64_t base,
                const PickleLimits& limits, Shortcut& shortcut)
      : begin_(reinterpret_cast<const std::uint8_t*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()),
        frame_end_(end_),
        file_(file),
        base_(base),
        limits_(limits),
        shortcut_(shortcut) {
    // Values of real pickles take at least three bytes. A hostile file of one-byte dicts would need
    // forty times its size in nodes.
    limits_.nodes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(limits_.nodes, kNodesOfAny + bytes.size() / 2));
    // Reserves a node per byte: untouched pages cost nothing, and a growing vector would briefly
    // need three times the memory.
    tree_.nodes_.reserve(std::min<std::size_t>(bytes.size(), kMaxReserved));
  }

  Status run();
  PickleTree take() {
    tree_.end_ = offset(at_) - base_;
    return std::move(tree_);
  }

 private:
  friend Shortcut;
  static constexpr std::uint64_t kNodesOfAny = std::uint64_t{1} << 21;
  static constexpr std::size_t kMaxReserved = std::size_t{1} << 24;  // 512 MiB of addresses
  using Node = PickleTree::Node;

  // --- errors -----------------------------------------------------------------------------------

  std::uint64_t offset(const std::uint8_t* p) const {
    return base_ + static_cast<std::uint64_t>(p - begin_);
  }
  bool refuse(ErrorKind kind, const std::string& message) {
    if (!error_) error_ = Error{kind, message, {file_, offset(opcode_)}};
    return false;
  }
  bool damaged(const std::string& what) {
    return refuse(ErrorKind::kDamaged, "byte " + human_count(offset(opcode_)) + ": " + what);
  }
  bool cut_off(const std::string& what) {
    return refuse(ErrorKind::kDamaged,
                  "truncated at byte " + human_count(offset(opcode_)) + ": " + what);
  }

  // Records that Python stops here; the rest of the file is still parsed.
  void record_first_refused_opcode(const char* what) {
    if (!tree_.refused_) tree_.refused_ = PickleTree::Refused{offset(opcode_), what};
  }

  // Picklers end a frame at the end of an opcode. Python reads a frame at once: an opcode that
  // crosses its end gets wrong bytes or fails.
  bool begin_frame(std::uint64_t length) {
    if (length > left())
      return cut_off("a frame of " + human_count(length) + " bytes was announced, " +
                     human_count(left()) + " are left");
    if (is_framed_ && opcode_ < frame_end_)
      record_first_refused_opcode("a frame begins inside another one");
    frame_end_ = at_ + length;
    is_framed_ = true;
    return true;
  }
  void leave_frame() {
    if (is_framed_ && opcode_ < frame_end_)
      record_first_refused_opcode("a frame ends inside an opcode");
    frame_end_ = end_;
    is_framed_ = false;
  }

  void note_opcode(std::uint8_t opcode) {
    if constexpr (!Shortcut::kEnabled) {
      if (!kIsWeightsOnly[opcode] && !tree_.first_non_weights_only_)
        tree_.first_non_weights_only_ = PickleTree::UnusualOpcode{offset(opcode_), opcode};
    }
  }

  // --- bytes ------------------------------------------------------------------------------------

  std::uint64_t left() const { return static_cast<std::uint64_t>(end_ - at_); }

  template <class T>
  bool number(T& value) {
    if (left() < sizeof(T))
      return cut_off("a number of " + std::to_string(sizeof(T)) + " bytes was announced, " +
                     std::to_string(left()) + " are left");
    std::memcpy(&value, at_, sizeof(T));  // all machines we run on are little-endian
    at_ += sizeof(T);
    return true;
  }
  // A length of `Width`, then that many bytes.
  template <class Width>
  bool counted(std::string_view what, std::string_view& out) {
    Width length = 0;
    return number(length) && consume_bytes(what, static_cast<std::uint64_t>(length), out);
  }
  bool consume_bytes(std::string_view what, std::uint64_t length, std::string_view& out) {
    if (length > left())
      return cut_off("a " + std::string(what) + " of " + human_count(length) +
                     " bytes was announced, " + human_count(left()) + " are left");
    if (length > std::numeric_limits<std::uint32_t>::max())
      return refuse(ErrorKind::kUnsupported, "a " + std::string(what) + " of " +
                                                 human_count(length) + " bytes at byte " +
                                                 human_count(offset(opcode_)));
    out = {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }
  bool line(std::string_view& out) {
    const void* found = at_ == end_ ? nullptr : std::memchr(at_, '\n', left());
    if (found == nullptr) return cut_off("a line has no end");
    const auto* stop = static_cast<const std::uint8_t*>(found);
    if (!consume_bytes("line", static_cast<std::uint64_t>(stop - at_), out)) return false;
    ++at_;
    if (out.ends_with('\r')) {
      out.remove_suffix(1);
      record_first_refused_opcode("a line ends in a carriage return");
    }
    return true;
  }

  // --- nodes ------------------------------------------------------------------------------------

  std::size_t global_index(NodeId id) { return node(id).first; }
  PickleGlobal& global_of(NodeId id) { return tree_.globals_[node(id).first]; }
  Node& node(NodeId id) { return tree_.nodes_[static_cast<std::uint32_t>(id)]; }

  NodeId make(NodeKind kind) {
    if (tree_.nodes_.size() >= std::min(limits_.nodes, PickleTree::kFirstShortcut)) {
      refuse(ErrorKind::kUnsupported,
             "more than " + human_count(limits_.nodes) + " values in one pickle");
      return NodeId::kAbsent;
    }
    Node made;
    made.kind = kind;
    made.at = offset(opcode_);
    tree_.nodes_.push_back(made);
    return NodeId{static_cast<std::uint32_t>(tree_.nodes_.size() - 1)};
  }
  bool push(NodeId id) {
    if (id == NodeId::kAbsent) return false;
    stack_.push_back(id);
    return true;
  }
  bool push_plain(NodeKind kind) { return push(make(kind)); }
  bool push_integer(std::int64_t value, NodeKind kind = NodeKind::kInt) {
    NodeId id = make(kind);
    if (id != NodeId::kAbsent) node(id).integer = value;
    return push(id);
  }
  bool push_real(double value) {
    NodeId id = make(NodeKind::kFloat);
    if (id != NodeId::kAbsent) node(id).real = value;
    return push(id);
  }
  bool push_text(NodeKind kind, std::string_view text) {
    NodeId id = make(kind);
    if (id == NodeId::kAbsent) return false;
    node(id).text = text.data();
    node(id).count = static_cast<std::uint32_t>(text.size());
    return push(id);
  }
  bool push_unicode(std::string_view text) {
    if (!is_utf8_or_surrogates(text)) record_first_refused_opcode("a string is not UTF-8");
    return push_text(NodeKind::kString, text);
  }
  // Python 2's str: pickle.load accepts only ASCII, torch.load UTF-8.
  bool push_python2_text(std::string_view text) {
    if (!is_utf8(text)) record_first_refused_opcode("a string is not UTF-8");
    return push_text(NodeKind::kString, text);
  }
  bool push_owned(NodeKind kind, std::string text) {
    return push_text(kind, tree_.texts_.emplace_back(std::move(text)));
  }
  // Decodes a two's complement, little-endian number of any length.
  bool push_long(std::string_view digits) {
    while (digits.size() > 8 &&
           digits.back() == ((*(digits.end() - 2) & 0x80) != 0 ? '\xff' : '\0'))
      digits.remove_suffix(1);
    if (digits.size() > 8) return push_text(NodeKind::kBigInt, digits);
    std::int64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return push_integer(value);
  }

  // Checks that keys are hashable. In a list of dict items every second node is a key (`step` 2).
  void note_keys(std::span<const NodeId> keys, std::size_t step) {
    for (std::size_t i = 0; i < keys.size(); i += step) {
      if (!is_hashable(tree_, keys[i]))
        record_first_refused_opcode("a dict key is a list, a dict or another unhashable value");
    }
  }

  bool update_depth(NodeId parent, NodeId child) {
    if (!PickleTree::is_plain(child)) return true;
    std::uint32_t depth = node(child).depth + 1u;
    if (depth <= node(parent).depth) return true;
    if (depth > limits_.depth)
      return refuse(ErrorKind::kUnsupported, "nested more than " + human_count(limits_.depth) +
                                                 " deep at byte " + human_count(offset(opcode_)));
    node(parent).depth = static_cast<std::uint16_t>(depth);
    return true;
  }
  bool add_children(NodeId parent, std::span<const NodeId> added) {
    auto& pool = tree_.children_;
    Node& target = node(parent);
    std::uint64_t count = target.count + added.size();
    if (count > std::numeric_limits<std::uint32_t>::max())
      return refuse(ErrorKind::kUnsupported, "more than 4,294,967,295 values in one container");
    if (count > target.capacity && target.first + target.capacity != pool.size()) {
      // Moves the items to the end with room to double, so that growing takes linear time in total.
      std::uint64_t first = pool.size();
      pool.resize(pool.size() + target.count);
      std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(target.first), target.count,
                  pool.begin() + static_cast<std::ptrdiff_t>(first));
      target.first = first;
    }
    if (count > target.capacity) {
      // Tuples never grow, and one batch of 1000 is often a whole list, so no room is reserved at
      // first.
      std::uint64_t room =
          target.count == 0 ? count : std::max<std::uint64_t>(count, 2 * target.count);
      room = std::min<std::uint64_t>(room, std::numeric_limits<std::uint32_t>::max());
      pool.resize(target.first + room, NodeId::kAbsent);
      target.capacity = static_cast<std::uint32_t>(room);
    }
    std::copy(added.begin(), added.end(),
              pool.begin() + static_cast<std::ptrdiff_t>(target.first + target.count));
    target.count = static_cast<std::uint32_t>(count);
    for (NodeId child : added) {
      if (!update_depth(parent, child)) return false;
    }
    return true;
  }
  NodeId make_group(NodeKind kind, std::span<const NodeId> members) {
    NodeId id = make(kind);
    if (id == NodeId::kAbsent) return id;
    node(id).first = tree_.children_.size();
    return add_children(id, members) ? id : NodeId::kAbsent;
  }
  NodeId make_call(NodeKind kind, NodeId callable, NodeId arguments) {
    note_call(kind, callable, arguments);
    const NodeId parts[] = {callable, arguments, NodeId::kAbsent, NodeId::kAbsent};
    return make_group(kind, parts);
  }
  void note_call(NodeKind call, NodeId callable, NodeId arguments) {
    std::uint64_t here = offset(opcode_);
    const NodeKind kind = tree_.kind(arguments);
    if (kind < NodeKind::kGlobal && kind != NodeKind::kTuple)
      record_first_refused_opcode("the arguments of a call are not a tuple");
    if (tree_.kind(callable) < NodeKind::kGlobal)
      record_first_refused_opcode("what is called is not a function");
    if (tree_.kind(callable) != NodeKind::kGlobal) {
      if (!tree_.unusual_call_at_ && !is_getattr_factory(tree_, callable))
        tree_.unusual_call_at_ = here;
      return;
    }
    auto& global = tree_.globals_[node(callable).first];
    if (call == NodeKind::kReduce && is_getattr(global) && is_getattr_of_member(tree_, arguments)) {
      global.is_enum_member_lookup = true;
      return;
    }
    if (!global.called_at) global.called_at = here;
    if (call != NodeKind::kReduce && is_surely_function(global))
      record_first_refused_opcode("an object is created from a function");
    if (const std::size_t inside = callable_argument_count(global); inside != 0)
      mark_called_arguments(arguments, inside, here);
    if (call == NodeKind::kReduce || !arities_[node(callable).first].is_of_init)
      check_call_arity(callable, arguments);
  }
  void check_call_arity(NodeId global, NodeId arguments) {
    if (const char* why = refused_call(tree_, arities_[node(global).first], arguments))
      record_first_refused_opcode(why);
  }
  // Marks functions that the call receives as arguments and calls itself.
  void mark_called_arguments(NodeId arguments, std::size_t most, std::uint64_t here) {
    const auto items = tree_.items(arguments);
    for (NodeId item : items.first(std::min(most, items.size()))) {
      if (tree_.kind(item) == NodeKind::kGlobal) {
        auto& inside = tree_.globals_[node(item).first];
        if (!inside.called_at) inside.called_at = here;
        // Checks the inner call in _rebuild_from_type_v2(function, class, arguments, state).
        if (item == items[0] && most == 2 && items.size() == 4) check_call_arity(item, items[2]);
      } else if (item == items[0] && !tree_.unusual_call_at_) {
        tree_.unusual_call_at_ = here;
      }
    }
  }
  // Checks the state as the class's __setstate__ would.
  void check_object_state(NodeId object, NodeId state) {
    const NodeId made_of = tree_.callable(object);
    if (tree_.kind(made_of) != NodeKind::kGlobal) return;
    if (!is_state_of(arities_[node(made_of).first], tree_.kind(state), tree_.items(state).size()))
      record_first_refused_opcode("an object is given a state that is not of its class");
  }
  // A member found in a class belongs to the program: changing it changes the running program.
  void note_mutation(NodeId object) {
    if (tree_.kind(tree_.callable(object)) != NodeKind::kGlobal) return;
    auto& global = tree_.globals_[node(tree_.callable(object)).first];
    if (global.is_enum_member_lookup && !global.called_at) global.called_at = offset(opcode_);
  }
  // Slot 2 (state) or 3 (contents) of an object.
  bool set_object_slot(NodeId object, std::size_t which, NodeId value) {
    note_mutation(object);
    tree_.children_[node(object).first + which] = value;
    return update_depth(object, value);
  }
  bool push_global(std::string_view module, std::string_view name) {
    std::string key;
    key.reserve(module.size() + name.size() + 1);
    key.append(module).push_back('\n');
    key.append(name);
    auto [found, added] = global_ids_.try_emplace(std::move(key), tree_.globals_.size());
    if (added) {
      if (!is_utf8_or_surrogates(module) || !is_utf8_or_surrogates(name))
        record_first_refused_opcode("the name of a class is not UTF-8");
      if (tree_.globals_.size() >= limits_.globals)
        return refuse(ErrorKind::kUnsupported,
                      "more than " + human_count(limits_.globals) + " names in one pickle");
      tree_.globals_.push_back({std::string(module), std::string(name), offset(opcode_)});
      arities_.push_back(arity_of_call(module, name));
    }
    NodeId id = make(NodeKind::kGlobal);
    if (id != NodeId::kAbsent) node(id).first = found->second;
    return push(id);
  }

  // --- stack ------------------------------------------------------------------------------------

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool need(std::size_t count) {
    return stack_.size() - floor() >= count || damaged("an opcode finds too little on the stack");
  }
  NodeId pop() {
    NodeId top = stack_.back();
    stack_.pop_back();
    return top;
  }
  // Finds the values above the mark and removes the mark; the values stay on the stack until
  // drop().
  bool pop_mark(std::size_t& first) {
    if (marks_.empty()) return damaged("an opcode needs a mark and there is none");
    first = marks_.back();
    marks_.pop_back();
    return true;
  }
  std::span<const NodeId> from(std::size_t first) const {
    return std::span<const NodeId>(stack_).subspan(first);
  }

  bool collect_from_mark(NodeKind kind) {
    std::size_t first = 0;
    if (!pop_mark(first)) return false;
    if (kind == NodeKind::kDict && (stack_.size() - first) % 2 != 0)
      return damaged("a dict has a key without a value");
    if (kind == NodeKind::kDict || kind == NodeKind::kSet)
      note_keys(from(first), kind == NodeKind::kDict ? 2 : 1);
    NodeId id = make_group(kind, from(first));
    stack_.resize(first);
    return push(id);
  }
  bool make_tuple(std::size_t count) {
    if (!need(count)) return false;
    NodeId id = make_group(NodeKind::kTuple, from(stack_.size() - count));
    stack_.resize(stack_.size() - count);
    return push(id);
  }
  // Puts the values from `first` on into the container below them: SETITEMS, APPENDS, ADDITEMS.
  bool add_to_container(std::size_t first, NodeKind kind) {
    if (first == 0 || first <= floor()) return damaged("items without a container");
    if (kind == NodeKind::kDict && (stack_.size() - first) % 2 != 0)
      return damaged("a dict has a key without a value");
    NodeId target = stack_[first - 1];
    NodeKind actual = tree_.kind(target);
    if (actual == NodeKind::kObject || actual == NodeKind::kReduce) {
      NodeId inner = tree_.contents(target);
      if (inner == NodeId::kAbsent) {
        inner = make_group(kind, {});
        if (inner == NodeId::kAbsent || !set_object_slot(target, 3, inner)) return false;
      }
      target = inner;
      actual = tree_.kind(target);
    }
    if constexpr (Shortcut::kEnabled) {
      if (actual == NodeKind::kShortcut) return shortcut_.abandon_shortcut();
    }
    if (kind == NodeKind::kDict || kind == NodeKind::kSet)
      note_keys(from(first), kind == NodeKind::kDict ? 2 : 1);
    if (actual != kind) return damaged("items are added to a value that cannot hold them");
    bool good = add_children(target, from(first));
    stack_.resize(first);
    return good;
  }
  bool add_items_since_mark(NodeKind kind) {
    std::size_t first = 0;
    return pop_mark(first) && add_to_container(first, kind);
  }

  bool put_memo(std::uint64_t index) {
    if (!need(1)) return false;
    // Python numbers memo entries from 0 on, so no index can exceed the length of the file.
    if (index > static_cast<std::uint64_t>(end_ - begin_))
      return damaged("memo number " + human_count(index) + " is larger than the file");
    if constexpr (Shortcut::kEnabled) {
      // Python numbers densely. Another numbering may overwrite entries that the shortcut relies
      // on.
      if (index != memo_.length() && !shortcut_.disable_shortcut()) return false;
    }
    memo_.put(index, stack_.back());
    return true;
  }
  bool get_memo(std::uint64_t index) {
    NodeId id = memo_.get(index);
    if constexpr (Shortcut::kEnabled) {
      if (id == NodeId::kAbsent) {
        if (index < memo_.length() && !shortcut_.recall(*this, index, id)) return false;
      } else if (tree_.kind(id) == NodeKind::kGlobal) {
        if (shortcut_.consume_entry(*this, id)) return true;
        if (shortcut_.is_shortcut_abandoned()) return false;
      }
    }
    if (id == NodeId::kAbsent)
      return damaged("memo number " + human_count(index) + " is used but was never stored");
    stack_.push_back(id);
    return true;
  }
  bool decimal(std::string_view text, std::uint64_t& value) {
    auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return (code == std::errc{} && stop == text.data() + text.size()) ||
           damaged("a number is not written in digits");
  }

  // --- opcodes, in pickle_opcodes.h --------------------------------------------------------------

  bool step(std::uint8_t opcode);
  bool step_scalar(std::uint8_t opcode);
  bool step_text(std::uint8_t opcode);
  bool step_call(std::uint8_t opcode);
  bool step_stack(std::uint8_t opcode);
  bool step_rare_opcode(std::uint8_t opcode);
  bool step_old_opcode(std::uint8_t opcode);

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  const std::uint8_t* frame_end_;  // end_ if no frame is open
  const std::uint8_t* opcode_ = nullptr;
  const std::string& file_;
  std::uint64_t base_;
  PickleLimits limits_;
  Shortcut& shortcut_;

  PickleTree tree_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  PickleMemo memo_;
  std::unordered_map<std::string, std::size_t> global_ids_;
  std::vector<PickleCallArity> arities_;  // for every global
  std::optional<Error> error_;
  bool stopped_ = false;
  bool is_framed_ = false;
};

}  // namespace shw
