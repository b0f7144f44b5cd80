#include "core/formats/hdf5/hdf5_object.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_messages.h"

namespace shw {
namespace {

constexpr std::array<unsigned char, 8> kHdf5Magic{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
// A dataset has some ten messages, a group of links in its header a few hundred.
constexpr std::size_t kMostHdf5Messages = 1 << 16;
constexpr std::uint64_t kMostHeader = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostHeap = std::uint64_t{256} << 20;
constexpr int kMostTreeLevels = 32;
constexpr std::uint64_t kHdf5Checksum = 4;

bool has_signature(BytesView bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

// The name at that place of a heap; nothing where it does not end in it.
std::optional<std::string> name_in_heap(const Bytes& heap, std::uint64_t at) {
  if (at >= heap.size()) return std::nullopt;
  auto begin = heap.begin() + static_cast<std::ptrdiff_t>(at);
  auto end = std::find(begin, heap.end(), std::byte{0});
  if (end == heap.end()) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(&*begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

bool is_hdf5(BytesView bytes) {
  return bytes.size() >= kHdf5Magic.size() &&
         std::equal(kHdf5Magic.begin(), kHdf5Magic.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

tl::unexpected<Error> Hdf5Objects::damaged(std::string message, std::uint64_t offset) const {
  return fail(ErrorKind::kDamaged, std::move(message), {source_->name(), offset});
}
tl::unexpected<Error> Hdf5Objects::not_read(std::string message, std::uint64_t offset) const {
  return fail(ErrorKind::kUnsupported, std::move(message), {source_->name(), offset});
}

Result<Bytes> Hdf5Objects::read(std::uint64_t offset, std::uint64_t length) const {
  if (offset > source_->size() || length > source_->size() - offset)
    return damaged(fmt::format("ends at byte {}, and {} bytes are to stand at {}", source_->size(),
                               length, offset),
                   offset);
  return read_bytes(*source_, offset, length);
}

// Version 0 and 1: ... sizes of offsets and lengths at 13, addresses from 24 (28 in version 1),
// the root's header in a symbol table entry. Version 2 and 3: sizes at 9, addresses from 12.
Result<Hdf5Objects> Hdf5Objects::open(std::shared_ptr<const ByteSource> source) {
  Hdf5Objects objects(std::move(source));
  SHW_TRY(Bytes first, objects.read(0, std::min<std::uint64_t>(objects.source_->size(), 128)));
  if (!is_hdf5(first)) return objects.damaged("does not begin as an HDF5 file", 0);
  Hdf5Cursor cursor(first, kHdf5Magic.size());
  const auto version = cursor.take<std::uint8_t>();
  const bool is_old = version < 2;
  if (version > 3)
    return objects.not_read(fmt::format("has a superblock of version {}", version), 8);
  if (is_old) cursor.skip(4);
  const auto offset_size = cursor.take<std::uint8_t>(), length_size = cursor.take<std::uint8_t>();
  if (offset_size != 8 || length_size != 8)
    return objects.not_read(fmt::format("has offsets of {} and lengths of {} bytes, not of 8",
                                        offset_size, length_size),
                            is_old ? 13 : 9);
  cursor.skip(is_old ? (version == 1 ? 13u : 9u) : 1u);
  const auto base = cursor.take<std::uint64_t>();
  cursor.skip(8);
  objects.end_ = cursor.take<std::uint64_t>();
  if (is_old) cursor.skip(16);
  objects.root_ = cursor.take<std::uint64_t>();
  if (!cursor.ok()) return objects.damaged("ends inside of its superblock", first.size());
  if (base != 0) return objects.not_read("begins behind a user block", 0);
  return objects;
}

Status Hdf5Objects::add_old_messages(std::uint64_t offset, std::uint64_t length,
                                     std::vector<Hdf5Message>& messages) const {
  SHW_TRY(Bytes block, read(offset, length));
  for (Hdf5Cursor cursor(block); cursor.left() >= 8;) {
    Hdf5Message message;
    message.type = cursor.take<std::uint16_t>();
    const auto size = cursor.take<std::uint16_t>();
    message.is_shared = (cursor.take<std::uint8_t>() & 2) != 0;
    cursor.skip(3);
    message.offset = offset + cursor.at();
    if (size > cursor.left()) return damaged("a message ends behind its block", message.offset);
    auto body = std::span(block).subspan(cursor.at(), size);
    message.body.assign(body.begin(), body.end());
    cursor.skip(size);
    messages.push_back(std::move(message));
    if (messages.size() > kMostHdf5Messages)
      return damaged("an object has too many messages", offset);
  }
  return {};
}

Status Hdf5Objects::add_new_messages(std::uint64_t offset, std::uint64_t length, bool has_order,
                                     std::vector<Hdf5Message>& messages) const {
  SHW_TRY(Bytes block, read(offset, length));
  const std::size_t head = has_order ? 6 : 4;
  for (Hdf5Cursor cursor(block); cursor.left() >= head;) {
    Hdf5Message message;
    message.type = cursor.take<std::uint8_t>();
    const auto size = cursor.take<std::uint16_t>();
    message.is_shared = (cursor.take<std::uint8_t>() & 2) != 0;
    if (has_order) cursor.skip(2);
    message.offset = offset + cursor.at();
    if (size > cursor.left()) return damaged("a message ends behind its block", message.offset);
    auto body = std::span(block).subspan(cursor.at(), size);
    message.body.assign(body.begin(), body.end());
    cursor.skip(size);
    messages.push_back(std::move(message));
    if (messages.size() > kMostHdf5Messages)
      return damaged("an object has too many messages", offset);
  }
  return {};
}

Result<std::vector<Hdf5Message>> Hdf5Objects::new_messages(std::uint64_t address) const {
  SHW_TRY(Bytes head, read(address, std::min<std::uint64_t>(source_->size() - address, 40)));
  Hdf5Cursor cursor(head, 4);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  if (version != 2) return not_read(fmt::format("has an object of version {}", version), address);
  if (flags & 0x20) cursor.skip(16);
  if (flags & 0x10) cursor.skip(4);
  const std::uint64_t length = cursor.take_sized(std::size_t{1} << (flags & 3));
  if (!cursor.ok() || length > kMostHeader) return damaged("an object header cannot be", address);
  const bool has_order = (flags & 4) != 0;
  std::vector<Hdf5Message> messages;
  SHW_CHECK(add_new_messages(address + cursor.at(), length, has_order, messages));
  std::set<std::uint64_t> seen{address};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].type != kHdf5Continuation) continue;
    Hdf5Cursor where(messages[i].body);
    const auto at = where.take<std::uint64_t>(), size = where.take<std::uint64_t>();
    if (!where.ok() || size > kMostHeader || size < 4 + kHdf5Checksum || !seen.insert(at).second)
      return damaged("an object is continued nowhere", messages[i].offset);
    SHW_TRY(Bytes magic, read(at, 4));
    if (!has_signature(magic, "OCHK")) return damaged("no part of an object stands here", at);
    SHW_CHECK(add_new_messages(at + 4, size - 4 - kHdf5Checksum, has_order, messages));
  }
  return messages;
}

Result<std::vector<Hdf5Message>> Hdf5Objects::messages(std::uint64_t address) const {
  SHW_TRY(Bytes head, read(address, 16));
  if (has_signature(head, "OHDR")) return new_messages(address);
  Hdf5Cursor cursor(head);
  const auto version = cursor.take<std::uint8_t>();
  if (version != 1) return damaged("no object header stands here", address);
  cursor.skip(1);
  const auto count = cursor.take<std::uint16_t>();
  cursor.skip(4);
  const auto length = cursor.take<std::uint32_t>();
  std::vector<Hdf5Message> messages;
  SHW_CHECK(add_old_messages(address + 16, length, messages));
  std::set<std::uint64_t> seen{address + 16};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].type != kHdf5Continuation) continue;
    Hdf5Cursor where(messages[i].body);
    const auto at = where.take<std::uint64_t>(), size = where.take<std::uint64_t>();
    if (!where.ok() || size > kMostHeader || !seen.insert(at).second)
      return damaged("an object is continued nowhere", messages[i].offset);
    SHW_CHECK(add_old_messages(at, size, messages));
  }
  if (messages.size() < count)
    return damaged(fmt::format("an object has {} of its {} messages", messages.size(), count),
                   address);
  return messages;
}

bool Hdf5Objects::is_dataset(const std::vector<Hdf5Message>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Hdf5Message& message) { return message.type == kHdf5Layout; });
}

Status Hdf5Objects::add_symbol_node(std::uint64_t address, const Bytes& names,
                                    std::vector<Hdf5Link>& links) {
  SHW_TRY(Bytes head, read(address, 8));
  if (!has_signature(head, "SNOD")) return damaged("no symbols of a group stand here", address);
  const auto count = load_little<std::uint16_t>(head, 6);
  constexpr std::uint64_t kEntry = 40;
  SHW_TRY(Bytes entries, read(address + 8, count * kEntry));
  for (std::uint64_t i = 0; i < count; ++i) {
    Hdf5Cursor cursor(entries, i * kEntry);
    const auto name = cursor.take<std::uint64_t>(), object = cursor.take<std::uint64_t>();
    const auto kind = cursor.take<std::uint32_t>();
    if (kind == 2) continue;  // a symbolic link
    auto text = name_in_heap(names, name);
    if (!text || text->empty())
      return damaged("a name of a group lies outside of its names", address + 8 + i * kEntry);
    links.push_back({std::move(*text), object});
  }
  return {};
}

Status Hdf5Objects::add_symbols(std::uint64_t tree, const Bytes& names, int depth,
                                std::vector<Hdf5Link>& links) {
  SHW_TRY(Bytes head, read(tree, 24));
  if (!has_signature(head, "TREE") || head[4] != std::byte{0})
    return damaged("no tree of a group stands here", tree);
  const int level = std::to_integer<int>(head[5]);
  if (!nodes_.insert(tree).second || (depth >= 0 && level >= depth) || level > kMostTreeLevels)
    return damaged("a tree of a group comes back to itself", tree);
  const auto count = load_little<std::uint16_t>(head, 6);
  SHW_TRY(Bytes body, read(tree + 24, std::uint64_t{count} * 16 + 8));
  for (std::size_t i = 0; i < count; ++i) {
    const auto child = load_little<std::uint64_t>(body, i * 16 + 8);
    if (level > 0) {
      SHW_CHECK(add_symbols(child, names, level, links));
      continue;
    }
    if (!nodes_.insert(child).second) return damaged("symbols of a group are there twice", child);
    SHW_CHECK(add_symbol_node(child, names, links));
  }
  return {};
}

// version, flags, [kind], [order], [character set], length of the name, name, address
Result<Hdf5Link> Hdf5Objects::link_of(const Hdf5Message& message, bool& is_hard) const {
  Hdf5Cursor cursor(message.body);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  const auto kind = flags & 8 ? cursor.take<std::uint8_t>() : std::uint8_t{0};
  if (flags & 4) cursor.skip(8);
  if (flags & 16) cursor.skip(1);
  Hdf5Link link;
  link.name = cursor.take_text(cursor.take_sized(std::size_t{1} << (flags & 3)));
  is_hard = kind == 0;
  if (is_hard) link.address = cursor.take<std::uint64_t>();
  if (version != 1 || !cursor.ok() || link.name.empty())
    return damaged("a link of a group cannot be", message.offset);
  return link;
}

Result<std::vector<Hdf5Link>> Hdf5Objects::links(const std::vector<Hdf5Message>& messages) {
  std::vector<Hdf5Link> links;
  for (const Hdf5Message& message : messages) {
    Hdf5Cursor cursor(message.body);
    if (message.type == kHdf5SymbolTable) {
      const auto tree = cursor.take<std::uint64_t>(), heap = cursor.take<std::uint64_t>();
      if (!cursor.ok()) return damaged("a group without its addresses", message.offset);
      SHW_TRY(Bytes head, read(heap, 32));
      if (!has_signature(head, "HEAP")) return damaged("no names of a group stand here", heap);
      const auto size = load_little<std::uint64_t>(head, 8);
      if (size > kMostHeap) return damaged("the names of a group take too much", heap);
      SHW_TRY(Bytes names, read(load_little<std::uint64_t>(head, 24), size));
      SHW_CHECK(add_symbols(tree, names, -1, links));
    } else if (message.type == kHdf5Link) {
      bool is_hard = false;
      SHW_TRY(Hdf5Link link, link_of(message, is_hard));
      if (is_hard) links.push_back(std::move(link));
    } else if (message.type == kHdf5LinkInfo) {
      cursor.skip(1);
      if (cursor.take<std::uint8_t>() & 1) cursor.skip(8);
      if (cursor.take<std::uint64_t>() != kHdf5NoAddress)
        return not_read(
            "has a group whose links lie in a fractal heap (written for the latest "
            "HDF5, or in the order of creation)",
            message.offset);
    }
  }
  return links;
}

}  // namespace shw
