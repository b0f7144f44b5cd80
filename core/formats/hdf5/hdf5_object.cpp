#include "core/formats/hdf5/hdf5_object.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/formats/hdf5/hdf5_checksum.h"
#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/formats/hdf5/hdf5_messages.h"

namespace shw {
namespace {

// Open for writing, consistent, and open for writing and reading at once.
constexpr std::uint32_t kHdf5FlagsKnown = 7, kHdf5OpenForWriting = 1, kHdf5OpenForBoth = 4;

constexpr std::array<unsigned char, 8> kHdf5Magic{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
// Datasets have about ten messages, groups with links in the header a few hundred.
constexpr std::size_t kMaxHdf5Messages = 1 << 16;
constexpr std::uint64_t kMaxHeader = std::uint64_t{16} << 20;
constexpr std::uint64_t kHdf5Checksum = 4;

constexpr std::uint8_t kHdf5Shared = 2;
constexpr std::uint16_t kHdf5LastMessage = 0x17;

// Combinations that libhdf5 rejects: shared and unshareable; marked as unknown at an earlier
// modification although that is forbidden; sharing of an unshareable type; unknown and
// required.
bool has_valid_flags(std::uint8_t flags, std::uint16_t type) {
  constexpr std::uint8_t kNeverShared = 4, kFailWritersIfUnknown = 8, kIsMarked = 16,
                         kWasUnknown = 32, kMayBeShared = 64, kFailIfUnknown = 128;
  if ((flags & kHdf5Shared) != 0 && (flags & kNeverShared) != 0) return false;
  if ((flags & kWasUnknown) != 0 &&
      ((flags & kFailWritersIfUnknown) != 0 || (flags & kIsMarked) == 0))
    return false;
  constexpr auto kShareable = std::to_array<std::uint16_t>(
      {kHdf5Dataspace, kHdf5Datatype, kHdf5OldFill, kHdf5Fill, kHdf5Filters, kHdf5Attribute});
  if ((flags & (kMayBeShared | kHdf5Shared)) != 0 && type <= kHdf5LastMessage &&
      std::find(kShareable.begin(), kShareable.end(), type) == kShareable.end())
    return false;
  return type <= kHdf5LastMessage || (flags & kFailIfUnknown) == 0;
}

bool has(const std::vector<Hdf5Message>& messages, std::uint16_t type) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const Hdf5Message& message) { return message.type == type; });
}

}  // namespace

bool has_hdf5_signature(BytesView bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

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
  // The size according to the superblock, if smaller.
  const std::uint64_t size = std::min(source_->size(), end_);
  if (offset > size || length > size - offset)
    return damaged(
        fmt::format("ends at byte {}, but {} bytes are expected at {}", size, length, offset),
        offset);
  return read_bytes(*source_, offset, length);
}

// Reads metadata, which must not overlap data of datasets.
Result<Bytes> Hdf5Objects::read_and_record(std::uint64_t offset, std::uint64_t length) {
  SHW_TRY(Bytes bytes, read(offset, length));
  described_.push_back({offset, offset + length});
  return bytes;
}

// Versions 0 and 1: sizes of offsets and lengths at 13, addresses from 24 (28 in version 1), the
// root's header in a symbol table entry. Versions 2 and 3: sizes at 9, addresses from 12.
Result<Hdf5Objects> Hdf5Objects::open(std::shared_ptr<const ByteSource> source,
                                      std::uint64_t begin) {
  Hdf5Objects objects(std::move(source), begin);
  SHW_TRY(Bytes first, objects.read(0, std::min<std::uint64_t>(objects.source_->size(), 128)));
  if (!is_hdf5(first)) {
    // A user block before the file has 512 bytes or a power of two times that.
    for (std::uint64_t at = 512; at + 8 <= objects.source_->size(); at *= 2) {
      SHW_TRY(Bytes magic, objects.read(at, 8));
      if (is_hdf5(magic)) return objects.not_read("begins after a user block", 0);
    }
    return objects.damaged("does not begin with the HDF5 signature", 0);
  }
  Hdf5Cursor cursor(first, kHdf5Magic.size());
  const auto version = cursor.take<std::uint8_t>();
  const bool is_old = version < 2;
  if (version > 3)
    return objects.not_read(fmt::format("has a superblock of version {}", version), 8);
  // Bytes of format versions, all 0, and one ignored byte.
  constexpr std::uint32_t kVersions = 0xFF00FFFF;
  if (is_old && (cursor.take<std::uint32_t>() & kVersions) != 0)
    return objects.damaged("has a superblock with invalid parts", 9);
  const auto offset_size = cursor.take<std::uint8_t>(), length_size = cursor.take<std::uint8_t>();
  if (offset_size != 8 || length_size != 8)
    return objects.not_read(fmt::format("has offsets of {} and lengths of {} bytes, not of 8",
                                        offset_size, length_size),
                            is_old ? 13 : 9);
  if (is_old) {
    cursor.skip(1);
    // Half of the capacity of a group's nodes.
    objects.symbols_ = 2u * cursor.take<std::uint16_t>();
    objects.children_ = 2u * cursor.take<std::uint16_t>();
    if (objects.symbols_ == 0 || objects.children_ == 0)
      return objects.damaged("has groups with empty nodes", 16);
  }
  const std::uint32_t flags =
      is_old ? cursor.take<std::uint32_t>() : std::uint32_t{cursor.take<std::uint8_t>()};
  if ((flags & ~kHdf5FlagsKnown) != 0)
    return objects.damaged("has a superblock with invalid flags", is_old ? 20 : 11);
  // libhdf5 checks these flags from version 3.
  objects.was_not_closed_ = version == 3 && (flags & (kHdf5OpenForWriting | kHdf5OpenForBoth)) != 0;
  if (version == 1) {
    objects.tiles_ = 2u * cursor.take<std::uint16_t>();
    if (objects.tiles_ == 0) return objects.damaged("has chunk B-trees with empty nodes", 24);
    cursor.skip(2);
  }
  const auto base = cursor.take<std::uint64_t>();
  const auto extension = cursor.take<std::uint64_t>();
  objects.end_ = cursor.take<std::uint64_t>();
  const auto driver = is_old ? cursor.take<std::uint64_t>() : kHdf5NoAddress;
  if (is_old) cursor.skip(8);
  objects.root_ = cursor.take<std::uint64_t>();
  const auto root_kind = is_old ? cursor.take<std::uint32_t>() : 0;
  if (!cursor.ok()) return objects.damaged("is truncated inside its superblock", first.size());
  // libhdf5 rejects these first.
  if (is_old && (extension != kHdf5NoAddress || root_kind > kHdf5LastSymbolKind))
    return objects.damaged("has a superblock with fields that its version does not have", 0);
  if (!is_old) SHW_CHECK(objects.read_checked(0, cursor.at()));
  if (is_old) objects.described_.push_back({0, cursor.at()});
  if (driver != kHdf5NoAddress)
    return objects.not_read("is split over several files, which is not supported", 48);
  if (base != 0) return objects.not_read("begins after a user block", 0);
  if (extension != kHdf5NoAddress) SHW_CHECK(objects.read_extension(extension));
  return objects;
}

// Reads the superblock extension, which libhdf5 reads first and must understand. It may contain
// capacities of nodes, and a driver for several files.
Status Hdf5Objects::read_extension(std::uint64_t address) {
  SHW_TRY(auto all, messages(address));
  for (const Hdf5Message& message : all) {
    if (message.type == kHdf5Driver)
      return not_read("is split over several files, which is not supported", message.offset);
    if (message.type != kHdf5NodeSizes) continue;
    Hdf5Cursor cursor(message.body);
    const auto version = cursor.take<std::uint8_t>();
    tiles_ = 2u * cursor.take<std::uint16_t>();
    children_ = 2u * cursor.take<std::uint16_t>();
    symbols_ = 2u * cursor.take<std::uint16_t>();
    if (!cursor.ok() || version != 0 || tiles_ == 0 || children_ == 0 || symbols_ == 0)
      return damaged("has empty nodes", message.offset);
  }
  return {};
}

Status Hdf5Objects::add_messages(const Hdf5Block& block, const MessageHead& head,
                                 std::vector<Hdf5Message>& messages) const {
  const std::size_t size_of_head = head.type_bytes + 3 + head.passed_over;
  bool has_room = false;
  Hdf5Cursor cursor(block.bytes, block.first);
  while (cursor.left() >= size_of_head) {
    Hdf5Message message;
    message.type = static_cast<std::uint16_t>(cursor.consume_number_of_size(head.type_bytes));
    const auto size = cursor.take<std::uint16_t>();
    const auto flags = cursor.take<std::uint8_t>();
    message.is_shared = (flags & kHdf5Shared) != 0;
    has_room = has_room || message.type == kHdf5Nothing;
    cursor.skip(head.passed_over);
    message.offset = block.offset + cursor.at();
    if (!has_valid_flags(flags, message.type))
      return damaged("a message has flags that contradict each other", message.offset);
    if (size > cursor.left()) return damaged("a message reaches beyond its block", message.offset);
    // In version 1, sizes are multiples of eight.
    if (head.type_bytes == 2 && size % 8 != 0)
      return damaged("a message has an invalid end", message.offset);
    auto body = std::span(block.bytes).subspan(cursor.at(), size);
    if (!message.is_shared && !is_message(message.type, body, head.type_bytes == 2))
      return damaged(fmt::format("a message of type {} is invalid", message.type), message.offset);
    message.body.assign(body.begin(), body.end());
    cursor.skip(size);
    messages.push_back(std::move(message));
    if (messages.size() > kMaxHdf5Messages)
      return damaged("an object has too many messages", block.offset);
  }
  // Gaps too small for a message are allowed in version 2, if a null message would not fit
  // either.
  if ((head.type_bytes == 2 || has_room) && cursor.left() != 0)
    return damaged("an object ends inside of a message", block.offset + cursor.at());
  return {};
}

// The bytes before a checksum, after verifying it.
Result<Bytes> Hdf5Objects::read_checked(std::uint64_t offset, std::uint64_t length) {
  SHW_TRY(Bytes bytes, read_and_record(offset, length + kHdf5Checksum));
  const auto written = load_little<std::uint32_t>(bytes, static_cast<std::size_t>(length));
  bytes.resize(static_cast<std::size_t>(length));
  if (hdf5_checksum(bytes) != written)
    return damaged(fmt::format("{} bytes of metadata do not match their checksum", length), offset);
  return bytes;
}

Result<Hdf5Objects::Hdf5Block> Hdf5Objects::continuation_block(const Hdf5Message& message,
                                                               bool is_new) {
  Hdf5Cursor where(message.body);
  const auto at = where.take<std::uint64_t>(), size = where.take<std::uint64_t>();
  if (!where.ok() || size == 0 || size > kMaxHeader || (is_new && size < 4 + kHdf5Checksum))
    return damaged("an object's continuation is missing", message.offset);
  if (!is_new) {
    SHW_TRY(Bytes bytes, read_and_record(at, size));
    return Hdf5Block{at, 0, std::move(bytes)};
  }
  SHW_TRY(Bytes bytes, read_checked(at, size - kHdf5Checksum));
  if (!has_hdf5_signature(bytes, "OCHK")) return damaged("part of an object is missing", at);
  return Hdf5Block{at, 4, std::move(bytes)};
}

// Messages of the first block and its continuations. Their total size is limited, since overlapping
// blocks would multiply few bytes.
Result<std::vector<Hdf5Message>> Hdf5Objects::all_messages(const Hdf5Block& first,
                                                           const MessageHead& head) {
  std::vector<Hdf5Message> messages;
  SHW_CHECK(add_messages(first, head, messages));
  std::uint64_t taken = first.bytes.size();
  std::set<std::uint64_t> seen{first.offset};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].type != kHdf5Continuation) continue;
    SHW_TRY(Hdf5Block block, continuation_block(messages[i], head.type_bytes == 1));
    if (!seen.insert(block.offset).second)
      return damaged("an object contains a cycle", messages[i].offset);
    taken += block.bytes.size();
    if (taken > kMaxHeader)
      return damaged(fmt::format("an object has more than {} bytes of messages", kMaxHeader),
                     messages[i].offset);
    SHW_CHECK(add_messages(block, head, messages));
  }
  return messages;
}

Result<std::vector<Hdf5Message>> Hdf5Objects::new_messages(std::uint64_t address) {
  SHW_TRY(Bytes head,
          read(address, std::min<std::uint64_t>(std::min(source_->size(), end_) - address, 40)));
  Hdf5Cursor cursor(head, 4);
  const auto version = cursor.take<std::uint8_t>(), flags = cursor.take<std::uint8_t>();
  if (version != 2)
    return not_read(fmt::format("has an object header of version {}", version), address);
  constexpr unsigned kFlagsOfObject = 63;
  if ((flags & ~kFlagsOfObject) != 0) return damaged("an object header has invalid flags", address);
  if (flags & 0x20) cursor.skip(16);
  if (flags & 0x10) cursor.skip(4);
  const std::uint64_t length = cursor.consume_number_of_size(std::size_t{1} << (flags & 3));
  if (!cursor.ok() || length > kMaxHeader) return damaged("an object header is invalid", address);
  SHW_TRY(Bytes bytes, read_checked(address, cursor.at() + length));
  const bool has_order = (flags & 4) != 0;
  return all_messages({address, cursor.at(), std::move(bytes)}, {1, has_order ? 2u : 0u});
}

Result<std::vector<Hdf5Message>> Hdf5Objects::messages(std::uint64_t address) {
  SHW_TRY(Bytes head, read(address, 16));
  if (has_hdf5_signature(head, "OHDR")) return new_messages(address);
  Hdf5Cursor cursor(head);
  const auto version = cursor.take<std::uint8_t>();
  if (version != 1) return damaged("an object header is missing", address);
  cursor.skip(1);
  const auto count = cursor.take<std::uint16_t>();
  cursor.skip(4);
  const auto length = cursor.take<std::uint32_t>();
  if (length > kMaxHeader) return damaged("an object header is invalid", address);
  SHW_TRY(Bytes bytes, read_and_record(address + 16, length));
  described_.push_back({address, address + 16});
  SHW_TRY(auto messages, all_messages({address + 16, 0, std::move(bytes)}, {2, 3}));
  if (messages.size() != count)
    return damaged(
        fmt::format("an object has {} messages, but should have {}", messages.size(), count),
        address);
  return messages;
}

Result<std::vector<Hdf5Message>> Hdf5Objects::known(std::uint64_t address) {
  SHW_TRY(auto all, messages(address));
  if (!has(all, kHdf5Layout) && !has(all, kHdf5Datatype) && !is_group(all))
    return damaged("an object is neither a group nor a dataset", address);
  if (is_group(all) && (is_dataset(all) || has(all, kHdf5Datatype)))
    return damaged("an object is a group and a dataset or a type", address);
  return all;
}

bool Hdf5Objects::is_dataset(const std::vector<Hdf5Message>& messages) {
  return has(messages, kHdf5Layout) ||
         (has(messages, kHdf5Datatype) && has(messages, kHdf5Dataspace));
}

bool Hdf5Objects::is_group(const std::vector<Hdf5Message>& messages) {
  return has(messages, kHdf5SymbolTable) || has(messages, kHdf5LinkInfo);
}

}  // namespace shw
