#include "core/formats/zip/zip.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include "core/base/checked.h"
#include "core/base/little_endian.h"

namespace shw {
namespace {

constexpr std::uint32_t kDirectorySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::size_t kDirectorySize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kEnd64Size = 56;
constexpr std::size_t kLocator64Size = 20;
constexpr std::uint16_t kWide16 = 0xFFFFu;
// Encryption, strong encryption, masked directory, patch data: miniz, and so torch, refuses
// archives with these flags.
constexpr std::uint16_t kFlagsEncrypted = 1 << 0 | 1 << 6 | 1 << 13;
constexpr std::uint16_t kFlagPatch = 1 << 5;
// The MS-DOS directory attribute.
constexpr std::uint32_t kAttributeFolder = 1 << 4;

// Small items (mostly 1.2 to 1.6 KB of headers and a scalar) are read at once, others by
// tail and head. torch's directory of seven records takes 463 bytes, its first local headers
// 704.
constexpr std::uint64_t kWholeRead = 16 << 10;
constexpr std::uint64_t kTailRead = 4 << 10;
constexpr std::uint64_t kHeadRead = 2 << 10;
// An item has seven records, a model file a hundred thousand.
constexpr std::size_t kLinearSearch = 32;

// miniz checks these numbers first and refuses the archive.
constexpr const char* kOtherDisks = "the archive is marked as split over several disks";

// How far from the end miniz, and so torch, searches the end record: windows of 4 KiB that overlap
// by 3 bytes, until one of them covers 64 KiB and a record. torch fails if the next window would
// begin before the archive.
std::uint64_t zip_end_search_length(std::uint64_t length) {
  constexpr std::uint64_t kWindow = 4096, kApart = kWindow - 3, kMaxSteps = 16;
  if (length < kWindow) return length;
  return kWindow + kApart * std::min(kMaxSteps, (length - kWindow) / kApart);
}

std::string_view text_of(BytesView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A zip64 extra field holds 64-bit values for the saturated fields, in this order. False if one is
// missing.
bool widen(BytesView extra, std::initializer_list<std::uint64_t*> fields) {
  bool wanted = std::any_of(fields.begin(), fields.end(),
                            [](const std::uint64_t* field) { return *field == kZipWide32; });
  if (!wanted) return true;
  for (std::size_t at = 0; extra.size() - at >= 4;) {
    auto id = load_little<std::uint16_t>(extra, at);
    std::size_t size = load_little<std::uint16_t>(extra, at + 2);
    at += 4;
    if (size > extra.size() - at) return false;
    if (id == 1) {
      BytesView body = extra.subspan(at, size);
      for (std::uint64_t* field : fields) {
        if (*field != kZipWide32) continue;
        if (body.size() < 8) return false;
        *field = load_little<std::uint64_t>(body);
        body = body.subspan(8);
      }
      return true;
    }
    at += size;
  }
  // No zip64 field: the value really is 2^32 - 1.
  return true;
}

}  // namespace

tl::unexpected<Error> ZipReader::damaged(std::uint64_t at, std::string message) const {
  return fail(ErrorKind::kDamaged, std::move(message), {source_->name(), base_ + at});
}

tl::unexpected<Error> ZipReader::unsupported(std::uint64_t at, std::string message) const {
  return fail(ErrorKind::kUnsupported, std::move(message), {source_->name(), base_ + at});
}

std::uint64_t zip_tail_length(std::uint64_t length) {
  return length <= kWholeRead ? length : kTailRead;
}

std::uint64_t zip_head_length(std::uint64_t length) {
  return std::min(kHeadRead, length);
}

Result<ZipReader> ZipReader::open(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                  std::uint64_t length, ZipEnds read) {
  ZipReader reader;
  reader.source_ = std::move(source);
  reader.base_ = base;
  reader.length_ = length;
  auto end = checked_add(base, length);
  if (!end || *end > reader.source_->size()) {
    return fail(ErrorKind::kDamaged,
                fmt::format("ends at byte {}, but the item is recorded with {} bytes from byte {}",
                            reader.source_->size(), length, base),
                {reader.source_->name(), base});
  }
  if (length < kEndSize)
    return reader.damaged(0, fmt::format("{} bytes are too few for an archive", length));
  reader.head_ = std::move(read.head);
  reader.tail_ = std::move(read.tail);
  if (reader.tail_.empty()) {
    const std::uint64_t tail = zip_tail_length(length);
    SHW_TRY(reader.tail_, read_bytes(*reader.source_, base + length - tail, tail));
  }
  SHW_TRY(End found, reader.find_end());
  SHW_TRY(found, reader.widen_end(found));
  SHW_CHECK(reader.read_directory(found));
  return reader;
}

std::optional<BytesView> ZipReader::cached_bytes(std::uint64_t at, std::uint64_t length) const {
  if (at > length_ || length > length_ - at) return std::nullopt;
  const std::uint64_t tail_begin = length_ - tail_.size();
  if (at >= tail_begin) return BytesView(tail_).subspan(at - tail_begin, length);
  if (at + length <= head_.size()) return BytesView(head_).subspan(at, length);
  return std::nullopt;
}

Result<BytesView> ZipReader::view(std::uint64_t at, std::uint64_t length, Bytes& scratch) const {
  if (at > length_ || length > length_ - at)
    return damaged(at, fmt::format("the item ends before the {} bytes needed here", length));
  if (auto held = cached_bytes(at, length)) return *held;
  if (head_.empty() && at + length <= kHeadRead) {
    SHW_TRY(head_, read_bytes(*source_, base_, zip_head_length(length_)));
    return BytesView(head_).subspan(at, length);
  }
  SHW_TRY(scratch, read_bytes(*source_, base_ + at, length));
  return BytesView(scratch);
}

Result<ZipReader::End> ZipReader::find_end() const {
  auto parse = [](BytesView bytes, std::uint64_t position) {
    return End{position,
               load_little<std::uint16_t>(bytes, 10),
               load_little<std::uint32_t>(bytes, 16),
               load_little<std::uint32_t>(bytes, 12),
               {load_little<std::uint16_t>(bytes, 4), load_little<std::uint16_t>(bytes, 6),
                load_little<std::uint16_t>(bytes, 8)}};
  };
  auto is_end = [](BytesView bytes) { return load_little<std::uint32_t>(bytes) == kEndSignature; };
  BytesView last = BytesView(tail_).last(kEndSize);
  if (is_end(last)) return parse(last, length_ - kEndSize);

  Bytes scratch;
  const std::uint64_t reach = zip_end_search_length(length_);
  SHW_TRY(BytesView bytes, view(length_ - reach, reach, scratch));
  for (std::size_t at = bytes.size() - kEndSize; at-- > 0;) {
    if (is_end(bytes.subspan(at))) return parse(bytes.subspan(at), length_ - reach + at);
  }
  const bool is_all = base_ == 0 && length_ == source_->size();
  return damaged(length_ - kEndSize, is_all
                                         ? "the file does not end with a zip archive's end record: "
                                           "it is truncated, or its save was interrupted"
                                         : "the item does not end with a zip archive's end record");
}

// Uses the zip64 end record if it exists (torch always writes it).
Result<ZipReader::End> ZipReader::widen_end(End end) const {
  bool saturated = end.entries == kWide16 || end.directory_offset == kZipWide32 ||
                   end.directory_length == kZipWide32;
  bool room = end.position >= kLocator64Size + kEnd64Size;
  Bytes scratch;
  std::uint64_t locator_at = end.position - (room ? kLocator64Size : 0);
  if (room) {
    SHW_TRY(BytesView locator, view(locator_at, kLocator64Size, scratch));
    if (load_little<std::uint32_t>(locator) == kLocator64Signature) {
      // Loads all values first, because further reads overwrite the bytes of `locator`.
      auto at = load_little<std::uint64_t>(locator, 8);
      auto disks = load_little<std::uint32_t>(locator, 16);
      if (at > locator_at - kEnd64Size)
        return damaged(locator_at, "the zip64 end record is recorded beyond the item");
      SHW_TRY(BytesView wide, view(at, kEnd64Size, scratch));
      if (load_little<std::uint32_t>(wide) != kEnd64Signature)
        return damaged(at, "the zip64 end record is not at its recorded position");
      if (load_little<std::uint64_t>(wide, 4) < kEnd64Size - 12)
        return damaged(at, "the zip64 end record is recorded as too short");
      if (disks != 1) return damaged(locator_at, kOtherDisks);
      return End{at,
                 load_little<std::uint64_t>(wide, 32),
                 load_little<std::uint64_t>(wide, 48),
                 load_little<std::uint64_t>(wide, 40),
                 {load_little<std::uint32_t>(wide, 16), load_little<std::uint32_t>(wide, 20),
                  load_little<std::uint64_t>(wide, 24)}};
    }
  }
  if (saturated) return damaged(end.position, "the zip64 end record is missing");
  return end;
}

Status ZipReader::read_directory(const End& end) {
  const End::Disk& disk = end.disk;
  bool alone = disk.number == disk.of_directory && disk.number <= 1 && disk.entries == end.entries;
  if (!alone) return damaged(end.position, kOtherDisks);
  if (end.directory_offset > end.position ||
      end.directory_length > end.position - end.directory_offset)
    return damaged(end.position, "the archive's directory is recorded beyond its end record");
  if (end.entries > end.directory_length / kDirectorySize)
    return damaged(end.position, "more records are announced than the directory can hold");
  if (end.entries == 0) return damaged(end.position, "the archive holds no record");
  Bytes scratch;
  SHW_TRY(BytesView directory, view(end.directory_offset, end.directory_length, scratch));
  entries_.reserve(end.entries);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < end.entries; ++i) {
    SHW_TRY(ZipEntry entry, parse_entry(directory, at, end.directory_offset));
    entries_.push_back(std::move(entry));
  }
  directory_offset_ = end.directory_offset;
  SHW_CHECK(check_overlap(end.directory_offset));
  SHW_CHECK(check_names());
  crcs_absent_ = std::all_of(entries_.begin(), entries_.end(),
                             [](const ZipEntry& entry) { return entry.crc == 0; });
  index_entries();
  return {};
}

ZipReader ZipReader::from_unarchived_records(std::shared_ptr<const ByteSource> source,
                                             std::vector<ZipEntry> entries) {
  ZipReader reader;
  reader.length_ = reader.directory_offset_ = source->size();
  reader.source_ = std::move(source);
  reader.entries_ = std::move(entries);
  reader.crcs_absent_ = reader.is_bare_ = true;
  reader.index_entries();
  return reader;
}

void ZipReader::index_entries() {
  const std::string& first = entries_.front().name;
  std::size_t slash = first.find('/');
  if (slash != std::string::npos) top_ = first.substr(0, slash + 1);
  if (entries_.size() < kLinearSearch) return;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) by_name_.try_emplace(entries_[i].name, i);
}

Result<ZipEntry> ZipReader::parse_entry(BytesView directory, std::size_t& at,
                                        std::uint64_t base) const {
  if (directory.size() - at < kDirectorySize)
    return damaged(base + at, "the archive's directory ends inside a record");
  BytesView fixed = directory.subspan(at, kDirectorySize);
  if (load_little<std::uint32_t>(fixed) != kDirectorySignature)
    return damaged(base + at, "a directory record is not at its recorded position");
  auto flags = load_little<std::uint16_t>(fixed, 8);
  auto method = load_little<std::uint16_t>(fixed, 10);
  std::size_t name_length = load_little<std::uint16_t>(fixed, 28);
  std::size_t extra_length = load_little<std::uint16_t>(fixed, 30);
  std::size_t comment_length = load_little<std::uint16_t>(fixed, 32);
  if (directory.size() - at - kDirectorySize < name_length + extra_length + comment_length)
    return damaged(base + at, "a directory record runs past the directory");

  ZipEntry entry;
  entry.name = text_of(directory.subspan(at + kDirectorySize, name_length));
  entry.listed_at = base + at;
  entry.crc = load_little<std::uint32_t>(fixed, kZipListedCrc);
  entry.stored_length = load_little<std::uint32_t>(fixed, 20);
  entry.length = load_little<std::uint32_t>(fixed, 24);
  entry.header_offset = load_little<std::uint32_t>(fixed, 42);
  BytesView extra = directory.subspan(at + kDirectorySize + name_length, extra_length);
  if (!widen(extra, {&entry.length, &entry.stored_length, &entry.header_offset}))
    return damaged(base + at, "the zip64 field of \"" + entry.name + "\" is truncated");
  // torch.save never sets and torch.load refuses these flags: damage.
  if ((flags & kFlagsEncrypted) != 0)
    return damaged(base + at, "the record \"" + entry.name + "\" is marked as encrypted");
  if ((flags & kFlagPatch) != 0)
    return damaged(base + at, "the record \"" + entry.name + "\" is marked as a patch");
  if (load_little<std::uint16_t>(fixed, 34) > 1)
    return damaged(base + at,
                   "the record \"" + entry.name + "\" is marked as being on another disk");
  if ((load_little<std::uint32_t>(fixed, 38) & kAttributeFolder) != 0 && entry.length != 0)
    return damaged(
        base + at,
        "the record \"" + entry.name +
            "\" is marked as a folder: torch reads none of it and leaves uninitialized memory");
  if (method != 0 && method != 8)
    return damaged(
        base + at,
        fmt::format(
            "the record \"{}\" is marked as compressed by method {}; torch stores its records",
            entry.name, method));
  entry.deflated = method == 8;
  if (!entry.deflated && entry.length != entry.stored_length)
    return damaged(base + at, "the stored record \"" + entry.name + "\" has two different lengths");
  at += kDirectorySize + name_length + extra_length + comment_length;
  return entry;
}

// Records must be adjacent before the directory: overlapping records let a small file expand to a
// large one.
Status ZipReader::check_overlap(std::uint64_t directory_offset) {
  std::vector<ZipEntry*> by_offset;
  for (ZipEntry& entry : entries_) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->header_offset < b->header_offset;
  });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    ZipEntry& entry = *by_offset[i];
    std::uint64_t limit = entry.limit =
        i + 1 < by_offset.size() ? by_offset[i + 1]->header_offset : directory_offset;
    std::uint64_t header = kZipLocalSize + entry.name.size();
    if (entry.header_offset > directory_offset || limit > directory_offset ||
        limit - entry.header_offset < header ||
        limit - entry.header_offset - header < entry.stored_length)
      return damaged(std::min(entry.header_offset, length_),
                     fmt::format("the record \"{}\" ({} bytes) overlaps the next record",
                                 entry.name, entry.stored_length));
  }
  return {};
}

// miniz searches names in a sorted list, ignoring case: which of two equal records torch reads
// depends on the number of other records.
Status ZipReader::check_names() const {
  auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  auto twice = [&](const ZipEntry& entry) {
    return damaged(entry.listed_at, "two records are called \"" + entry.name +
                                        "\" (ignoring case): torch may read either");
  };
  if (entries_.size() < kLinearSearch) {
    auto is_same = [&](const ZipEntry& a, const ZipEntry& b) {
      return std::equal(a.name.rbegin(), a.name.rend(), b.name.rbegin(), b.name.rend(),
                        [&](char x, char y) { return small(x) == small(y); });
    };
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (is_same(entries_[i], entries_[j])) return twice(entries_[i]);
      }
    }
    return {};
  }
  std::unordered_set<std::string> names;
  for (const ZipEntry& entry : entries_) {
    std::string name = entry.name;
    std::transform(name.begin(), name.end(), name.begin(), small);
    if (!names.insert(std::move(name)).second) return twice(entry);
  }
  return {};
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  if (!by_name_.empty()) {
    auto found = by_name_.find(top_ + std::string(name));
    return found == by_name_.end() ? nullptr : &entries_[found->second];
  }
  for (const ZipEntry& entry : entries_) {
    if (entry.name.size() == top_.size() + name.size() && entry.name.starts_with(top_) &&
        entry.name.ends_with(name))
      return &entry;
  }
  return nullptr;
}

const ZipEntry* ZipReader::find_storage(std::string_view key) const {
  return find(storage_folder_ + std::string(key));
}

}  // namespace shw
