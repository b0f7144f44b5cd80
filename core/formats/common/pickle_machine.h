// The machine behind decode_pickle: one pass over the opcodes, a stack, a memo, no recursion.
// A reader of large files gives a Shortcut, which may take whole entries at once (dcp_shortcut.h).
// What it has taken can still be referred to: `recall` makes the nodes then, and where that cannot
// be done exactly the shortcut gives up and the whole file is read again without it.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/formats/common/pickle.h"

namespace shw {

struct NoShortcut {
  static constexpr bool kEnabled = false;
};

// Memo index to node. Python numbers densely, but a shortcut leaves most numbers unused: pages of
// 1024, made when first written.
class PickleMemo {
 public:
  static constexpr std::uint32_t kPage = 1024;

  NodeId get(std::uint64_t index) const {
    std::uint64_t page = index / kPage;
    if (page >= pages_.size() || pages_[page] == nullptr) return NodeId::kAbsent;
    return pages_[page][index % kPage];
  }
  void put(std::uint64_t index, NodeId node) {
    std::uint64_t page = index / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) {
      pages_[page] = std::make_unique<NodeId[]>(kPage);
      std::fill_n(pages_[page].get(), kPage, NodeId::kAbsent);
    }
    NodeId& slot = pages_[page][index % kPage];
    if (slot == NodeId::kAbsent) ++length_;
    slot = node;
  }
  // What MEMOIZE writes next: CPython counts the entries, it does not look at their numbers.
  std::uint64_t length() const { return length_; }
  void skip(std::uint64_t count) { length_ += count; }
  // A number that was skipped gets its node after all.
  void fill(std::uint64_t index, NodeId node) {
    put(index, node);
    --length_;
  }

 private:
  std::vector<std::unique_ptr<NodeId[]>> pages_;
  std::uint64_t length_ = 0;
};

template <class Shortcut>
class PickleMachine {
 public:
  PickleMachine(BytesView bytes, const std::string& file, std::uint64_t base,
                const PickleLimits& limits, Shortcut& shortcut)
      : begin_(reinterpret_cast<const std::uint8_t*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()),
        file_(file),
        base_(base),
        limits_(limits),
        shortcut_(shortcut) {}

  Status run() {
    while (!stopped_) {
      opcode_ = at_;
      if (at_ == end_) {
        cut_off("the end mark of the pickle is missing");
        break;
      }
      if (!step(*at_++)) break;
    }
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return {};
  }
  PickleTree take() {
    tree_.end_ = offset(at_) - base_;
    return std::move(tree_);
  }

 private:
  friend Shortcut;
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
    return refuse(ErrorKind::kDamaged, "byte " + grouped(offset(opcode_)) + ": " + what);
  }
  bool cut_off(const std::string& what) {
    return refuse(ErrorKind::kDamaged, "cut off at byte " + grouped(offset(opcode_)) + ": " + what);
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
    return number(length) && take_bytes(what, static_cast<std::uint64_t>(length), out);
  }
  bool take_bytes(std::string_view what, std::uint64_t length, std::string_view& out) {
    if (length > left())
      return cut_off("a " + std::string(what) + " of " + grouped(length) +
                     " bytes was announced, " + grouped(left()) + " are left");
    if (length > std::numeric_limits<std::uint32_t>::max())
      return refuse(ErrorKind::kUnsupported, "a " + std::string(what) + " of " + grouped(length) +
                                                 " bytes at byte " + grouped(offset(opcode_)));
    out = {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }
  bool line(std::string_view& out) {
    const void* found = at_ == end_ ? nullptr : std::memchr(at_, '\n', left());
    if (found == nullptr) return cut_off("a line has no end");
    const auto* stop = static_cast<const std::uint8_t*>(found);
    if (!take_bytes("line", static_cast<std::uint64_t>(stop - at_), out)) return false;
    ++at_;
    if (out.ends_with('\r')) out.remove_suffix(1);
    return true;
  }

  // --- nodes ------------------------------------------------------------------------------------

  std::size_t global_index(NodeId id) { return node(id).first; }
  PickleGlobal& global_of(NodeId id) { return tree_.globals_[node(id).first]; }
  Node& node(NodeId id) { return tree_.nodes_[static_cast<std::uint32_t>(id)]; }

  NodeId make(NodeKind kind) {
    if (tree_.nodes_.size() >= std::min(limits_.nodes, PickleTree::kFirstShortcut)) {
      refuse(ErrorKind::kUnsupported,
             "more than " + grouped(limits_.nodes) + " values in one pickle");
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
  bool push_owned(NodeKind kind, std::string text) {
    return push_text(kind, tree_.texts_.emplace_back(std::move(text)));
  }
  // Two's complement, little-endian, any length.
  bool push_long(std::string_view digits) {
    while (digits.size() > 8 && digits.back() == (digits[digits.size() - 2] < 0 ? '\xff' : '\0'))
      digits.remove_suffix(1);
    if (digits.size() > 8) return push_text(NodeKind::kBigInt, digits);
    std::int64_t value = !digits.empty() && digits.back() < 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return push_integer(value);
  }

  bool deepen(NodeId parent, NodeId child) {
    if (!PickleTree::is_plain(child)) return true;
    std::uint32_t depth = node(child).depth + 1u;
    if (depth <= node(parent).depth) return true;
    if (depth > limits_.depth)
      return refuse(ErrorKind::kUnsupported, "nested more than " + grouped(limits_.depth) +
                                                 " deep at byte " + grouped(offset(opcode_)));
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
      // Moved to the end with room to double, so that growing stays linear.
      std::uint64_t first = pool.size();
      pool.resize(pool.size() + target.count);
      std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(target.first), target.count,
                  pool.begin() + static_cast<std::ptrdiff_t>(first));
      target.first = first;
    }
    if (count > target.capacity) {
      // A tuple is made once; a list of one batch of 1000 is often all there is.
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
      if (!deepen(parent, child)) return false;
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
    note_call(callable);
    const NodeId parts[] = {callable, arguments, NodeId::kAbsent, NodeId::kAbsent};
    return make_group(kind, parts);
  }
  void note_call(NodeId callable) {
    std::uint64_t here = offset(opcode_);
    if (tree_.kind(callable) != NodeKind::kGlobal) {
      if (!tree_.odd_call_at_) tree_.odd_call_at_ = here;
      return;
    }
    auto& global = tree_.globals_[node(callable).first];
    if (!global.called_at) global.called_at = here;
  }
  // Slot 2 (state) or 3 (contents) of an object.
  bool set_part(NodeId object, std::size_t which, NodeId value) {
    tree_.children_[node(object).first + which] = value;
    return deepen(object, value);
  }
  bool push_global(std::string_view module, std::string_view name) {
    std::string key;
    key.reserve(module.size() + name.size() + 1);
    key.append(module).push_back('\n');
    key.append(name);
    auto [found, added] = global_ids_.try_emplace(std::move(key), tree_.globals_.size());
    if (added) {
      if (tree_.globals_.size() >= limits_.globals)
        return refuse(ErrorKind::kUnsupported,
                      "more than " + grouped(limits_.globals) + " names in one pickle");
      tree_.globals_.push_back({std::string(module), std::string(name), offset(opcode_)});
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
  // Everything above the mark; the mark is gone, the values stay on the stack until `drop`.
  bool above_mark(std::size_t& first) {
    if (marks_.empty()) return damaged("an opcode needs a mark and there is none");
    first = marks_.back();
    marks_.pop_back();
    return true;
  }
  std::span<const NodeId> from(std::size_t first) const {
    return std::span<const NodeId>(stack_).subspan(first);
  }

  bool make_from_mark(NodeKind kind) {
    std::size_t first = 0;
    if (!above_mark(first)) return false;
    if (kind == NodeKind::kDict && (stack_.size() - first) % 2 != 0)
      return damaged("a dict has a key without a value");
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
  // SETITEMS, APPENDS, ADDITEMS: what lies from `first` on goes into the container below it.
  bool put_into(std::size_t first, NodeKind kind) {
    if (first == 0 || first <= floor()) return damaged("items without a container");
    if (kind == NodeKind::kDict && (stack_.size() - first) % 2 != 0)
      return damaged("a dict has a key without a value");
    NodeId target = stack_[first - 1];
    NodeKind actual = tree_.kind(target);
    if (actual == NodeKind::kObject || actual == NodeKind::kReduce) {
      NodeId inner = tree_.contents(target);
      if (inner == NodeId::kAbsent) {
        inner = make_group(kind, {});
        if (inner == NodeId::kAbsent || !set_part(target, 3, inner)) return false;
      }
      target = inner;
      actual = tree_.kind(target);
    }
    if constexpr (Shortcut::kEnabled) {
      if (actual == NodeKind::kShortcut) return shortcut_.give_up();
    }
    if (actual != kind) return damaged("items are put into something that holds none of the kind");
    bool good = add_children(target, from(first));
    stack_.resize(first);
    return good;
  }
  bool put_marked(NodeKind kind) {
    std::size_t first = 0;
    return above_mark(first) && put_into(first, kind);
  }

  bool put_memo(std::uint64_t index) {
    if (!need(1)) return false;
    // Python numbers what it stores from 0 on, so no number can exceed the length of the file.
    if (index > static_cast<std::uint64_t>(end_ - begin_))
      return damaged("memo number " + grouped(index) + " is larger than the file");
    if constexpr (Shortcut::kEnabled) {
      // Python numbers densely. Whatever does not may overwrite what a shortcut relies on.
      if (index != memo_.length() && !shortcut_.irregular()) return false;
    }
    memo_.put(index, stack_.back());
    return true;
  }
  bool get_memo(std::uint64_t index) {
    NodeId id = memo_.get(index);
    if constexpr (Shortcut::kEnabled) {
      if (id == NodeId::kAbsent) {
        if (index < memo_.length() && !shortcut_.recall(*this, index, id)) return false;
      } else if (tree_.kind(id) == NodeKind::kGlobal && shortcut_.take_entry(*this, id)) {
        return true;
      }
    }
    if (id == NodeId::kAbsent)
      return damaged("memo number " + grouped(index) + " is used but was never stored");
    stack_.push_back(id);
    return true;
  }
  bool decimal(std::string_view text, std::uint64_t& value) {
    auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return (code == std::errc{} && stop == text.data() + text.size()) ||
           damaged("a number is not written in digits");
  }

  // --- opcodes ----------------------------------------------------------------------------------

  bool step(std::uint8_t opcode);
  bool step_scalar(std::uint8_t opcode);
  bool step_text(std::uint8_t opcode);
  bool step_call(std::uint8_t opcode);
  bool step_old(std::uint8_t opcode);

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
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
  std::optional<Error> error_;
  bool stopped_ = false;
};

// What every stock file consists of comes first.
template <class Shortcut>
bool PickleMachine<Shortcut>::step(std::uint8_t opcode) {
  switch (opcode) {
    case 0x94: {  // MEMOIZE
      return put_memo(memo_.length());
    }
    case 'h': {  // BINGET
      std::uint8_t index = 0;
      return number(index) && get_memo(index);
    }
    case 'j': {  // LONG_BINGET
      std::uint32_t index = 0;
      return number(index) && get_memo(index);
    }
    case 'q': {  // BINPUT
      std::uint8_t index = 0;
      return number(index) && put_memo(index);
    }
    case 'r': {  // LONG_BINPUT
      std::uint32_t index = 0;
      return number(index) && put_memo(index);
    }
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case 't':  // TUPLE
      return make_from_mark(NodeKind::kTuple);
    case ')':  // EMPTY_TUPLE
      return make_tuple(0);
    case 0x85:  // TUPLE1 to TUPLE3
    case 0x86:
    case 0x87:
      return make_tuple(opcode - 0x84u);
    case '}':  // EMPTY_DICT
      return push(make_group(NodeKind::kDict, {}));
    case ']':  // EMPTY_LIST
      return push(make_group(NodeKind::kList, {}));
    case 0x8f:  // EMPTY_SET
      return push(make_group(NodeKind::kSet, {}));
    case 'u':  // SETITEMS
      return put_marked(NodeKind::kDict);
    case 'e':  // APPENDS
      return put_marked(NodeKind::kList);
    case 0x90:  // ADDITEMS
      return put_marked(NodeKind::kSet);
    case 's':  // SETITEM
      return need(3) && put_into(stack_.size() - 2, NodeKind::kDict);
    case 'a':  // APPEND
      return need(2) && put_into(stack_.size() - 1, NodeKind::kList);
    case 'd':  // DICT, LIST, FROZENSET: made from the mark on
      return make_from_mark(NodeKind::kDict);
    case 'l':
      return make_from_mark(NodeKind::kList);
    case 0x91:
      return make_from_mark(NodeKind::kSet);
    case '0':  // POP: takes the mark where nothing lies above it
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return true;
      }
      if (!need(1)) return false;
      stack_.pop_back();
      return true;
    case '1': {  // POP_MARK
      std::size_t first = 0;
      if (!above_mark(first)) return false;
      stack_.resize(first);
      return true;
    }
    case '2':  // DUP
      return need(1) && push(stack_.back());
    case '.':  // STOP
      if (!need(1)) return false;
      tree_.root_ = stack_.back();
      stopped_ = true;
      return true;
    case 0x80: {  // PROTO
      std::uint8_t protocol = 0;
      if (!number(protocol)) return false;
      if (protocol > 5)
        return refuse(ErrorKind::kUnsupported,
                      "pickle protocol " + std::to_string(protocol) + "; 5 is the newest known");
      tree_.protocol_ = std::max(tree_.protocol_, int{protocol});
      return true;
    }
    case 0x95: {  // FRAME: only says how much to read at once
      std::uint64_t length = 0;
      if (!number(length)) return false;
      if (length > left())
        return cut_off("a frame of " + grouped(length) + " bytes was announced, " +
                       grouped(left()) + " are left");
      return true;
    }
    default:
      return step_scalar(opcode);
  }
}

template <class Shortcut>
bool PickleMachine<Shortcut>::step_scalar(std::uint8_t opcode) {
  switch (opcode) {
    case 'K': {  // BININT1
      std::uint8_t value = 0;
      return number(value) && push_integer(value);
    }
    case 'M': {  // BININT2
      std::uint16_t value = 0;
      return number(value) && push_integer(value);
    }
    case 'J': {  // BININT
      std::int32_t value = 0;
      return number(value) && push_integer(value);
    }
    case 0x8a: {  // LONG1
      std::string_view digits;
      return counted<std::uint8_t>("number", digits) && push_long(digits);
    }
    case 0x8b: {  // LONG4
      std::int32_t length = 0;
      std::string_view digits;
      if (!number(length)) return false;
      if (length < 0) return damaged("a number has a negative length");
      return take_bytes("number", static_cast<std::uint64_t>(length), digits) && push_long(digits);
    }
    case 'N':
      return push_plain(NodeKind::kNone);
    case 0x88:
    case 0x89:
      return push_integer(opcode == 0x88 ? 1 : 0, NodeKind::kBool);
    case 'G': {  // BINFLOAT, big-endian
      std::uint64_t bits = 0;
      return number(bits) && push_real(std::bit_cast<double>(__builtin_bswap64(bits)));
    }
    default:
      return step_text(opcode);
  }
}

template <class Shortcut>
bool PickleMachine<Shortcut>::step_text(std::uint8_t opcode) {
  std::string_view text;
  switch (opcode) {
    case 0x8c:  // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
      return counted<std::uint8_t>("string", text) && push_text(NodeKind::kString, text);
    case 'X':
      return counted<std::uint32_t>("string", text) && push_text(NodeKind::kString, text);
    case 0x8d:
      return counted<std::uint64_t>("string", text) && push_text(NodeKind::kString, text);
    case 'U':  // SHORT_BINSTRING, BINSTRING: Python 2's str, text in all that we read
      return counted<std::uint8_t>("string", text) && push_text(NodeKind::kString, text);
    case 'T': {
      std::int32_t length = 0;
      if (!number(length)) return false;
      if (length < 0) return damaged("a string has a negative length");
      return take_bytes("string", static_cast<std::uint64_t>(length), text) &&
             push_text(NodeKind::kString, text);
    }
    case 'C':  // SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8
      return counted<std::uint8_t>("byte string", text) && push_text(NodeKind::kBytes, text);
    case 'B':
      return counted<std::uint32_t>("byte string", text) && push_text(NodeKind::kBytes, text);
    case 0x8e:
    case 0x96:
      return counted<std::uint64_t>("byte string", text) && push_text(NodeKind::kBytes, text);
    default:
      return step_call(opcode);
  }
}

template <class Shortcut>
bool PickleMachine<Shortcut>::step_call(std::uint8_t opcode) {
  switch (opcode) {
    case 0x93: {  // STACK_GLOBAL
      if (!need(2)) return false;
      auto name = tree_.text(pop());
      auto module = tree_.text(pop());
      if (!name || !module) return damaged("the name of a class is not a string");
      return push_global(*module, *name);
    }
    case 'c': {  // GLOBAL
      std::string_view module, name;
      return line(module) && line(name) && push_global(module, name);
    }
    case 0x81:   // NEWOBJ
    case 'R': {  // REDUCE
      if (!need(2)) return false;
      NodeId arguments = pop();
      NodeId callable = pop();
      return push(
          make_call(opcode == 'R' ? NodeKind::kReduce : NodeKind::kObject, callable, arguments));
    }
    case 0x92: {  // NEWOBJ_EX
      if (!need(3)) return false;
      NodeId keywords = pop();
      NodeId arguments = pop();
      NodeId made = make_call(NodeKind::kObject, pop(), arguments);
      return push(made) && set_part(made, 3, keywords);
    }
    case 'b': {  // BUILD; on anything that has no state Python fails, we go on without it
      if (!need(2)) return false;
      NodeId state = pop();
      NodeKind kind = tree_.kind(stack_.back());
      if constexpr (Shortcut::kEnabled) {
        if (kind == NodeKind::kShortcut) return shortcut_.give_up();
      }
      if (kind != NodeKind::kObject && kind != NodeKind::kReduce) return true;
      return set_part(stack_.back(), 2, state);
    }
    case 'o': {  // OBJ: mark, class, arguments
      std::size_t first = 0;
      if (!above_mark(first)) return false;
      if (stack_.size() == first) return damaged("an object without a class");
      NodeId callable = stack_[first];
      NodeId arguments = make_group(NodeKind::kTuple, from(first + 1));
      stack_.resize(first);
      return arguments != NodeId::kAbsent &&
             push(make_call(NodeKind::kObject, callable, arguments));
    }
    case 'i': {  // INST: mark, arguments; the class by name
      std::string_view module, name;
      std::size_t first = 0;
      if (!line(module) || !line(name) || !above_mark(first)) return false;
      NodeId arguments = make_group(NodeKind::kTuple, from(first));
      stack_.resize(first);
      if (arguments == NodeId::kAbsent || !push_global(module, name)) return false;
      return push(make_call(NodeKind::kObject, pop(), arguments));
    }
    case 'Q': {  // BINPERSID
      if (!need(1)) return false;
      NodeId id = pop();
      return push(make_group(NodeKind::kPersistentId, std::span(&id, 1)));
    }
    case 'P': {  // PERSID
      std::string_view text;
      if (!line(text) || !push_text(NodeKind::kString, text)) return false;
      NodeId id = pop();
      return push(make_group(NodeKind::kPersistentId, std::span(&id, 1)));
    }
    case 0x82:  // EXT1, EXT2, EXT4: a name by number in a registry of the process that wrote it
    case 0x83:
    case 0x84: {
      std::string_view code;
      if (!take_bytes("number", std::uint64_t{1} << (opcode - 0x82), code)) return false;
      std::uint32_t value = 0;
      std::memcpy(&value, code.data(), code.size());
      return push_global("copyreg", "extension " + std::to_string(value));
    }
    case 0x97:
    case 0x98:
      return refuse(ErrorKind::kUnsupported,
                    "byte " + grouped(offset(opcode_)) + ": refers to a buffer outside the file");
    default:
      return step_old(opcode);
  }
}

// Protocol 0: everything in lines of text.
template <class Shortcut>
bool PickleMachine<Shortcut>::step_old(std::uint8_t opcode) {
  std::string_view text;
  std::uint64_t index = 0;
  switch (opcode) {
    case 'g':  // GET, PUT
      return line(text) && decimal(text, index) && get_memo(index);
    case 'p':
      return line(text) && decimal(text, index) && put_memo(index);
    case 'I':  // INT: also how protocol 0 writes True and False
    case 'L': {
      if (!line(text)) return false;
      if (opcode == 'I' && (text == "01" || text == "00"))
        return push_integer(text == "01" ? 1 : 0, NodeKind::kBool);
      if (text.ends_with('L')) text.remove_suffix(1);
      std::int64_t value = 0;
      auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (code == std::errc{} && stop == text.data() + text.size()) return push_integer(value);
      if (code == std::errc::result_out_of_range) return push_text(NodeKind::kBigInt, text);
      return damaged("a number is not written in digits");
    }
    case 'F': {
      double value = 0;
      if (!line(text)) return false;
      auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      return (code == std::errc{} || damaged("a number is not written in digits")) &&
             push_real(value);
    }
    case 'S':  // STRING: repr of a str, UNICODE: \u escapes
      if (!line(text)) return false;
      if (text.size() < 2 || text.front() != text.back() ||
          (text.front() != '\'' && text.front() != '"'))
        return damaged("a string is not in quotes");
      return push_text(NodeKind::kString, text.substr(1, text.size() - 2));
    case 'V':
      return line(text) && push_owned(NodeKind::kString, unescape_unicode(text));
    default: {
      const char* digits = "0123456789abcdef";
      return damaged(std::string("0x") + digits[opcode >> 4] + digits[opcode & 15] +
                     " is no pickle opcode");
    }
  }
}

}  // namespace shw
