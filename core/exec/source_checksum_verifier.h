// Verifies the saved checksums of the sources that a run reads. New files get new, valid
// checksums, so that damage in a source would otherwise never be detected again.
//
// No byte is read for this alone. CRCs are linear: each run of a source's bytes changes
// the CRC-32 of equally many zeros by a value that depends only on the run and its
// position. The xor of these values over all runs must equal the saved checksum. Sources
// that are read in short runs, partly, more than once, or decoded are read once more at
// the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"
#include "core/program/program.h"

namespace shw {

class ItemCursor;

// A box of a source in memory after a read (io/gather.h).
struct BytesRead {
  SourceId source{};
  std::int64_t first = 0;  // byte of the source at the first element of the box
  ExtentsView sizes, strides;
  std::size_t element = 0;
  BytesView bytes;
  std::optional<std::uint32_t> crc = {};  // CRC of the bytes if they are one run and it is known
};

class SourceChecksumVerifier {
 public:
  // Reads the item headers of all sources of the program for their checksums. Keeps references to
  // all arguments.
  static Result<std::unique_ptr<SourceChecksumVerifier>> of(
      const Program& program, const std::vector<const Checkpoint*>& inputs, Progress* progress);

  // False if reads of this source need not be reported.
  bool needs_reads_of(SourceId source) const {
    const std::uint64_t left = rows_[static_cast<std::size_t>(source)].left;
    return left != kVerifiedOrNone && left != kApart;
  }
  // Reports a read; thread-safe. An error if the source is now complete and its checksum is
  // wrong.
  Status add(const BytesRead& read);
  // Exchanges the progress between all ranks.
  Status share(Team& team);
  // After the last read: verifies the remaining sources, divided among the ranks of a
  // team.
  Status finalize(Team* team);

 private:
  // Special values of `left`: the source has no checksum or is verified already; or it must be read
  // separately.
  static constexpr std::uint64_t kVerifiedOrNone = UINT64_MAX, kApart = UINT64_MAX - 1;
  struct Row {
    std::atomic<std::uint64_t> left = kVerifiedOrNone;  // bytes still to be read
    std::atomic<std::uint32_t> change = 0;              // xor of the changes so far
    std::uint32_t wanted = 0;
    ChunkId chunk{};          // the chunk whose item the source is
    bool is_counted = false;  // `left` is or was a number of bytes
  };

  SourceChecksumVerifier(const Program& program, const std::vector<const Checkpoint*>& inputs,
                         Progress* progress)
      : program_(program), inputs_(inputs), rows_(program.sources.size()), progress_(progress) {}
  Status find_items(std::uint32_t input);
  void count_bytes();
  static std::uint64_t merge_remaining_bytes(std::uint64_t left, std::uint64_t of_one,
                                             std::uint64_t length);
  Status look(std::size_t source);
  Status look(std::size_t source, ItemCursor& items);

  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  std::vector<Row> rows_;  // by source
  Progress* progress_;
};

}  // namespace shw
