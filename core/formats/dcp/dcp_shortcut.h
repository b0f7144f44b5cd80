// Parses the three kinds of entries that make up 99 % of a large `.metadata` directly into rows,
// without nodes or memo entries for their parts:
//
//   chunk  GET ChunkStorageMetadata  NEW  "offsets" size  "sizes" size               SETITEMS BUILD
//   key    GET MetadataIndex         NEW  "fqn" string  "index" int|None  ["offset" size]  "      "
//   place  GET _StorageInfo          NEW  "relative_path" string "offset" int "length" int "      "
//   NEW    EMPTY_TUPLE NEWOBJ EMPTY_DICT MARK        size  GET Size, tuple, TUPLE1, REDUCE | tuple
//   | GET
//
// with a MEMOIZE or none after everything that Python memoizes, and GET for every field name and
// class (which are spelled out in the first entry, for the general parser). Everything else is left
// to the general parser, e.g. the FRAME inside one of a thousand entries, or strings above 255
// bytes. 3.5 million chunks, 621 MB, take 0.45 s on one core.
#pragma once

#include <array>
#include <functional>

#include "core/formats/dcp/dcp_opcodes.h"
#include "core/formats/dcp/dcp_rows.h"
#include "core/formats/pickle/pickle_opcodes.h"

namespace shw {

class DcpShortcut {
 public:
  static constexpr bool kEnabled = true;

  DcpShortcut(CheckpointBuilder& builder, NameTable& names, DcpRows& rows)
      : builder_(builder), names_(names), rows_(rows) {}

  // Called regularly with the number of consumed bytes; false ends the calls.
  std::function<bool(std::uint64_t)> on_consumed;

  bool is_shortcut_abandoned() const { return is_abandoned_; }
  bool abandon_shortcut() {
    is_abandoned_ = true;
    return false;
  }
  // Memo numbers are out of order: the shortcut stops, and parsed rows may be wrong.
  bool disable_shortcut() {
    disabled_ = true;
    return segments_.empty() || abandon_shortcut();
  }

  template <class Machine>
  bool consume_entry(Machine& machine, NodeId class_node);
  template <class Machine>
  bool recall(Machine& machine, std::uint64_t index, NodeId& node);

 private:
  // Limit of an entry's length: 2 sizes of 8 numbers of 10 bytes, a string of 255, and opcodes.
  static constexpr std::uint64_t kLongest = 1024;
  static constexpr std::size_t kMostDims = 8;

  enum class EntryClass : std::uint8_t { kUnknown, kNone, kChunk, kKey, kPlace };
  enum Field { kOffsets, kSizes, kFqn, kIndex, kOffset, kPath, kLength, kFieldCount };
  static constexpr std::array<std::string_view, kFieldCount> kFieldNames{
      "offsets", "sizes", "fqn", "index", "offset", "relative_path", "length"};

  struct Cursor {
    const std::uint8_t* at;
    std::uint64_t memo;    // number of the next memoized value
    std::uint64_t wanted;  // recall: the number to find
  };
  // The value of a memo number inside a parsed entry.
  struct MemoizedValue {
    enum class Kind : std::uint8_t { kNothing, kText, kSize, kTuple, kMutable } kind;
    std::string_view text;
    ExtentsHandle extents;
  };
  // A group of up to 64 contiguous entries.
  struct Segment {
    std::uint64_t at;
    std::uint64_t memo;
    std::uint32_t count;
  };

  template <bool kRecall>
  void memoize(Cursor& c, typename MemoizedValue::Kind kind, std::string_view text = {},
               ExtentsHandle extents = kNoExtents) {
    if (*c.at != 0x94) return;
    ++c.at;
    if constexpr (kRecall) {
      if (c.memo == c.wanted) recalled_ = {kind, text, extents};
    }
    ++c.memo;
  }
  // Parses EMPTY_TUPLE NEWOBJ EMPTY_DICT MARK.
  template <bool kRecall>
  bool begin(Cursor& c) {
    if (c.at[0] != ')' || c.at[1] != 0x81) return false;
    c.at += 2;
    memoize<kRecall>(c, MemoizedValue::Kind::kMutable);
    if (*c.at++ != '}') return false;
    memoize<kRecall>(c, MemoizedValue::Kind::kMutable);
    return *c.at++ == '(';
  }
  static bool finish(Cursor& c) {
    c.at += 2;
    return c.at[-2] == 'u' && c.at[-1] == 'b';
  }
  template <class Machine>
  bool field(Machine& machine, Cursor& c, Field which) {
    std::uint32_t index = 0;
    if (!consume_memo_index(c.at, index)) return false;
    if (index == fields_[which]) return true;
    if (machine.tree_.text(machine.memo_.get(index)) != kFieldNames[which]) return false;
    fields_[which] = index;
    return true;
  }

  template <bool kRecall>
  bool numbers(Cursor& c, ExtentsHandle& extents);
  template <bool kRecall, class Machine>
  bool size(Machine& machine, Cursor& c, ExtentsHandle& extents);
  template <bool kRecall, class Machine>
  bool chunk(Machine& machine, Cursor& c, DcpChunkRow& row);
  template <bool kRecall, class Machine>
  bool key(Machine& machine, Cursor& c, DcpKeyRow& row);
  template <bool kRecall, class Machine>
  bool place(Machine& machine, Cursor& c, ItemPlace& row);

  std::uint32_t name_of(std::string_view text);
  template <class Machine>
  bool read_memoized_extents(Machine& machine, std::uint32_t index, ExtentsHandle& extents);
  template <class Machine>
  bool find(Machine& machine, std::uint64_t index);
  template <class Machine>
  EntryClass class_of(Machine& machine, NodeId class_node);
  template <class Row>
  static NodeId add(std::vector<Row>& rows, std::uint32_t kind, const Row& row) {
    rows.push_back(row);
    return NodeId{kind | static_cast<std::uint32_t>(rows.size() - 1)};
  }

  CheckpointBuilder& builder_;
  NameTable& names_;
  DcpRows& rows_;
  bool is_abandoned_ = false;
  bool disabled_ = false;
  std::vector<EntryClass> classes_;  // by global
  std::array<std::uint32_t, kFieldCount> fields_ = {kNoMemoIndex, kNoMemoIndex, kNoMemoIndex,
                                                    kNoMemoIndex, kNoMemoIndex, kNoMemoIndex,
                                                    kNoMemoIndex};
  std::uint32_t size_class_ = kNoMemoIndex;

  std::vector<Segment> segments_;
  const std::uint8_t* last_end_ = nullptr;
  std::uint64_t last_memo_ = 0;
  std::uint64_t reported_ = 0;
  // Result of the last search: references are usually in the order of their targets.
  std::size_t found_segment_ = 0;
  std::uint32_t found_ordinal_ = 0;
  Cursor found_at_{nullptr, 0, 0};
  MemoizedValue recalled_{};

  // The last value of each kind, by bytes or memo number.
  std::array<std::uint8_t, 96> last_numbers_{};
  std::size_t last_numbers_length_ = 0;
  ExtentsHandle last_extents_ = kNoExtents;
  std::uint32_t shared_index_ = kNoMemoIndex;
  ExtentsHandle shared_extents_ = kNoExtents;
  std::uint32_t path_index_ = kNoMemoIndex;
  FileId path_file_ = FileId::kNone;
  std::uint32_t name_index_ = kNoMemoIndex;
  std::uint32_t name_ = kNoName;
  std::uint32_t previous_name_ = kNoName;
  std::vector<std::uint32_t> next_name_;  // the name that followed this one last time
};

// Names usually repeat in order, since ranks write the same tensors: the previous successor is
// tried first.
inline std::uint32_t DcpShortcut::name_of(std::string_view text) {
  if (previous_name_ < next_name_.size()) {
    std::uint32_t guess = next_name_[previous_name_];
    if (guess != kNoName && names_.text(guess) == text) return previous_name_ = guess;
  }
  std::uint32_t name = names_.intern(text);
  if (previous_name_ != kNoName) {
    if (next_name_.size() <= previous_name_) next_name_.resize(names_.size(), kNoName);
    next_name_[previous_name_] = name;
  }
  return previous_name_ = name;
}

// Parses a tuple of integers.
template <bool kRecall>
bool DcpShortcut::numbers(Cursor& c, ExtentsHandle& extents) {
  std::array<std::int64_t, kMostDims> values;
  std::size_t count = 0;
  const std::uint8_t* begin = c.at;
  bool marked = *c.at == '(';
  if (marked) ++c.at;
  while (count < kMostDims && consume_integer(c.at, values[count])) ++count;
  std::uint8_t closing = *c.at++;
  if (marked       ? closing != 't' || count == 0
      : count == 0 ? closing != ')'
                   : count > 3 || closing != 0x84 + count)
    return false;
  auto length = static_cast<std::size_t>(c.at - begin);
  if (length == last_numbers_length_ && std::memcmp(begin, last_numbers_.data(), length) == 0) {
    extents = last_extents_;
    return true;
  }
  extents = builder_.extents(ExtentsView(values.data(), count));
  if (length <= last_numbers_.size()) {
    std::memcpy(last_numbers_.data(), begin, length);
    last_numbers_length_ = length;
    last_extents_ = extents;
  }
  return true;
}

template <bool kRecall, class Machine>
bool DcpShortcut::size(Machine& machine, Cursor& c, ExtentsHandle& extents) {
  std::uint32_t index = 0;
  if (!consume_memo_index(c.at, index)) {  // a plain tuple
    bool empty = *c.at == ')';             // the empty tuple is never memoized
    if (!numbers<kRecall>(c, extents)) return false;
    if (!empty) memoize<kRecall>(c, MemoizedValue::Kind::kTuple, {}, extents);
    return true;
  }
  if (index != size_class_) {
    NodeId known = machine.memo_.get(index);
    if (!machine.tree_.is_global(known, "torch", "Size")) {
      if constexpr (kRecall) return true;
      return read_memoized_extents(machine, index, extents);
    }
    size_class_ = index;
  }
  if (!numbers<kRecall>(c, extents)) return false;
  memoize<kRecall>(c, MemoizedValue::Kind::kTuple, {}, extents);
  if (*c.at++ != 0x85) return false;
  memoize<kRecall>(c, MemoizedValue::Kind::kMutable);
  if (*c.at++ != 'R') return false;
  memoize<kRecall>(c, MemoizedValue::Kind::kSize, {}, extents);
  return true;
}

template <bool kRecall, class Machine>
bool DcpShortcut::chunk(Machine& machine, Cursor& c, DcpChunkRow& row) {
  return begin<kRecall>(c) && field(machine, c, kOffsets) &&
         size<kRecall>(machine, c, row.offsets) && field(machine, c, kSizes) &&
         size<kRecall>(machine, c, row.sizes) && finish(c);
}

template <bool kRecall, class Machine>
bool DcpShortcut::key(Machine& machine, Cursor& c, DcpKeyRow& row) {
  if (!begin<kRecall>(c) || !field(machine, c, kFqn)) return false;
  if (std::string_view spelled; consume_short_text(c.at, spelled)) {
    if constexpr (!kRecall) row.name = name_of(spelled);
    memoize<kRecall>(c, MemoizedValue::Kind::kText, spelled);
  } else {
    std::uint32_t index = 0;
    if (!consume_memo_index(c.at, index)) return false;
    if constexpr (!kRecall) {
      if (index != name_index_) {
        auto text = machine.tree_.text(machine.memo_.get(index));
        if (!text && find(machine, index) && recalled_.kind == MemoizedValue::Kind::kText)
          text = recalled_.text;
        if (!text) return false;
        name_ = names_.intern(*text);
        name_index_ = index;
      }
      row.name = name_;
    }
  }
  std::int64_t hint = -1;
  if (!field(machine, c, kIndex)) return false;
  if (*c.at == 'N') {
    ++c.at;
  } else if (!consume_integer(c.at, hint)) {
    return false;
  }
  row.hint = hint >= 0 && hint < 0x7FFFFFFF ? static_cast<std::int32_t>(hint) : -1;
  if (*c.at == 'u') return finish(c);
  return field(machine, c, kOffset) && size<kRecall>(machine, c, row.offsets) && finish(c);
}

template <bool kRecall, class Machine>
bool DcpShortcut::place(Machine& machine, Cursor& c, ItemPlace& row) {
  if (!begin<kRecall>(c) || !field(machine, c, kPath)) return false;
  if (std::string_view spelled; consume_short_text(c.at, spelled)) {
    if constexpr (!kRecall) {
      row.file = path_file_ = builder_.file(without_leading_dot_slash(spelled));
      path_index_ = *c.at == 0x94 ? static_cast<std::uint32_t>(c.memo) : kNoMemoIndex;
    }
    memoize<kRecall>(c, MemoizedValue::Kind::kText, spelled);
  } else {
    std::uint32_t index = 0;
    if (!consume_memo_index(c.at, index)) return false;
    if constexpr (!kRecall) {
      if (index != path_index_) {
        auto text = machine.tree_.text(machine.memo_.get(index));
        if (!text && find(machine, index) && recalled_.kind == MemoizedValue::Kind::kText)
          text = recalled_.text;
        if (!text) return false;
        path_file_ = builder_.file(without_leading_dot_slash(*text));
        path_index_ = index;
      }
      row.file = path_file_;
    }
  }
  return field(machine, c, kOffset) && consume_integer(c.at, row.offset) &&
         field(machine, c, kLength) && consume_integer(c.at, row.length) && finish(c);
}

// Finds the torch.Size or tuple with this memo number, from the general parser or a parsed entry.
template <class Machine>
bool DcpShortcut::read_memoized_extents(Machine& machine, std::uint32_t index,
                                        ExtentsHandle& extents) {
  if (index != shared_index_) {
    NodeId node = machine.memo_.get(index);
    if (node == NodeId::kAbsent) {
      if (!find(machine, index)) return false;
      if (recalled_.kind != MemoizedValue::Kind::kSize &&
          recalled_.kind != MemoizedValue::Kind::kTuple)
        return false;
      shared_extents_ = recalled_.extents;
    } else {
      const PickleTree& tree = machine.tree_;
      if (tree.kind(node) == NodeKind::kReduce && tree.items(tree.arguments(node)).size() == 1 &&
          tree.is_global(tree.callable(node), "torch", "Size"))
        node = tree.items(tree.arguments(node))[0];
      auto items = tree.items(node);
      if (tree.kind(node) != NodeKind::kTuple || items.size() > kMostDims) return false;
      std::array<std::int64_t, kMostDims> values{};
      for (std::size_t i = 0; i < items.size(); ++i) {
        auto value = tree.integer(items[i]);
        if (!value) return false;
        values[i] = *value;
      }
      shared_extents_ = builder_.extents(ExtentsView(values.data(), items.size()));
    }
    shared_index_ = index;
  }
  extents = shared_extents_;
  return true;
}

template <class Machine>
DcpShortcut::EntryClass DcpShortcut::class_of(Machine& machine, NodeId class_node) {
  std::size_t global = machine.global_index(class_node);
  if (classes_.size() <= global) classes_.resize(global + 1, EntryClass::kUnknown);
  if (classes_[global] == EntryClass::kUnknown) {
    std::string_view name = machine.global_of(class_node).name;
    classes_[global] = name == "ChunkStorageMetadata" ? EntryClass::kChunk
                       : name == "MetadataIndex"      ? EntryClass::kKey
                       : name == "_StorageInfo"       ? EntryClass::kPlace
                                                      : EntryClass::kNone;
  }
  return classes_[global];
}

template <class Machine>
bool DcpShortcut::consume_entry(Machine& machine, NodeId class_node) {
  EntryClass entry = class_of(machine, class_node);
  if (entry == EntryClass::kNone || disabled_ || machine.left() < kLongest) return false;
  Cursor c{machine.at_, machine.memo_.length(), 0};
  NodeId made = NodeId::kAbsent;
  if (entry == EntryClass::kChunk) {
    DcpChunkRow row;
    if (rows_.chunks.size() < DcpRows::kMaxRows && chunk<false>(machine, c, row))
      made = add(rows_.chunks, DcpRows::kChunk, row);
  } else if (entry == EntryClass::kKey) {
    DcpKeyRow row;
    if (rows_.keys.size() < DcpRows::kMaxRows && key<false>(machine, c, row))
      made = add(rows_.keys, DcpRows::kKey, row);
  } else {
    ItemPlace row;
    if (rows_.places.size() < DcpRows::kMaxRows && place<false>(machine, c, row))
      made = add(rows_.places, DcpRows::kPlace, row);
  }
  if (made == NodeId::kAbsent) return false;
  PickleGlobal& global = machine.global_of(class_node);
  if (!global.called_at) global.called_at = machine.offset(machine.at_ + 1);
  auto at = static_cast<std::uint64_t>(machine.opcode_ - machine.begin_);
  bool follows = machine.opcode_ == last_end_ && machine.memo_.length() == last_memo_;
  if (!segments_.empty() && follows && segments_.back().count < 64) {
    ++segments_.back().count;
  } else {
    segments_.push_back({at, machine.memo_.length(), 1});
    constexpr std::uint64_t kReported = std::uint64_t{1} << 20;  // about 10 ms
    if (on_consumed && at - reported_ >= kReported && !on_consumed(reported_ = at))
      return abandon_shortcut();
  }
  machine.memo_.skip(c.memo - machine.memo_.length());
  last_end_ = c.at;
  last_memo_ = c.memo;
  machine.at_ = c.at;
  machine.stack_.push_back(made);
  return true;
}

// Parses the entries of a segment again up to the one with this memo number.
template <class Machine>
bool DcpShortcut::find(Machine& machine, std::uint64_t index) {
  recalled_.kind = MemoizedValue::Kind::kNothing;
  auto after = std::upper_bound(
      segments_.begin(), segments_.end(), index,
      [](std::uint64_t wanted, const Segment& segment) { return wanted < segment.memo; });
  if (after == segments_.begin()) return false;
  auto segment = static_cast<std::size_t>(after - segments_.begin()) - 1;
  std::uint32_t ordinal = 0;
  Cursor c{machine.begin_ + segments_[segment].at, segments_[segment].memo, index};
  if (segment == found_segment_ && found_at_.at != nullptr && found_at_.memo <= index) {
    ordinal = found_ordinal_;
    c = found_at_;
    c.wanted = index;
  }
  for (; ordinal < segments_[segment].count; ++ordinal) {
    found_segment_ = segment;
    found_ordinal_ = ordinal;
    found_at_ = c;
    std::uint32_t class_index = 0;
    DcpChunkRow chunk_row;
    DcpKeyRow key_row;
    ItemPlace place_row;
    if (!consume_memo_index(c.at, class_index)) return false;
    NodeId class_node = machine.memo_.get(class_index);
    if (machine.tree_.kind(class_node) != NodeKind::kGlobal) return false;
    EntryClass entry = class_of(machine, class_node);
    if (entry == EntryClass::kChunk ? !chunk<true>(machine, c, chunk_row)
        : entry == EntryClass::kKey ? !key<true>(machine, c, key_row)
                                    : !place<true>(machine, c, place_row))
      return false;
    if (index < c.memo) return recalled_.kind != MemoizedValue::Kind::kNothing;
  }
  return false;
}

template <class Machine>
bool DcpShortcut::recall(Machine& machine, std::uint64_t index, NodeId& node) {
  if (!find(machine, index)) return abandon_shortcut();
  if (recalled_.kind == MemoizedValue::Kind::kText) {
    node = machine.make(NodeKind::kString);
    if (node == NodeId::kAbsent) return false;
    machine.node(node).text = recalled_.text.data();
    machine.node(node).count = static_cast<std::uint32_t>(recalled_.text.size());
    machine.memo_.fill(index, node);
    return true;
  }
  return abandon_shortcut();
}

}  // namespace shw
