// Files that are put together from parts: each is open from its first part to its last, and is
// sealed and durable after that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/exec/file_parts.h"
#include "core/exec/folder_run.h"
#include "core/exec/journal.h"
#include "core/exec/payloads.h"

namespace shw {

// Told of every file as soon as it is durable, from several threads.
using FileDone = std::function<Status(const DurableFile& file)>;

// Large parts are cut into pieces of it, so that one file, or one tile, keeps every thread busy.
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 20;

class FileWriter {
 public:
  // Refers to all of them.
  FileWriter(const FolderRun& run, const MemoryShares& shares, const Executors& executors,
             WritableDirectory& directory, const FileDone& done, Progress* progress);

  // Adds the part as it is, or in pieces that threads may write at once.
  void add(const FilePart& part, std::uint64_t piece_bytes);
  std::span<const FilePart> parts() const { return parts_; }

  // When the last of a file's parts is written, it is finished; that is said of files whose parts
  // this one writes before the first of them is.
  void expect(std::span<const FilePart> own);
  // From several threads. `sent`: what others have read for the part.
  Status write(const FilePart& part, SentParts* sent = nullptr);
  // A file without parts, which holds nothing but what seals it.
  Status write_empty(std::uint32_t file);

  Payloads& payloads() { return payloads_; }
  // What tiles must hold, by index in LaidOut::made; nothing of those that were not written here.
  std::vector<std::optional<Fingerprint>> take_elements() { return std::move(elements_); }

 private:
  // A file that is open from its first part to its last.
  struct OpenFile {
    std::mutex guard;
    std::unique_ptr<OutputFile> file;
    std::atomic<std::size_t> left{0};
    // Its tiles, by index in LaidOut::made, and where their pieces begin and end.
    struct Tile {
      std::size_t made = 0, first_piece = 0, last_piece = 0;
    };
    std::vector<Tile> tiles;
  };

  Result<OutputFile*> open(std::uint32_t index);
  Status put(const FilePart& part, OutputFile& file, SentParts* sent);
  Status finish(std::uint32_t index, OutputFile& file);

  const FolderRun& run_;
  const LaidOut& laid_out_;
  WritableDirectory& directory_;
  const FileDone& done_;
  Progress* progress_;
  Payloads payloads_;
  std::vector<std::uint32_t> checksums_;              // by tile
  std::vector<std::optional<Fingerprint>> elements_;  // by tile
  std::vector<OpenFile> files_;
  std::vector<FilePart> parts_;
  std::vector<WrittenBlocks> pieces_;  // of tiles; each is written by one thread
};

}  // namespace shw
