#include "core/formats/hdf5/hdf5_object.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/formats/hdf5/hdf5_checksum.h"
#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_messages.h"

namespace shw {
namespace {

// Of a symbol: nothing beside it, a group's addresses, a symbolic link.
constexpr std::uint32_t kHdf5LastSymbolKind = 2;

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

}  // namespace

bool is_hdf5(BytesView bytes) {
  return bytes.size() >= kHdf5Magic.size() &&
         std::equal(kHdf5Magic.begin(), kHdf5Magic.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

tl::unexpected<Error> Hdf5Objects::damaged(std::string message, std::uint64_t offset) const {
  return fail(ErrorKind::kDamaged, std::move(message), {source_->name(), begin_ + offset});
}
tl::unexpected<Error> Hdf5Objects::not_read(std::string message, std::uint64_t offset) const {
  return fail(ErrorKind::kUnsupported, std::move(message), {source_->name(), begin_ + offset});
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
Result<Hdf5Objects> Hdf5Objects::open(std::shared_ptr<const ByteSource> source,
                                      std::uint64_t begin) {
  Hdf5Objects objects(std::move(source), begin);
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
  const auto extension = cursor.take<std::uint64_t>();
  objects.end_ = cursor.take<std::uint64_t>();
  if (is_old) cursor.skip(16);
  objects.root_ = cursor.take<std::uint64_t>();
  const auto root_kind = is_old ? cursor.take<std::uint32_t>() : 0;
  if (!cursor.ok()) return objects.damaged("ends inside of its superblock", first.size());
  // What libhdf5 refuses before it looks at anything else.
  if (is_old && (extension != kHdf5NoAddress || root_kind > kHdf5LastSymbolKind))
    return objects.damaged("has a superblock that says what its version cannot", 0);
  if (!is_old) SHW_CHECK(objects.read_checked(0, cursor.at()));
  if (base != 0) return objects.not_read("begins behind a user block", 0);
  return objects;
}

Status Hdf5Objects::add_messages(const Hdf5Block& block, const MessageHead& head,
                                 std::vector<Hdf5Message>& messages) const {
  const std::size_t size_of_head = head.type_bytes + 3 + head.passed_over;
  for (Hdf5Cursor cursor(block.bytes, block.first); cursor.left() >= size_of_head;) {
    Hdf5Message message;
    message.type = static_cast<std::uint16_t>(cursor.take_sized(head.type_bytes));
    const auto size = cursor.take<std::uint16_t>();
    message.is_shared = (cursor.take<std::uint8_t>() & 2) != 0;
    cursor.skip(head.passed_over);
    message.offset = block.offset + cursor.at();
    if (size > cursor.left()) return damaged("a message ends behind its block", message.offset);
    // Those of version 1 are filled up to eight bytes.
    if (head.type_bytes == 2 && size % 8 != 0)
      return damaged("a message does not end where one can", message.offset);
    auto body = std::span(block.bytes).subspan(cursor.at(), size);
    message.body.assign(body.begin(), body.end());
    cursor.skip(size);
    messages.push_back(std::move(message));
    if (messages.size() > kMostHdf5Messages)
      return damaged("an object has too many messages", block.offset);
  }
  return {};
}

// All but the checksum behind it, which is looked at.
Result<Bytes> Hdf5Objects::read_checked(std::uint64_t offset, std::uint64_t length) const {
  SHW_TRY(Bytes bytes, read(offset, length + kHdf5Checksum));
  const auto written = load_little<std::uint32_t>(bytes, static_cast<std::size_t>(length));
  bytes.resize(static_cast<std::size_t>(length));
  if (hdf5_checksum(bytes) != written)
    return damaged(fmt::format("{} bytes of metadata do not match their checksum", length), offset);
  return bytes;
}

Result<Hdf5Objects::Hdf5Block> Hdf5Objects::continued(const Hdf5Message& message,
                                                      bool is_new) const {
  Hdf5Cursor where(message.body);
  const auto at = where.take<std::uint64_t>(), size = where.take<std::uint64_t>();
  if (!where.ok() || size > kMostHeader || (is_new && size < 4 + kHdf5Checksum))
    return damaged("an object is continued nowhere", message.offset);
  if (!is_new) {
    SHW_TRY(Bytes bytes, read(at, size));
    return Hdf5Block{at, 0, std::move(bytes)};
  }
  SHW_TRY(Bytes bytes, read_checked(at, size - kHdf5Checksum));
  if (!has_signature(bytes, "OCHK")) return damaged("no part of an object stands here", at);
  return Hdf5Block{at, 4, std::move(bytes)};
}

// The messages of the first block and of those in which it is continued. Together they take no more
// than a header may: blocks that lie over each other are many bytes of few.
Result<std::vector<Hdf5Message>> Hdf5Objects::all_messages(const Hdf5Block& first,
                                                           const MessageHead& head) const {
  std::vector<Hdf5Message> messages;
  SHW_CHECK(add_messages(first, head, messages));
  std::uint64_t taken = first.bytes.size();
  std::set<std::uint64_t> seen{first.offset};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].type != kHdf5Continuation) continue;
    SHW_TRY(Hdf5Block block, continued(messages[i], head.type_bytes == 1));
    if (!seen.insert(block.offset).second)
      return damaged("an object comes back to itself", messages[i].offset);
    taken += block.bytes.size();
    if (taken > kMostHeader)
      return damaged(fmt::format("an object has more than {} bytes of messages", kMostHeader),
                     messages[i].offset);
    SHW_CHECK(add_messages(block, head, messages));
  }
  return messages;
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
  SHW_TRY(Bytes bytes, read_checked(address, cursor.at() + length));
  const bool has_order = (flags & 4) != 0;
  return all_messages({address, cursor.at(), std::move(bytes)}, {1, has_order ? 2u : 0u});
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
  if (length > kMostHeader) return damaged("an object header cannot be", address);
  SHW_TRY(Bytes bytes, read(address + 16, length));
  SHW_TRY(auto messages, all_messages({address + 16, 0, std::move(bytes)}, {2, 3}));
  if (messages.size() < count)
    return damaged(fmt::format("an object has {} of its {} messages", messages.size(), count),
                   address);
  return messages;
}

bool Hdf5Objects::is_dataset(const std::vector<Hdf5Message>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Hdf5Message& message) { return message.type == kHdf5Layout; });
}

// No two names share bytes: a few that did would be many in memory.
Result<std::string> Hdf5Objects::take_name(std::uint64_t at, Hdf5Heap& heap,
                                           std::uint64_t asked_at) const {
  if (at >= heap.bytes.size())
    return damaged("a name of a group lies outside of its names", asked_at);
  auto begin = heap.bytes.begin() + static_cast<std::ptrdiff_t>(at);
  auto end = std::find(begin, heap.bytes.end(), std::byte{0});
  if (end == heap.bytes.end() || end == begin)
    return damaged("a name of a group lies outside of its names", asked_at);
  const auto taken = static_cast<std::uint64_t>(end - begin) + 1;
  if (taken > heap.left) return damaged("names of a group lie over each other", asked_at);
  heap.left -= taken;
  return std::string(reinterpret_cast<const char*>(&*begin), static_cast<std::size_t>(taken - 1));
}

Status Hdf5Objects::add_symbol_node(std::uint64_t address, Hdf5Heap& names,
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
    if (kind > kHdf5LastSymbolKind)
      return damaged("a symbol of a group is of no kind", address + 8 + i * kEntry);
    if (kind == kHdf5LastSymbolKind) continue;  // a symbolic link
    SHW_TRY(std::string text, take_name(name, names, address + 8 + i * kEntry));
    links.push_back({std::move(text), object});
  }
  return {};
}

Status Hdf5Objects::add_symbols(std::uint64_t tree, Hdf5Heap& names, int depth,
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

// version, flags, [kind], [order], [character set], length of the name, name; then an address, or
// what another kind takes: a length, and of an external link flags, the file, 0, the object, 0
Result<std::optional<Hdf5Link>> Hdf5Objects::link_of(const Hdf5Message& message) const {
  constexpr std::uint8_t kHard = 0, kExternal = 64;
  Hdf5Cursor cursor(message.body);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  const auto kind = flags & 8 ? cursor.take<std::uint8_t>() : kHard;
  if (flags & 4) cursor.skip(8);
  if (flags & 16) cursor.skip(1);
  Hdf5Link link;
  link.name = cursor.take_text(cursor.take_sized(std::size_t{1} << (flags & 3)));
  link.is_external = kind == kExternal;
  if (kind == kHard) link.address = cursor.take<std::uint64_t>();
  if (link.is_external) {
    const std::size_t length = cursor.take<std::uint16_t>();
    cursor.skip(1);
    link.file = cursor.take_text(std::max<std::size_t>(length, 1) - 1);
    link.file.resize(std::min(link.file.find('\0'), link.file.size()));
  }
  if (version != 1 || !cursor.ok() || link.name.empty())
    return damaged("a link of a group cannot be", message.offset);
  if (kind != kHard && !link.is_external) return std::nullopt;
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
      constexpr std::uint64_t kNothingFree = 1;
      const auto first_free = load_little<std::uint64_t>(head, 16);
      if (first_free != kNothingFree && first_free >= size)
        return damaged("the room between the names of a group lies outside of them", heap);
      SHW_TRY(Bytes bytes, read(load_little<std::uint64_t>(head, 24), size));
      Hdf5Heap names{std::move(bytes), size};
      SHW_CHECK(add_symbols(tree, names, -1, links));
    } else if (message.type == kHdf5Link) {
      SHW_TRY(std::optional<Hdf5Link> link, link_of(message));
      if (link) links.push_back(std::move(*link));
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
