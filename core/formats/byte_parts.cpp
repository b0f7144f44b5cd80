#include "core/formats/byte_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint32_t kLocalSign = 0x04034b50, kEntrySign = 0x02014b50, kEndSign = 0x06054b50;
constexpr std::uint32_t kWideEndSign = 0x06064b50, kLocatorSign = 0x07064b50;
constexpr std::uint32_t kDescriptorSign = 0x08074b50;
constexpr std::uint64_t kLocalBytes = 30, kEntryBytes = 46;
// Limit of a zip directory: torch's takes 66 bytes per record, so this suffices for 60,000 tensors.
constexpr std::uint64_t kMaxDirectory = 4 << 20;
// Bytes scanned without an end record: torch's headers are in the first 704 bytes of an item.
constexpr std::uint64_t kMaxScanned = 64 << 10;

std::uint32_t signature_at(BytesView bytes, std::uint64_t at) {
  return bytes.size() >= 4 && at <= bytes.size() - 4 ? load_little<std::uint32_t>(bytes, at) : 0;
}

std::string name_at(BytesView bytes, std::uint64_t at, std::uint64_t length) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, static_cast<std::size_t>(length)};
}

// Appends adjacent parts.
class Parts {
 public:
  explicit Parts(std::uint64_t first, std::uint64_t last) : at_(first), last_(last) {}
  std::uint64_t at() const { return at_; }
  void until(std::uint64_t end, PartKind kind, std::string name) {
    end = std::min(end, last_);
    if (end <= at_) return;
    made.push_back({at_, end, kind, std::move(name)});
    at_ = end;
  }
  std::vector<BytePart> made;

 private:
  std::uint64_t at_, last_;
};

// The directory and everything after it; `bytes` begin at `base`.
void add_central_directory(Parts& parts, BytesView bytes, std::uint64_t base) {
  std::uint64_t at = 0;
  while (bytes.size() - at >= 22) {
    BytesView rest = bytes.subspan(at);
    std::uint32_t sign = signature_at(rest, 0);
    std::uint64_t length = 0;
    PartKind kind = PartKind::kTrailer;
    std::string name;
    if (sign == kEntrySign && rest.size() >= kEntryBytes) {
      std::uint64_t name_length = load_little<std::uint16_t>(rest, 28);
      length = kEntryBytes + name_length + load_little<std::uint16_t>(rest, 30) +
               load_little<std::uint16_t>(rest, 32);
      if (length > rest.size()) break;
      kind = PartKind::kIndex;
      name = "central entry of " + name_at(rest, kEntryBytes, name_length);
    } else if (sign == kWideEndSign && rest.size() >= 56) {
      auto wide = checked_add(load_little<std::uint64_t>(rest, 4), std::uint64_t{12});
      if (!wide || *wide > rest.size()) break;
      length = *wide;
      name = "zip64 end record";
    } else if (sign == kLocatorSign) {
      length = 20;
      name = "zip64 locator";
    } else if (sign == kEndSign) {
      length = std::min<std::uint64_t>(rest.size(), 22 + load_little<std::uint16_t>(rest, 20));
      name = "end record";
    } else {
      break;
    }
    at += length;
    parts.until(base + at, kind, std::move(name));
    if (bytes.size() < at) break;
  }
  parts.until(base + bytes.size(), PartKind::kTrailer, "after the archive's directory");
}

Result<std::vector<BytePart>> archive_parts(const ByteSource& source, const ZipReader& zip,
                                            FileRange range) {
  std::uint64_t base = range.offset, end = range.offset + range.length, directory = base;
  std::vector<const ZipEntry*> entries;
  for (const ZipEntry& entry : zip.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->header_offset < b->header_offset;
  });
  Parts parts(base, end);
  for (const ZipEntry* entry : entries) {
    parts.until(base + entry->header_offset, PartKind::kPadding, "between records");
    std::uint64_t limit = base + entry->limit;
    auto data = zip.data_offset(*entry);
    if (!data) {
      parts.until(limit, PartKind::kHeader, entry->name + ", whose local header is damaged");
    } else {
      parts.until(*data, PartKind::kHeader, "local header of " + entry->name);
      parts.until(*data + entry->stored_length, PartKind::kPayload, entry->name);
      if (limit >= parts.at() + 4) {
        SHW_TRY(Bytes first, read_bytes(source, parts.at(), 4));
        bool described = signature_at(first, 0) == kDescriptorSign;
        parts.until(limit, described ? PartKind::kTrailer : PartKind::kPadding,
                    described ? "data descriptor of " + entry->name : "between records");
      }
      parts.until(limit, PartKind::kPadding, "between records");
    }
    directory = std::max(directory, limit);
  }
  std::uint64_t known = std::min(end - directory, kMaxDirectory);
  SHW_TRY(Bytes bytes, read_bytes(source, directory, known));
  add_central_directory(parts, bytes, directory);
  parts.until(end, PartKind::kIndex, "more of the archive's directory");
  return std::move(parts.made);
}

// Searches the next signature after a record of unknown length.
std::uint64_t find_next_signature(BytesView bytes, std::uint64_t at) {
  for (; at + 4 <= bytes.size(); ++at) {
    std::uint32_t sign = signature_at(bytes, at);
    if (sign == kLocalSign || sign == kDescriptorSign || sign == kEntrySign) return at;
  }
  return bytes.size();
}

// Parses local headers sequentially, if the end of the archive is missing or damaged.
Result<std::vector<BytePart>> scan_parts_of_damaged_archive(const ByteSource& source,
                                                            FileRange range) {
  std::uint64_t base = range.offset, end = range.offset + range.length;
  SHW_TRY(Bytes bytes, read_bytes(source, base, std::min(range.length, kMaxScanned)));
  Parts parts(base, end);
  std::string name;
  std::uint64_t at = 0;
  while (at + 4 <= bytes.size()) {
    std::uint32_t sign = signature_at(bytes, at);
    if (sign == kDescriptorSign) {
      std::uint64_t next = find_next_signature(bytes, at + 4);
      parts.until(base + next, PartKind::kTrailer, "data descriptor of " + name);
      at = next;
      continue;
    }
    if (sign != kLocalSign || bytes.size() - at < kLocalBytes) break;
    std::uint64_t name_length = load_little<std::uint16_t>(bytes, at + 26);
    std::uint64_t data =
        at + kLocalBytes + name_length + load_little<std::uint16_t>(bytes, at + 28);
    if (at + kLocalBytes + name_length > bytes.size()) break;
    name = name_at(bytes, at + kLocalBytes, name_length);
    parts.until(base + data, PartKind::kHeader, "local header of " + name);
    if (data >= bytes.size()) {
      at = data;
      break;
    }
    std::uint64_t next = find_next_signature(bytes, data);
    if (next == bytes.size()) break;
    parts.until(base + next, PartKind::kPayload, name);
    at = next;
  }
  parts.until(end, PartKind::kPayload,
              name.empty() ? "an archive about which nothing is known"
                           : name + ", and all that follows it");
  return std::move(parts.made);
}

// A safetensors header: a length, then JSON of that length.
std::optional<std::uint64_t> safetensors_header_length(const ByteSource& source) {
  if (source.size() < 10) return std::nullopt;
  auto bytes = read_bytes(source, 0, 9);
  if (!bytes || (*bytes)[8] != std::byte{'{'}) return std::nullopt;
  auto length = load_little<std::uint64_t>(*bytes);
  if (length > source.size() - 8) return std::nullopt;
  return 8 + length;
}

}  // namespace

Result<ByteParts> byte_parts(const ByteSource& source, FileRange range) {
  ByteParts found;
  if (range.offset > source.size() || range.length > source.size() - range.offset)
    return fail(ErrorKind::kUsage, "the range reaches beyond the file",
                {source.name(), range.offset});
  Bytes first;
  if (range.length >= 4) {
    SHW_TRY(first, read_bytes(source, range.offset, 4));
  }
  if (signature_at(first, 0) == kLocalSign) {
    found.is_archive = true;
    // Non-owning: the reader keeps its source alive.
    std::shared_ptr<const ByteSource> lent(std::shared_ptr<void>(), &source);
    auto zip = ZipReader::open(lent, range.offset, range.length);
    if (zip) {
      SHW_TRY(found.parts, archive_parts(source, *zip, range));
      return found;
    }
    if (zip.error().kind == ErrorKind::kIo) return tl::unexpected<Error>(std::move(zip).error());
    found.damage = std::move(zip).error();
    SHW_TRY(found.parts, scan_parts_of_damaged_archive(source, range));
    return found;
  }
  Parts parts(range.offset, range.offset + range.length);
  auto head = range.offset == 0 ? safetensors_header_length(source) : std::nullopt;
  if (head) {
    parts.until(8, PartKind::kHeader, "length of the header");
    parts.until(*head, PartKind::kHeader, "header");
  }
  parts.until(range.offset + range.length, PartKind::kPayload, head ? "payloads" : "payload");
  found.parts = std::move(parts.made);
  return found;
}

}  // namespace shw
