// Writes archives like torch's copy of miniz, including the serialization id of a single tensor
// (tests compare bytes with torch 2.15).
#include "core/formats/common/torch_archive.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/common/byte_buffer.h"
#include "core/formats/zip/crc32.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint32_t kWide = 0xFFFFFFFFu;
constexpr std::uint64_t kRecordHeaderSize = 30;
constexpr std::uint16_t kFlagUtf8 = 0x0800;
constexpr std::uint16_t kFlagSizesFollow = 0x0008;
// torch hashes the set of record names with std::hash. For a single tensor the names and thus the
// hash are constant (libstdc++, x86-64). Readers accept any forty digits: other archives get a
// portable hash.
constexpr std::uint64_t kTensorNames = 15728199511854643026u;

// The zip structure around the records, as torch's copy of miniz writes it.
class ArchiveWriter {
 public:
  ArchiveWriter(ByteSink& sink, std::string top)
      : sink_(sink), base_(sink.position()), top_(std::move(top) + "/") {}

  Status add(std::string_view name, const PayloadWriter& payload, bool counts = true) {
    std::uint64_t length = payload.length;
    Record record{top_ + std::string(name), position(), length, 0};
    SHW_CHECK(write_local(record));
    std::uint64_t before = sink_.position();
    record.bytes_at = position();
    SHW_TRY(record.crc, payload.write(sink_));
    if (sink_.position() - before != length)
      return fail(ErrorKind::kUsage, fmt::format("the payload of {} bytes was written as {}",
                                                 length, sink_.position() - before));
    record.descriptor_at = position();
    SHW_CHECK(write_descriptor(record));
    record.mixed_before = crc_hash_;
    // The serialization id does not include empty records.
    record.is_mixed = counts && length != 0;
    if (record.is_mixed) hash_combine_crc(crc_hash_, record.crc);
    records_.push_back(std::move(record));
    return {};
  }

  // Twenty digits for the names, twenty for the CRCs of all previous records.
  std::string serialization_id() const {
    std::uint64_t names = kTensorNames;
    if (!is_of_one_tensor()) {
      names = 0;
      for (const Record& record : records_)
        hash_combine_crc(names, crc32_of(std::as_bytes(std::span(record.name))));
    }
    return fmt::format("{:020}{:020}", names, crc_hash_);
  }

  // Writes the directory and three end records; returns the archive's length.
  Result<std::uint64_t> finish() {
    std::uint64_t begin = position();
    ByteBuffer directory;
    for (Record& record : records_) {
      record.listed_at = begin + directory.view().size();
      write_entry(directory, record);
    }
    SHW_CHECK(sink_.write(directory.view()));
    SHW_CHECK(write_end(begin, position()));
    return position();
  }

  // Call after finish(). The id is the last record.
  StorageMarks marks_of_storage(std::size_t storage) const {
    const Record &record = records_[storage], &id = records_.back();
    StorageMarks marks{crcs_of(record), id.bytes_at, crcs_of(id), record.mixed_before, {}};
    for (std::size_t i = storage + 1; i < records_.size(); ++i) {
      if (records_[i].is_mixed) marks.crcs_after.push_back(records_[i].crc);
    }
    return marks;
  }

 private:
  struct Record {
    std::string name;
    std::uint64_t offset, length;
    std::uint32_t crc;
    // Offsets of its bytes, its descriptor and its directory entry.
    std::uint64_t bytes_at = 0, descriptor_at = 0, listed_at = 0;
    std::uint64_t mixed_before = 0;
    bool is_mixed = false;
    bool large() const { return length >= kWide; }
    bool needs_zip64_offset() const { return offset >= kWide; }
    bool wide() const { return large() || needs_zip64_offset(); }
    std::uint16_t flags() const {
      return static_cast<std::uint16_t>(kFlagUtf8 | (length == 0 ? 0 : kFlagSizesFollow));
    }
    std::uint64_t zip64_size() const {
      return wide() ? 4u + (large() ? 16u : 0u) + (needs_zip64_offset() ? 8u : 0u) : 0u;
    }
  };

  std::uint64_t position() const { return sink_.position() - base_; }

  bool is_of_one_tensor() const {
    return top_ == "archive/" && records_.size() == 6 && records_[4].name == "archive/data/0";
  }

  static std::vector<std::uint64_t> crcs_of(const Record& record) {
    constexpr std::uint64_t kInDescriptor = 4;
    if (record.length == 0) return {record.listed_at + kZipListedCrc};
    return {record.descriptor_at + kInDescriptor, record.listed_at + kZipListedCrc};
  }

  static void write_zip64(ByteBuffer& out, const Record& record) {
    if (!record.wide()) return;
    out.number(std::uint16_t{1}).number(static_cast<std::uint16_t>(record.zip64_size() - 4));
    if (record.large()) out.number(record.length).number(record.length);
    if (record.needs_zip64_offset()) out.number(record.offset);
  }

  Status write_local(const Record& record) {
    std::uint64_t start =
        record.offset + kRecordHeaderSize + record.name.size() + record.zip64_size() + 4;
    std::uint64_t padding = (kAlignment - start % kAlignment) % kAlignment;
    ByteBuffer out;
    out.text("PK\3\4").number(std::uint16_t{0}).number(record.flags()).fill(18, '\0');
    out.number(static_cast<std::uint16_t>(record.name.size()));
    out.number(static_cast<std::uint16_t>(record.zip64_size() + 4 + padding));
    out.text(record.name);
    write_zip64(out, record);
    out.text("FB").number(static_cast<std::uint16_t>(padding)).fill(padding, 'Z');
    return sink_.write(out.view());
  }

  Status write_descriptor(const Record& record) {
    if (record.length == 0) return {};
    ByteBuffer out;
    out.text("PK\7\x08").number(record.crc);
    if (record.wide()) {
      out.number(record.length).number(record.length);
    } else {
      out.number(static_cast<std::uint32_t>(record.length));
      out.number(static_cast<std::uint32_t>(record.length));
    }
    return sink_.write(out.view());
  }

  static void write_entry(ByteBuffer& out, const Record& record) {
    std::uint32_t length = record.large() ? kWide : static_cast<std::uint32_t>(record.length);
    out.text("PK\1\2").fill(4, '\0').number(record.flags()).fill(6, '\0').number(record.crc);
    out.number(length).number(length).number(static_cast<std::uint16_t>(record.name.size()));
    out.number(static_cast<std::uint16_t>(record.zip64_size())).fill(10, '\0');
    out.number(record.needs_zip64_offset() ? kWide : static_cast<std::uint32_t>(record.offset));
    out.text(record.name);
    write_zip64(out, record);
  }

  Status write_end(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t count = records_.size(), length = end - begin;
    ByteBuffer out;
    out.text("PK\6\6").number(std::uint64_t{44});
    out.number(std::uint16_t{0x031E}).number(std::uint16_t{45}).fill(8, '\0');
    out.number(count).number(count).number(length).number(begin);
    out.text("PK\6\7").fill(4, '\0').number(end).number(std::uint32_t{1});
    out.text("PK\5\6").fill(4, '\0');
    auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xFFFF));
    out.number(short_count).number(short_count);
    out.number(static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kWide)));
    out.number(static_cast<std::uint32_t>(std::min<std::uint64_t>(begin, kWide))).fill(2, '\0');
    return sink_.write(out.view());
  }

  ByteSink& sink_;
  std::uint64_t base_;
  std::string top_;
  std::vector<Record> records_;
  std::uint64_t crc_hash_ = 0;
};

PayloadWriter text_payload(std::string_view text) {
  return payload_of(std::as_bytes(std::span(text)));
}

}  // namespace

PayloadWriter payload_of(BytesView bytes) {
  return {[bytes](ByteSink& sink) -> Result<std::uint32_t> {
            SHW_CHECK(sink.write(bytes));
            return crc32_of(bytes);
          },
          bytes.size()};
}

PayloadWriter hole_payload(std::uint64_t length, std::uint32_t crc) {
  return {[length, crc](ByteSink& sink) -> Result<std::uint32_t> {
            SHW_CHECK(sink.skip(length));
            return crc;
          },
          length};
}

// Implements c10::hash_combine.
void hash_combine_crc(std::uint64_t& hash, std::uint32_t crc) {
  hash ^= crc + std::uint64_t{0x9e3779b9} + (hash << 6) + (hash >> 2);
}

Result<std::uint64_t> write_torch_archive(ByteSink& sink, const TorchArchive& archive,
                                          StorageMarks* marks) {
  ArchiveWriter out(sink, archive.top);
  SHW_CHECK(out.add("data.pkl", archive.pickle));
  SHW_CHECK(out.add(".format_version", text_payload("1")));
  SHW_CHECK(out.add(".storage_alignment", text_payload("64")));
  SHW_CHECK(out.add("byteorder", text_payload("little")));
  constexpr std::size_t kFirstStorage = 4;  // after these four records
  for (std::size_t i = 0; i < archive.storages.size(); ++i)
    SHW_CHECK(out.add(fmt::format("data/{}", i), archive.storages[i]));
  for (const auto& [name, text] : archive.more) SHW_CHECK(out.add(name, text_payload(text)));
  SHW_CHECK(out.add("version", text_payload("3\n")));
  std::string id = out.serialization_id();
  SHW_CHECK(out.add(".data/serialization_id", text_payload(id), false));
  SHW_TRY(std::uint64_t length, out.finish());
  if (marks != nullptr) *marks = out.marks_of_storage(kFirstStorage);
  return length;
}

Status HoleSkippingSink::write(BytesView bytes) {
  if (parts.empty() || parts.back().offset + parts.back().bytes.size() != end_)
    parts.push_back({end_, {}});
  Bytes& last = parts.back().bytes;
  last.insert(last.end(), bytes.begin(), bytes.end());
  end_ += bytes.size();
  return {};
}

Status HoleSkippingSink::skip(std::uint64_t length) {
  auto next = checked_add(end_, length);
  if (!next) return fail(ErrorKind::kUnsupported, "would be too large");
  holes.push_back(end_);
  end_ = *next;
  return {};
}

}  // namespace shw
