// The zip archives that torch.save writes, inside a window of a file.
//
//   archive   = record* directory [zip64-end zip64-locator] end
//   record    = local-header name extra bytes [descriptor]
//
// Read from the end, as torch does; local headers are checked against the directory when a record
// is touched. Accepted beyond what torch writes: any top directory, deflate, a comment, zip64 in
// any form. Refused: encryption, other methods, several disks, records that overlap, bytes after
// the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/payload_watch.h"
#include "core/io/source.h"

namespace shw {

struct ZipEntry {
  std::string name;  // "archive/data/0"
  std::uint32_t crc = 0;
  bool deflated = false;
  std::uint64_t header_offset = 0;  // of the local header, in the window
  std::uint64_t stored_length = 0;  // bytes in the window
  std::uint64_t length = 0;         // bytes of the record
  std::uint64_t limit = 0;          // in the window: where the next record or the directory begins
};

class ZipReader {
 public:
  // Reads the tail (all of it, where the window is small) and the directory.
  static Result<ZipReader> open(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                std::uint64_t length);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // By its name below the top directory: "data.pkl", "data/0". Null where there is none.
  const ZipEntry* find(std::string_view name) const;
  // True where every record's CRC is zero: the writer was told to leave them out.
  bool crcs_absent() const { return crcs_absent_; }

  // Where the record's bytes begin, absolute in the source.
  Result<std::uint64_t> data_offset(const ZipEntry& entry) const;
  // The record's bytes; more than `limit` of them is kUnsupported.
  Result<Bytes> read(const ZipEntry& entry, std::uint64_t limit) const;
  // The CRC of the record's bytes as they are. Holes are combined, not read.
  // `watch` sees a stored record's bytes on the way; null: nobody does.
  Result<std::uint32_t> crc_of(const ZipEntry& entry, Progress* progress,
                               PayloadWatch* watch = nullptr) const;

  const ByteSource& source() const { return *source_; }
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
  using Take = std::function<Status(BytesView)>;

  Result<BytesView> view(std::uint64_t at, std::uint64_t length, Bytes& scratch) const;
  Result<End> find_end() const;
  Result<End> widen_end(End end) const;
  Status read_directory(const End& end);
  Result<ZipEntry> parse_entry(BytesView directory, std::size_t& at, std::uint64_t base) const;
  Status check_overlap(std::uint64_t directory_offset);
  Status inflate(const ZipEntry& entry, std::uint64_t data, const Take& take) const;

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t base_ = 0;
  std::uint64_t length_ = 0;
  Bytes tail_;
  mutable Bytes head_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, std::uint32_t> by_name_;  // where there are many
  std::string top_;
  bool crcs_absent_ = false;
};

// The CRC-32 of a range of a file. Holes are combined, not read. `watch` as above.
Result<std::uint32_t> crc_of_range(const ByteSource& source, std::uint64_t offset,
                                   std::uint64_t length, Progress* progress,
                                   PayloadWatch* watch = nullptr);

}  // namespace shw
