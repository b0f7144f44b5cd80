// The zip archives that torch.save writes, inside a window of a file.
//
//   archive   = record* directory [zip64-end zip64-locator] end
//   record    = local-header name extra bytes [descriptor]
//
// Read from the end, as torch does; local headers are compared with the directory when a record is
// used. Accepted beyond torch's output: any top directory, deflate, zip64 in any form, and up to 64
// KB after the end record, because torch uses the last end record and ignores the rest. Rejected:
// encryption, other compression methods, several disks, overlapping records, duplicate names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/zip/payload_watch.h"
#include "core/io/source.h"

namespace shw {

// Size of a local header without its name; and the 32-bit marker for a value in the zip64 field.
inline constexpr std::size_t kZipLocalSize = 30;
inline constexpr std::uint32_t kZipWide32 = 0xFFFFFFFFu;

struct ZipEntry {
  std::string name;  // "archive/data/0"
  std::uint32_t crc = 0;
  bool deflated = false;
  std::uint64_t header_offset = 0;  // offset of the local header in the window
  std::uint64_t stored_length = 0;  // compressed bytes
  std::uint64_t length = 0;         // uncompressed bytes
  std::uint64_t limit = 0;          // in the window: begin of the next record or of the directory
  std::uint64_t listed_at = 0;      // in the window: the record's directory entry
};

// Bytes of an archive's two ends that were already read; may be empty.
struct ZipEnds {
  Bytes head, tail;
};

// Number of bytes read first at the end of an archive: all of a small one.
std::uint64_t zip_tail_length(std::uint64_t length);
// Number of bytes read at the front, if records there are needed.
std::uint64_t zip_head_length(std::uint64_t length);

// Offset of the CRC in a directory entry.
inline constexpr std::uint64_t kZipListedCrc = 16;

class ZipReader {
 public:
  // Reads the tail (all of a small archive) and the directory. `read`: bytes of both ends that were
  // already read, with the lengths of zip_tail_length() and zip_head_length().
  static Result<ZipReader> open(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                std::uint64_t length, ZipEnds read = {});

  // Records stored bare in a file without an archive (legacy_torch_file.h): `source` is the whole
  // file, `header_offset` the begin of an entry's bytes. `entries` must not be empty.
  static ZipReader from_unarchived_records(std::shared_ptr<const ByteSource> source,
                                           std::vector<ZipEntry> entries);
  bool is_bare() const { return is_bare_; }

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Finds a record by its name below the top directory ("data.pkl", "data/0"); null if missing.
  const ZipEntry* find(std::string_view name) const;
  // Finds the record of a storage by its key ("0": "data/0"); null if missing.
  const ZipEntry* find_storage(std::string_view key) const;
  // From now on find_storage() looks in this folder: "constants/" in a TorchScript archive.
  void set_storage_folder(std::string folder) { storage_folder_ = std::move(folder); }
  // True if every record's CRC is zero: the writer omitted checksums.
  bool lacks_crcs() const { return crcs_absent_; }

  // Offset of the record's bytes, absolute in the source.
  Result<std::uint64_t> data_offset(const ZipEntry& entry) const;
  // Reads the record's bytes; kUnsupported above `limit` bytes.
  Result<Bytes> read(const ZipEntry& entry, std::uint64_t limit) const;
  // The record's bytes as a source that begins at 0; a deflated record is inflated as a stream.
  Result<std::shared_ptr<const ByteSource>> source_of(const ZipEntry& entry) const;
  // Computes the CRC of the record's actual bytes; holes are not read. `watch` receives the bytes
  // and may be null.
  Result<std::uint32_t> crc_of(const ZipEntry& entry, Progress* progress,
                               PayloadObserver* watch = nullptr) const;

  const ByteSource& source() const { return *source_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t length() const { return length_; }
  // Offset of the directory in the window.
  std::uint64_t directory_offset() const { return directory_offset_; }
  // A range of the window, if it was already read; otherwise nullopt.
  std::optional<BytesView> cached_bytes(std::uint64_t at, std::uint64_t length) const;
  // An error about a byte of the window, with its offset in the file.
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
  std::unordered_map<std::string, std::uint32_t> by_name_;  // only filled if there are many entries
  std::string top_, storage_folder_ = "data/";
  bool crcs_absent_ = false;
  bool is_bare_ = false;
};

// The CRC-32 of a range of a file; holes are not read. `watch` receives the bytes and may be null.
Result<std::uint32_t> crc_of_range(const ByteSource& source, std::uint64_t offset,
                                   std::uint64_t length, Progress* progress,
                                   PayloadObserver* watch = nullptr);

}  // namespace shw
