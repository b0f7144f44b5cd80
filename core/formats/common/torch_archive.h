// The zip archive that torch 2.7 and later write around a pickle and its storages: every record at
// a multiple of 64, stored, with real CRCs (spec/dcp-format.md 3.2, 3.7).
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
PayloadWriter payload_of(BytesView bytes);  // which must outlive it
// Bytes that somebody else writes.
PayloadWriter hole_of(std::uint64_t length, std::uint32_t crc);

struct TorchArchive {
  std::string top = "archive";  // the folder of all records: on a stream this, else the file's stem
  PayloadWriter pickle;
  std::vector<PayloadWriter> storages = {};                    // data/0, data/1, ...
  std::vector<std::pair<std::string, std::string>> more = {};  // names that torch passes over
};
// What an archive of one storage says of that storage's bytes, and where, in bytes of the archive.
struct StorageMarks {
  std::vector<std::uint64_t> crc;  // four bytes each
  std::uint64_t id = 0;            // the serialization id, whose last twenty digits are of all CRCs
  std::vector<std::uint64_t> id_crc;
  std::uint64_t mixed_before = 0;  // of the records in front of it
  std::vector<std::uint32_t> crcs_behind;
};
// Returns its length; the sink must stand where it begins. `marks`: null where nobody asks.
Result<std::uint64_t> write_torch_archive(ByteSink& sink, const TorchArchive& archive,
                                          StorageMarks* marks = nullptr);

// Into a serialization id's hash of the CRCs of records, one after the other.
void mix_crc(std::uint64_t& hash, std::uint32_t crc);

// Keeps what is written around the holes.
class AroundHoles final : public ByteSink {
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
  std::vector<std::uint64_t> holes;  // where each begins

 private:
  std::uint64_t end_ = 0;
};

}  // namespace shw
