// Writes the zip archive that torch 2.7 and later put around a pickle and its storages: records
// aligned to 64 bytes, not compressed, with real CRCs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/sink.h"

namespace shw {

struct PayloadWriter {
  // Writes exactly `length` bytes through the given sink, in order; returns their CRC-32.
  std::function<Result<std::uint32_t>(ByteSink&)> write;
  std::uint64_t length = 0;
};
PayloadWriter payload_of(BytesView bytes);  // `bytes` must outlive it
// A gap for bytes that are written later by other code.
PayloadWriter hole_payload(std::uint64_t length, std::uint32_t crc);

struct TorchArchive {
  std::string top = "archive";  // folder of all records; for files the stem of the name
  PayloadWriter pickle;
  std::vector<PayloadWriter> storages = {};                    // data/0, data/1, ...
  std::vector<std::pair<std::string, std::string>> more = {};  // records that torch ignores
};
// Byte positions in a one-storage archive that depend on the storage's bytes.
struct StorageMarks {
  std::vector<std::uint64_t> crc;  // offsets of its CRCs, four bytes each
  std::uint64_t id = 0;            // offset of the serialization id, which hashes all CRCs
  std::vector<std::uint64_t> id_crc;
  std::uint64_t mixed_before = 0;  // hash of the CRCs of all records before the storage
  std::vector<std::uint32_t> crcs_after;
};
// Returns the archive's length; the sink must be at the archive's begin. `marks` may be null.
Result<std::uint64_t> write_torch_archive(ByteSink& sink, const TorchArchive& archive,
                                          StorageMarks* marks = nullptr);

// Adds a record's CRC to the hash in a serialization id; call in order of records.
void hash_combine_crc(std::uint64_t& hash, std::uint32_t crc);

// A sink that stores written bytes in memory and only the positions of skipped ranges (holes).
class HoleSkippingSink final : public ByteSink {
 public:
  struct Part {
    std::uint64_t offset = 0;
    Bytes bytes;
  };
  Status write(BytesView bytes) override;
  Status skip(std::uint64_t length) override;
  std::uint64_t position() const override { return end_; }
  Status finish() override { return {}; }

  std::vector<Part> parts;
  std::vector<std::uint64_t> holes;  // offset of each hole

 private:
  std::uint64_t end_ = 0;
};

}  // namespace shw
