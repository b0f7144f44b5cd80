// Whether results are made of the bytes that were saved. What is made anew gets checksums of its
// own, good ones, whatever went into it: damage that nobody looked for would never be told again.
//
// No byte is read for that. CRCs are linear: every run of a source's bytes, whoever reads it and
// when, changes the CRC-32 of as many zeros by what depends on the run and its place alone. Added
// up (xor), the changes of all runs must come to the checksum that the source was saved with. What
// is read in other than long runs, in part, more than once, or decoded, is read once more by
// itself.
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

class ItemChecks;

// Bytes of a source that were read: a box of it, as it lies in memory now (io/gather.h).
struct BytesRead {
  SourceId source{};
  std::int64_t first = 0;  // byte of the source where the box's first element begins
  ExtentsView sizes, strides;
  std::size_t element = 0;
  BytesView bytes;
  std::optional<std::uint32_t> crc = {};  // of them, where they are one run and it is known
};

class SourceSums {
 public:
  // Of what the program reads, as items say it of themselves: reads their headers. Refers to all of
  // them.
  static Result<std::unique_ptr<SourceSums>> of(const Program& program,
                                                const std::vector<const Checkpoint*>& inputs,
                                                Progress* progress);

  // Whether what is read of it counts: otherwise it is not looked at on the way.
  bool asks_for(SourceId source) const {
    const std::uint64_t left = rows_[static_cast<std::size_t>(source)].left;
    return left != kSettled && left != kApart;
  }
  // From several threads. An error where all of the source has been read by now, and is not what
  // was saved.
  Status add(const BytesRead& read);
  // What all members have read, on all of them.
  Status share(Team& team);
  // When nothing is read any more: looks at what could not be told on the way. A team shares it
  // out.
  Status settle(Team* team);

 private:
  // Of a source, when what has been read of it says nothing: it has no checksum or was looked at,
  // or it has to be looked at by itself.
  static constexpr std::uint64_t kSettled = UINT64_MAX, kApart = UINT64_MAX - 1;
  struct Row {
    std::atomic<std::uint64_t> left = kSettled;  // bytes that are still to be read
    std::atomic<std::uint32_t> change = 0;       // of those that were
    std::uint32_t wanted = 0;
    ChunkId chunk{};          // whose item it is
    bool is_counted = false;  // `left` is, or was, a number of bytes
  };

  SourceSums(const Program& program, const std::vector<const Checkpoint*>& inputs,
             Progress* progress)
      : program_(program), inputs_(inputs), rows_(program.sources.size()), progress_(progress) {}
  Status find_items(std::uint32_t input);
  void count_bytes();
  static std::uint64_t left_after(std::uint64_t left, std::uint64_t of_one, std::uint64_t length);
  Status look(std::size_t source);
  Status look(std::size_t source, ItemChecks& checks);

  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  std::vector<Row> rows_;  // by source
  Progress* progress_;
};

}  // namespace shw
