// The records of a zip archive: their positions and contents. zip.cpp reads the directory.
#include <fmt/core.h>

#include "core/base/little_endian.h"
#include "core/formats/zip/crc32.h"
#include "core/formats/zip/inflating_stream.h"
#include "core/formats/zip/zip.h"
#include "core/io/read_through.h"

namespace shw {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
constexpr std::size_t kDescriptorSize = 16;
constexpr std::size_t kDescriptor64Size = 24;
constexpr std::uint16_t kFlagDescriptor = 8;
// Deflate expands at most 1032-fold.
constexpr std::uint64_t kDeflateRatio = 1032;

// `watch`, if not null, receives all bytes.
Result<std::uint32_t> read_crc32_of_range(const ByteSource& source, std::uint64_t offset,
                                          std::uint64_t length, Progress* progress,
                                          PayloadObserver* watch) {
  std::uint32_t crc = 0;
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    crc = crc32_of(bytes, crc);
    if (watch != nullptr) watch->add(bytes);
    return {};
  };
  parts.hole = [&](std::uint64_t zeros) -> Status {
    crc = crc32_of_zeros(crc, zeros);
    if (watch != nullptr) watch->add_zeros(zeros);
    return {};
  };
  SHW_CHECK(read_through(source, offset, length, parts, progress));
  if (watch != nullptr) watch->seen = true;
  return crc;
}

}  // namespace

Result<std::uint64_t> ZipReader::data_offset(const ZipEntry& entry) const {
  if (is_bare_) return entry.header_offset;
  Bytes scratch;
  SHW_TRY(BytesView local, view(entry.header_offset, kZipLocalSize + entry.name.size(), scratch));
  if (load_little<std::uint32_t>(local) != kLocalSignature)
    return damaged(entry.header_offset, "missing local header of the record \"" + entry.name +
                                            "\" at its recorded position");
  auto flags = load_little<std::uint16_t>(local, 6);
  auto method = load_little<std::uint16_t>(local, 8);
  std::size_t name_length = load_little<std::uint16_t>(local, 26);
  std::size_t extra_length = load_little<std::uint16_t>(local, 28);
  const std::string_view local_name(reinterpret_cast<const char*>(local.data()) + kZipLocalSize,
                                    entry.name.size());
  if (name_length != entry.name.size() || local_name != entry.name ||
      method != (entry.deflated ? 8 : 0))
    return damaged(entry.header_offset,
                   "the local header of \"" + entry.name + "\" contradicts the directory");
  // With a data descriptor, CRC and both lengths are zero here, as torch writes them.
  auto crc = load_little<std::uint32_t>(local, 14);
  auto stored = load_little<std::uint32_t>(local, 18);
  if ((flags & kFlagDescriptor) == 0 &&
      (crc != entry.crc || (stored != kZipWide32 && stored != entry.stored_length)))
    return damaged(entry.header_offset,
                   "the local header of \"" + entry.name + "\" contradicts the directory");
  std::uint64_t data = entry.header_offset + kZipLocalSize + name_length + extra_length;
  if (data > entry.limit || entry.stored_length > entry.limit - data)
    return damaged(entry.header_offset,
                   "the record \"" + entry.name + "\" overlaps the next record");
  if (crcs_absent_) SHW_CHECK(check_begin(entry, data, (flags & kFlagDescriptor) != 0));
  return base_ + data;
}

// torch trusts the local header for the begin of a record. Because nothing else validates its extra
// field length, the record must be followed by a miniz descriptor (with lengths of 32 or 64 bits)
// or by the next header.
Status ZipReader::check_begin(const ZipEntry& entry, std::uint64_t data,
                              bool has_descriptor) const {
  const std::uint64_t behind = entry.limit - data - entry.stored_length;
  bool is_there =
      has_descriptor ? behind == kDescriptorSize || behind == kDescriptor64Size : behind == 0;
  if (is_there && has_descriptor) {
    Bytes scratch;
    SHW_TRY(BytesView bytes, view(data + entry.stored_length, behind, scratch));
    const bool is_wide = behind == kDescriptor64Size;
    auto length_at = [&](std::size_t at) {
      return is_wide ? load_little<std::uint64_t>(bytes, at)
                     : std::uint64_t{load_little<std::uint32_t>(bytes, at)};
    };
    is_there = load_little<std::uint32_t>(bytes) == kDescriptorSignature &&
               length_at(8) == entry.stored_length && length_at(is_wide ? 16 : 12) == entry.length;
  }
  if (is_there) return {};
  return damaged(entry.header_offset,
                 "the record \"" + entry.name +
                     "\" does not end where its local header says: its start is wrong or the bytes "
                     "after it are damaged, and the archive has no checksums to decide");
}

Result<Bytes> ZipReader::read(const ZipEntry& entry, std::uint64_t limit) const {
  SHW_TRY(std::uint64_t data, data_offset(entry));
  if (entry.length > limit)
    return unsupported(entry.header_offset,
                       fmt::format("the record \"{}\" takes {} bytes; at most {} are read",
                                   entry.name, entry.length, limit));
  if (entry.deflated) {
    SHW_TRY(auto inflated, source_of(entry));
    return read_bytes(*inflated, 0, entry.length);
  }
  Bytes scratch;
  SHW_TRY(BytesView bytes, view(data - base_, entry.stored_length, scratch));
  if (!scratch.empty()) return scratch;
  return Bytes(bytes.begin(), bytes.end());
}

Result<std::shared_ptr<const ByteSource>> ZipReader::source_of(const ZipEntry& entry) const {
  SHW_TRY(std::uint64_t data, data_offset(entry));
  if (!entry.deflated) return window(source_, data, entry.stored_length);
  if (entry.length / kDeflateRatio > entry.stored_length + 1)
    return damaged(entry.header_offset, "the record \"" + entry.name +
                                            "\" announces more bytes than deflate can expand to");
  const DeflatedBytes record{"the deflated record \"" + entry.name + "\"", data,
                             entry.stored_length, entry.length};
  auto start = [source = source_, record] { return inflating_stream(source, record); };
  if (entry.length == 0) {  // empty records are never read, so check here
    SHW_TRY(auto stream, start());
    SHW_CHECK(stream->read({}));
  }
  return streamed_source(source_->name(), entry.length, std::move(start));
}

Result<std::uint32_t> ZipReader::crc_of(const ZipEntry& entry, Progress* progress,
                                        PayloadObserver* watch) const {
  SHW_TRY(std::uint64_t data, data_offset(entry));
  if (!entry.deflated) return crc_of_range(*source_, data, entry.stored_length, progress, watch);
  SHW_TRY(auto inflated, source_of(entry));
  const bool is_watched =
      watch != nullptr && watch->offset == data && watch->length == entry.length;
  return read_crc32_of_range(*inflated, 0, entry.length, progress, is_watched ? watch : nullptr);
}

Result<std::uint32_t> crc_of_range(const ByteSource& source, std::uint64_t offset,
                                   std::uint64_t length, Progress* progress,
                                   PayloadObserver* watch) {
  const bool is_watched = watch != nullptr && watch->offset == offset && watch->length == length;
  return read_crc32_of_range(source, offset, length, progress, is_watched ? watch : nullptr);
}

}  // namespace shw
