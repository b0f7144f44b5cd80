// The zip archives that torch.save writes, inside a window of a file.
//
//   archive   = record* directory [zip64-end zip64-locator] end
//   record    = local-header name extra bytes [descriptor]
//
// Read from the end, as torch does; local headers are checked against the directory when a record
// is touched. Accepted beyond what torch writes: any top directory, deflate, zip64 in any form, and
// up to 64 KB behind the end, a comment or not: torch takes the last end record that it finds and
// looks at nothing behind it. Refused: encryption, other methods, several disks, records that
// overlap, two of one name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/payload_watch.h"
#include "core/io/source.h"

namespace shw {

// A local header without its name, and what stands where a number of 32 bits is too small.
inline constexpr std::size_t kZipLocalSize = 30;
inline constexpr std::uint32_t kZipWide32 = 0xFFFFFFFFu;

struct ZipEntry {
  std::string name;  // "archive/data/0"
  std::uint32_t crc = 0;
  bool deflated = false;
  std::uint64_t header_offset = 0;  // of the local header, in the window
  std::uint64_t stored_length = 0;  // bytes in the window
  std::uint64_t length = 0;         // bytes of the record
  std::uint64_t limit = 0;          // in the window: where the next record or the directory begins
  std::uint64_t listed_at = 0;      // in the window: its record in the directory
};

// What has been read of an archive's two ends; empty where nothing has.
struct ZipEnds {
  Bytes head, tail;
};

// How much of an archive's end is read first: all of it, where it is small.
std::uint64_t zip_tail_length(std::uint64_t length);
// And of its front, where records there are looked at.
std::uint64_t zip_head_length(std::uint64_t length);

// In a record of the directory.
inline constexpr std::uint64_t kZipListedCrc = 16;

class ZipReader {
 public:
  // Reads the tail (all of it, where the window is small) and the directory. `read`: what of both
  // ends is there already, as long as zip_tail_length() and zip_head_length() say.
  static Result<ZipReader> open(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                std::uint64_t length, ZipEnds read = {});

  // Records that lie bare in a file, without an archive around them (before_zip.h): `source` is all
  // of the file, `header_offset` of an entry where its bytes begin. There is a first one.
  static ZipReader of_bare(std::shared_ptr<const ByteSource> source, std::vector<ZipEntry> entries);
  bool is_bare() const { return is_bare_; }

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // By its name below the top directory: "data.pkl", "data/0". Null where there is none.
  const ZipEntry* find(std::string_view name) const;
  // True where every record's CRC is zero: the writer was told to leave them out.
  bool crcs_absent() const { return crcs_absent_; }

  // Where the record's bytes begin, absolute in the source.
  Result<std::uint64_t> data_offset(const ZipEntry& entry) const;
  // The record's bytes; more than `limit` of them is kUnsupported.
  Result<Bytes> read(const ZipEntry& entry, std::uint64_t limit) const;
  // The same as a source, whose first byte is the record's: a deflated one is inflated while it is
  // read from front to back.
  Result<std::shared_ptr<const ByteSource>> source_of(const ZipEntry& entry) const;
  // The CRC of the record's bytes as they are. Holes are combined, not read.
  // `watch` sees the record's bytes on the way; null: nobody does.
  Result<std::uint32_t> crc_of(const ZipEntry& entry, Progress* progress,
                               PayloadWatch* watch = nullptr) const;

  const ByteSource& source() const { return *source_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t length() const { return length_; }
  // In the window.
  std::uint64_t directory_offset() const { return directory_offset_; }
  // A range of the window, where reading it takes no more than what was read.
  std::optional<BytesView> at_hand(std::uint64_t at, std::uint64_t length) const;
  // An error at a byte of the window, with its place in the file.
  tl::unexpected<Error> damaged(std::uint64_t at, std::string message) const;
  tl::unexpected<Error> unsupported(std::uint64_t at, std::string message) const;

 private:
  struct End {
    std::uint64_t position, entries, directory_offset, directory_length;
    struct Disk {
      std::uint64_t number, of_directory, entries;
    } disk;
  };
  Result<BytesView> view(std::uint64_t at, std::uint64_t length, Bytes& scratch) const;
  Result<End> find_end() const;
  Result<End> widen_end(End end) const;
  Status read_directory(const End& end);
  void index_entries();
  Result<ZipEntry> parse_entry(BytesView directory, std::size_t& at, std::uint64_t base) const;
  Status check_overlap(std::uint64_t directory_offset);
  Status check_names() const;
  Status check_begin(const ZipEntry& entry, std::uint64_t data, bool has_descriptor) const;

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t base_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t directory_offset_ = 0;
  Bytes tail_;
  mutable Bytes head_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, std::uint32_t> by_name_;  // where there are many
  std::string top_;
  bool crcs_absent_ = false;
  bool is_bare_ = false;
};

// The CRC-32 of a range of a file. Holes are combined, not read. `watch` as above.
Result<std::uint32_t> crc_of_range(const ByteSource& source, std::uint64_t offset,
                                   std::uint64_t length, Progress* progress,
                                   PayloadWatch* watch = nullptr);

}  // namespace shw
