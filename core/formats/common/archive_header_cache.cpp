#include "core/formats/common/archive_header_cache.h"

#include <algorithm>
#include <cstring>

#include "core/base/little_endian.h"
#include "core/formats/common/torch_archive_check.h"

namespace shw {
namespace {

// Limit of kept forms: chunks of a dense layer have seven shapes, other layers a few more.
constexpr std::size_t kMaxForms = 32;
constexpr std::uint64_t kCrcLength = 4;
constexpr std::uint64_t kFlagsAt = 6;  // in a local header
constexpr std::uint16_t kDescriptorFollows = 8;

// True if the local header leaves the checksum to the directory and the data descriptor.
bool has_descriptor(const ZipReader& zip, const ZipEntry& entry) {
  auto flags = zip.cached_bytes(entry.header_offset + kFlagsAt, 2);
  return flags && (load_little<std::uint16_t>(*flags) & kDescriptorFollows) != 0;
}

}  // namespace

bool ArchiveHeaderCache::Form::add(const ZipReader& zip, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return begin == end;
  auto held = zip.cached_bytes(begin, end - begin);
  if (!held) return false;
  parts.push_back({begin, bytes.size(), held->size()});
  bytes.insert(bytes.end(), held->begin(), held->end());
  return true;
}

// The bytes that open_torch_item() reads: directory and end, seven local headers, three
// records. Checksums are compared only with the pickle's bytes and with local headers without
// descriptor.
std::optional<ArchiveHeaderCache::Form> ArchiveHeaderCache::form_of(const TorchItem& item) {
  const ZipReader& zip = item.zip;
  const ZipEntry* pickle = zip.find("data.pkl");
  const ZipEntry* order = zip.find("byteorder");
  const ZipEntry* payload = zip.find_storage(item.storage_key);
  const ZipEntry* version = find_version(zip);
  // If all checksums are zero they are absent, which may differ in another archive; this form
  // requires that they are present.
  bool tells = pickle != nullptr && payload != nullptr && pickle->crc != 0 && !pickle->deflated &&
               !payload->deflated && (order == nullptr || !order->deflated) && version != nullptr &&
               !version->deflated;
  if (!tells) return std::nullopt;
  Form form{zip.length(), item.header, payload->listed_at + kZipListedCrc};
  form.header.payload_offset -= zip.base();
  for (const ZipEntry* record : {pickle, order, payload, version}) {
    if (record == nullptr) continue;
    auto data = zip.data_offset(*record);
    if (!data) return std::nullopt;
    std::uint64_t end = *data - zip.base() + (record == payload ? 0 : record->stored_length);
    if (!form.add(zip, record->header_offset, end)) return std::nullopt;
  }
  const auto said = torch_records(zip);
  for (const ZipEntry* record : said) {
    if (record == nullptr) continue;
    auto data = zip.data_offset(*record);
    if (!data || !form.add(zip, record->header_offset, *data - zip.base())) return std::nullopt;
  }
  std::uint64_t from = zip.directory_offset();
  for (const ZipEntry& entry : zip.entries()) {
    const bool has_local_header_read =
        &entry == payload || std::find(said.begin(), said.end(), &entry) != said.end();
    bool counts = &entry == pickle || &entry == order || &entry == version ||
                  (has_local_header_read && !has_descriptor(zip, entry));
    if (counts) continue;
    const std::uint64_t crc = entry.listed_at + kZipListedCrc;
    if (!form.add(zip, from, crc)) return std::nullopt;
    from = crc + kCrcLength;
  }
  if (!form.add(zip, from, zip.length())) return std::nullopt;
  return form;
}

void ArchiveHeaderCache::keep(const TorchItem& item) {
  auto form = form_of(item);
  if (!form) return;
  if (forms_.size() < kMaxForms) {
    forms_.push_back(std::move(*form));
  } else {
    forms_[next_++ % kMaxForms] = std::move(*form);
  }
}

// Each part is completely within one of the two ends, as Form::add() ensured.
bool ArchiveHeaderCache::Form::matches_tail(BytesView tail) const {
  const std::uint64_t begin = length - tail.size();
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return part.at < begin || same_bytes(tail.subspan(part.at - begin, part.length),
                                         BytesView(bytes).subspan(part.from, part.length));
  });
}

bool ArchiveHeaderCache::Form::matches_head(BytesView head) const {
  const std::uint64_t begin = length - zip_tail_length(length);
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return part.at >= begin || same_bytes(head.subspan(part.at, part.length),
                                          BytesView(bytes).subspan(part.from, part.length));
  });
}

Result<std::optional<ItemHeader>> ArchiveHeaderCache::find(const ByteSource& source,
                                                           std::uint64_t base, std::uint64_t length,
                                                           ZipEnds& ends) const {
  const std::uint64_t tail = zip_tail_length(length);
  if (base > source.size() || length > source.size() - base) return std::optional<ItemHeader>();
  for (const Form& form : forms_) {
    if (form.length != length) continue;
    if (ends.tail.empty()) {
      ends.tail.resize(tail);
      SHW_CHECK(source.read(base + length - tail, ends.tail));
    }
    if (!form.matches_tail(ends.tail)) continue;
    if (tail != length && ends.head.empty()) {
      ends.head.resize(zip_head_length(length));
      SHW_CHECK(source.read(base, ends.head));
    }
    if (!form.matches_head(ends.head)) continue;
    ItemHeader header = form.header;
    header.payload_offset += base;
    auto crc = BytesView(ends.tail).subspan(form.crc_at - (length - tail), kCrcLength);
    header.payload_crc = load_little<std::uint32_t>(crc);
    return std::optional<ItemHeader>(std::move(header));
  }
  return std::optional<ItemHeader>();
}

}  // namespace shw
