// Lists a group: names in a heap ordered by a B-tree, or links in its header.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_object.h"

namespace shw {
namespace {

constexpr int kMaxTreeLevels = 32;
constexpr std::uint64_t kMaxHeap = std::uint64_t{256} << 20;

}  // namespace

// Names must not share bytes, which would need much memory for a small file.
Result<std::string> Hdf5Objects::claim_name(std::uint64_t at, Hdf5Heap& heap,
                                            std::uint64_t asked_at) const {
  if (at >= heap.bytes.size())
    return damaged("a group name is outside the group's name heap", asked_at);
  auto begin = heap.bytes.begin() + static_cast<std::ptrdiff_t>(at);
  auto end = std::find(begin, heap.bytes.end(), std::byte{0});
  if (end == heap.bytes.end() || end == begin)
    return damaged("a group name is outside the group's name heap", asked_at);
  const auto taken = static_cast<std::uint64_t>(end - begin) + 1;
  if (taken > heap.left) return damaged("names of a group overlap", asked_at);
  heap.left -= taken;
  return std::string(reinterpret_cast<const char*>(&*begin), static_cast<std::size_t>(taken - 1));
}

// Text in the heap; empty if outside. Also used for targets of symbolic links.
std::optional<std::string_view> Hdf5Objects::key_at(std::uint64_t at, const Hdf5Heap& heap) {
  if (at >= heap.bytes.size()) return std::nullopt;
  const std::string_view rest(reinterpret_cast<const char*>(heap.bytes.data()) + at,
                              heap.bytes.size() - at);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, end));
}

Status Hdf5Objects::add_symbol_node(std::uint64_t address, Hdf5Heap& names,
                                    std::vector<Hdf5Link>& links) {
  SHW_TRY(Bytes head, read_and_record(address, 8));
  if (!has_hdf5_signature(head, "SNOD") || head[4] != std::byte{1})
    return damaged("a group's symbol table is missing", address);
  const auto count = load_little<std::uint16_t>(head, 6);
  constexpr std::uint64_t kEntry = 40;
  if (count > symbols_)
    return damaged(fmt::format("{} symbols are stored where only {} fit", count, symbols_),
                   address);
  // Nodes have a fixed size in the file, whatever their number of entries.
  SHW_TRY(Bytes entries, read_and_record(address + 8, symbols_ * kEntry));
  for (std::uint64_t i = 0; i < count; ++i) {
    Hdf5Cursor cursor(entries, i * kEntry);
    const auto name = cursor.take<std::uint64_t>(), object = cursor.take<std::uint64_t>();
    const auto kind = cursor.take<std::uint32_t>();
    if (kind > kHdf5LastSymbolKind)
      return damaged("a group symbol has an invalid type", address + 8 + i * kEntry);
    SHW_TRY(std::string text, claim_name(name, names, address + 8 + i * kEntry));
    // HDF5 searches names binarily, so they must be sorted.
    if (!names.met.empty() && text <= names.met.back())
      return damaged("names of a group are not sorted, so HDF5 cannot find them",
                     address + 8 + i * kEntry);
    names.met.push_back(text);
    if (kind == kHdf5LastSymbolKind) {
      cursor.skip(4);
      auto target = key_at(cursor.take<std::uint32_t>(), names);
      if (!target) return damaged("a symbolic link leads nowhere", address + 8 + i * kEntry);
      links.push_back({std::move(text), 0, Hdf5LinkKind::kSoft,
                       std::string(target->substr(0, kLongestHdf5Path + 1))});
      continue;
    }
    links.push_back({std::move(text), object});
  }
  return {};
}

// Checks a node's right sibling: each names the next one of its level.
Status Hdf5Objects::follow(Hdf5Heap& names, int level, std::uint64_t node,
                           std::uint64_t next) const {
  auto [last, is_first] = names.next_of_level.try_emplace(level, next);
  if (!is_first && std::exchange(last->second, next) != node)
    return damaged("a group node does not match the link of the previous node", node);
  return {};
}

Status Hdf5Objects::add_symbols(std::uint64_t tree, Hdf5Heap& names, int depth,
                                std::vector<Hdf5Link>& links) {
  SHW_TRY(Bytes head, read_and_record(tree, 24));
  if (!has_hdf5_signature(head, "TREE") || head[4] != std::byte{0})
    return damaged("a group's B-tree is missing", tree);
  const int level = std::to_integer<int>(head[5]);
  if (!nodes_.insert(tree).second || (depth >= 0 && level >= depth) || level > kMaxTreeLevels)
    return damaged("a group's B-tree contains a cycle", tree);
  const auto count = load_little<std::uint16_t>(head, 6);
  if (count > children_)
    return damaged(fmt::format("{} children are stored where only {} fit", count, children_), tree);
  SHW_TRY(Bytes body, read_and_record(tree + 24, std::uint64_t{children_} * 16 + 8));
  SHW_CHECK(follow(names, level, tree, load_little<std::uint64_t>(head, 16)));
  for (std::size_t i = 0; i < count; ++i) {
    const auto child = load_little<std::uint64_t>(body, i * 16 + 8);
    const std::size_t before = names.met.size();
    if (level > 0) {
      SHW_CHECK(add_symbols(child, names, level, links));
    } else {
      if (!nodes_.insert(child).second) return damaged("a group's symbols occur twice", child);
      SHW_CHECK(add_symbol_node(child, names, links));
    }
    if (names.met.size() == before) continue;
    // Keys around a child bound its names.
    auto left = key_at(load_little<std::uint64_t>(body, i * 16), names);
    auto right = key_at(load_little<std::uint64_t>(body, i * 16 + 16), names);
    if (!left || !right || *left >= names.met[before] || *right < names.met.back())
      return damaged("a group's keys do not match its names, so HDF5 cannot find them", tree);
  }
  return {};
}

// Layout: version, flags, [kind], [order], [character set], length of the name, name; then an
// address for hard links, or a length and: for soft links the path; for external ones flags, file,
// 0, object, 0.
Result<Hdf5Link> Hdf5Objects::link_of(const Hdf5Message& message) const {
  constexpr std::uint8_t kHard = 0, kSoft = 1, kExternal = 64, kFlagsKnown = 31, kUtf8 = 1;
  Hdf5Cursor cursor(message.body);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  const auto kind = flags & 8 ? cursor.take<std::uint8_t>() : kHard;
  if (flags & 4) cursor.skip(8);
  const auto characters = flags & 16 ? cursor.take<std::uint8_t>() : std::uint8_t{0};
  const bool is_known = (flags & ~kFlagsKnown) == 0 && characters <= kUtf8 &&
                        (kind == kHard || kind == kSoft || kind >= kExternal);
  Hdf5Link link;
  link.name = cursor.consume_text(cursor.consume_number_of_size(std::size_t{1} << (flags & 3)));
  link.kind = kind == kHard       ? Hdf5LinkKind::kHard
              : kind == kSoft     ? Hdf5LinkKind::kSoft
              : kind == kExternal ? Hdf5LinkKind::kExternal
                                  : Hdf5LinkKind::kOther;
  if (kind == kHard) link.address = cursor.take<std::uint64_t>();
  std::size_t length = kind == kHard ? 0u : cursor.take<std::uint16_t>();
  if (kind == kExternal) {
    cursor.skip(1);
    length = std::max<std::size_t>(length, 1) - 1;
  }
  link.target = cursor.consume_text(length);
  link.target.resize(std::min(link.target.find('\0'), link.target.size()));
  if (version != 1 || !is_known || !cursor.ok() || link.name.empty() ||
      (kind == kSoft && length == 0))
    return damaged("a group link is invalid", message.offset);
  return link;
}

// Checks the list of free blocks in a heap: offset of the next block, and size. Offset 1 ends it.
Status Hdf5Objects::check_free(std::uint64_t at, const Hdf5Heap& names, std::uint64_t heap) const {
  constexpr std::uint64_t kNothingFree = 1, kMinFree = 16;
  const std::uint64_t size = names.bytes.size();
  std::uint64_t left = size / kMinFree;  // limits lists that form a cycle
  for (; at != kNothingFree; --left) {
    if (at >= size || size - at < kMinFree || left == 0 ||
        load_little<std::uint64_t>(names.bytes, at + 8) > size - at ||
        load_little<std::uint64_t>(names.bytes, at + 8) == 0)
      return damaged("the free space in a group's name heap is outside the heap", heap);
    at = load_little<std::uint64_t>(names.bytes, at);
  }
  return {};
}

Result<std::vector<Hdf5Link>> Hdf5Objects::links(const std::vector<Hdf5Message>& messages) {
  std::vector<Hdf5Link> links;
  for (const Hdf5Message& message : messages) {
    Hdf5Cursor cursor(message.body);
    if (message.type == kHdf5SymbolTable) {
      const auto tree = cursor.take<std::uint64_t>(), heap = cursor.take<std::uint64_t>();
      if (!cursor.ok()) return damaged("a group without its addresses", message.offset);
      SHW_TRY(Bytes head, read_and_record(heap, 32));
      if (!has_hdf5_signature(head, "HEAP") || head[4] != std::byte{0})
        return damaged("a group's name heap is missing", heap);
      const auto size = load_little<std::uint64_t>(head, 8);
      if (size > kMaxHeap) return damaged("a group's name heap is too large", heap);
      SHW_TRY(Bytes bytes, read_and_record(load_little<std::uint64_t>(head, 24), size));
      Hdf5Heap names{std::move(bytes), size, {}};
      SHW_CHECK(check_free(load_little<std::uint64_t>(head, 16), names, heap));
      SHW_CHECK(add_symbols(tree, names, -1, links));
      for (const auto& [level, next] : names.next_of_level) {
        if (next != kHdf5NoAddress)
          return damaged("a group node links to a missing next node", tree);
      }
    } else if (message.type == kHdf5Link) {
      SHW_TRY(Hdf5Link link, link_of(message));
      links.push_back(std::move(link));
    } else if (message.type == kHdf5GroupInfo) {
      const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
      if (version != 0 || (flags & ~3) != 0)
        return damaged("a group's header message is invalid", message.offset);
    } else if (message.type == kHdf5LinkInfo) {
      const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
      if (version != 0 || (flags & ~3) != 0)
        return damaged("a group's link message is invalid", message.offset);
      if (flags & 1) cursor.skip(8);
      if (cursor.take<std::uint64_t>() != kHdf5NoAddress)
        return not_read(
            "has a group whose links are in a fractal heap (written for the latest HDF5, or in the "
            "order of creation)",
            message.offset);
      // Creation order is stored in a second B-tree, if at all.
      for (int trees = flags & 2 ? 2 : 1; trees > 0; --trees) {
        if (cursor.take<std::uint64_t>() != kHdf5NoAddress)
          return damaged("a group's links are indexed but not stored", message.offset);
      }
      if (!cursor.ok()) return damaged("a group's link message is invalid", message.offset);
    }
  }
  return links;
}

}  // namespace shw
