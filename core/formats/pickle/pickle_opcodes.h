// The opcodes of pickle_machine.h, the frequent ones first.
#pragma once

#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/words.h"
#include "core/formats/pickle/pickle_machine.h"

namespace shw {

template <class Shortcut>
Status PickleMachine<Shortcut>::run() {
  while (!stopped_) {
    opcode_ = at_;
    if (at_ == end_) {
      cut_off("the end mark of the pickle is missing");
      break;
    }
    note_opcode(*at_);
    if (!step(*at_++)) break;
    if (at_ > frame_end_) leave_frame();
  }
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

// The frequent opcodes of a state dict come first.
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
      return collect_from_mark(NodeKind::kTuple);
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
      return add_items_since_mark(NodeKind::kDict);
    case 'e':  // APPENDS
      return add_items_since_mark(NodeKind::kList);
    case 0x90:  // ADDITEMS
      return add_items_since_mark(NodeKind::kSet);
    case 's':  // SETITEM
      return need(3) && add_to_container(stack_.size() - 2, NodeKind::kDict);
    case 'a':  // APPEND
      return need(2) && add_to_container(stack_.size() - 1, NodeKind::kList);
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
      return consume_bytes("number", static_cast<std::uint64_t>(length), digits) &&
             push_long(digits);
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
      return counted<std::uint8_t>("string", text) && push_unicode(text);
    case 'X':
      return counted<std::uint32_t>("string", text) && push_unicode(text);
    case 0x8d:
      return counted<std::uint64_t>("string", text) && push_unicode(text);
    case 'U':  // SHORT_BINSTRING, BINSTRING: Python 2's str, which is text in checkpoints
      return counted<std::uint8_t>("string", text) && push_python2_text(text);
    case 'T': {
      std::int32_t length = 0;
      if (!number(length)) return false;
      if (length < 0) return damaged("a string has a negative length");
      return consume_bytes("string", static_cast<std::uint64_t>(length), text) &&
             push_python2_text(text);
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
      return push(made) && set_object_slot(made, 3, keywords);
    }
    case 'b': {  // BUILD; Python stops if the object cannot have state, this parser continues
      if (!need(2)) return false;
      NodeId state = pop();
      NodeKind kind = tree_.kind(stack_.back());
      if constexpr (Shortcut::kEnabled) {
        if (kind == NodeKind::kShortcut) return shortcut_.abandon_shortcut();
      }
      if (kind != NodeKind::kObject && kind != NodeKind::kReduce) {
        // BUILD on an imported name changes the running program.
        if (kind == NodeKind::kGlobal && !tree_.unusual_call_at_)
          tree_.unusual_call_at_ = offset(opcode_);
        if (kind != NodeKind::kGlobal)
          record_first_refused_opcode("a plain value is given the state of an object");
        return true;
      }
      check_object_state(stack_.back(), state);
      return set_object_slot(stack_.back(), 2, state);
    }
    default:
      return step_stack(opcode);
  }
}

// Opcodes that move the stack or occur once per file.
template <class Shortcut>
bool PickleMachine<Shortcut>::step_stack(std::uint8_t opcode) {
  switch (opcode) {
    case 'd':  // DICT, LIST, FROZENSET: made from the mark on
      return collect_from_mark(NodeKind::kDict);
    case 'l':
      return collect_from_mark(NodeKind::kList);
    case 0x91:
      return collect_from_mark(NodeKind::kSet);
    case '0':  // POP: removes the mark if nothing is above it
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return true;
      }
      if (!need(1)) return false;
      stack_.pop_back();
      return true;
    case '1': {  // POP_MARK
      std::size_t first = 0;
      if (!pop_mark(first)) return false;
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
    case 0x95: {  // FRAME
      std::uint64_t length = 0;
      return number(length) && begin_frame(length);
    }
    default:
      return step_rare_opcode(opcode);
  }
}

// Unusual opcodes that create classes.
template <class Shortcut>
bool PickleMachine<Shortcut>::step_rare_opcode(std::uint8_t opcode) {
  switch (opcode) {
    case 'o': {  // OBJ: mark, class, arguments
      std::size_t first = 0;
      if (!pop_mark(first)) return false;
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
      if (!line(module) || !line(name) || !pop_mark(first)) return false;
      NodeId arguments = make_group(NodeKind::kTuple, from(first));
      stack_.resize(first);
      if (arguments == NodeId::kAbsent || !push_global(module, name)) return false;
      return push(make_call(NodeKind::kObject, pop(), arguments));
    }
    case 'Q': {  // BINPERSID
      if (!need(1)) return false;
      NodeId id = pop();
      // The format before zip named the classes of modules this way, with their source text.
      if (NodeId named = class_of_persistent_module(tree_, id); named != NodeId::kAbsent) {
        if (!tree_.module_id_at_) tree_.module_id_at_ = offset(opcode_);
        return push(named);
      }
      return push(make_group(NodeKind::kPersistentId, std::span(&id, 1)));
    }
    case 'P': {  // PERSID
      std::string_view text;
      if (!line(text) || !push_text(NodeKind::kString, text)) return false;
      NodeId id = pop();
      return push(make_group(NodeKind::kPersistentId, std::span(&id, 1)));
    }
    case 0x82:  // EXT1, EXT2, EXT4: a name by number in the registry of the writing process
    case 0x83:
    case 0x84: {
      std::string_view code;
      if (!consume_bytes("number", std::uint64_t{1} << (opcode - 0x82), code)) return false;
      std::uint32_t value = 0;
      std::memcpy(&value, code.data(), code.size());
      return push_global("copyreg", "extension " + std::to_string(value));
    }
    case 0x97:
    case 0x98:
      return refuse(ErrorKind::kUnsupported, "byte " + human_count(offset(opcode_)) +
                                                 ": refers to a buffer outside the file");
    default:
      return step_old_opcode(opcode);
  }
}

// Opcodes of protocol 0, which are lines of text.
template <class Shortcut>
bool PickleMachine<Shortcut>::step_old_opcode(std::uint8_t opcode) {
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
      const bool is_whole = code == std::errc{} && stop == text.data() + text.size();
      return (is_whole || damaged("a number is not written in digits")) && push_real(value);
    }
    case 'S':  // STRING: repr of a str, UNICODE: \u escapes
      if (!line(text)) return false;
      if (text.size() < 2 || text.front() != text.back() ||
          (text.front() != '\'' && text.front() != '"'))
        return damaged("a string is not in quotes");
      return push_python2_text(text.substr(1, text.size() - 2));
    case 'V': {
      if (!line(text)) return false;
      bool is_cut = false;
      std::string plain = unescape_unicode(text, &is_cut);
      if (is_cut)
        record_first_refused_opcode("a \\u in a string is not followed by the digits of a letter");
      return push_owned(NodeKind::kString, std::move(plain));
    }
    default: {
      const char* digits = "0123456789abcdef";
      return damaged(std::string("0x") + digits[opcode >> 4] + digits[opcode & 15] +
                     " is not a pickle opcode");
    }
  }
}

}  // namespace shw
