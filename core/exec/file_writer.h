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

// What the files of a run are written with. All of it outlives whoever writes.
struct FileWriting {
  const FolderRun& run;
  const MemoryShares& shares;
  const Executors& executors;
  const std::vector<bool>& there;  // by index in LaidOut::files: what is not written any more
  WritableDirectory& directory;
  PassingItems& came_along;  // what is copied as it is goes by here,
  SourceSums& sums;          // and what is read to make something here
  Progress* progress;
};
// What the tiles that were written must hold, by index in LaidOut::made; nothing of those that were
// there.
using MadeElements = std::vector<std::optional<ElementSums>>;

class FileWriter {
 public:
  FileWriter(const FileWriting& with, const FileDone& done);

  // Adds the part as it is, or in pieces that threads may write at once.
  void add(const FilePart& part, std::uint64_t piece_bytes);
  std::span<const FilePart> parts() const { return parts_; }

  // When the last of a file's parts is written, it is finished; that is said of files whose parts
  // this one writes before the first of them is.
  void expect(std::span<const FilePart> own);
  // Other workers of this machine write parts of it too. Its owner creates it before they begin,
  // and finishes it when they have told what became of theirs.
  void share(std::uint32_t file, bool is_owner);
  Status create(std::uint32_t file);
  // What this one has written of a file is durable, and closed; what the owner has to know of it.
  Result<Bytes> leave(std::uint32_t file, std::span<const FilePart> own);
  Status hear(BytesView left);
  // One that is shared, or has no parts and holds nothing but what seals it.
  Status finish(std::uint32_t file);
  // From several threads. `sent`: what others have read for the part.
  Status write(const FilePart& part, SentParts* sent = nullptr);
  // How many of parts(), from the first of `parts` on, one thread is to write together: more than
  // one only of small tiles that lie side by side. Then writes them, and what seals them.
  std::size_t length_of_run(std::span<const FilePart> parts) const;
  Status write_run(std::span<const FilePart> parts);

  Payloads& payloads() { return payloads_; }
  // Of those that were written here. The last that is asked for: the parts are gone then.
  MadeElements take_elements();

 private:
  // A file that is open from its first part to its last.
  struct OpenFile {
    std::mutex guard;
    std::unique_ptr<OutputFile> file;
    std::atomic<std::size_t> left{0};
    bool is_joined = false;    // another worker creates it
    bool is_finished = false;  // by this one
    // Its tiles, by index in LaidOut::made, and where their pieces begin and end.
    struct Tile {
      std::uint32_t made = 0, first_piece = 0, last_piece = 0;
    };
    std::vector<Tile> tiles;
  };

  Result<OutputFile*> open(std::uint32_t index);
  Status put(const FilePart& part, OutputFile& file, SentParts* sent);
  bool is_small(const FilePart& part) const;
  std::span<const WrittenBlocks> pieces_of(const OpenFile::Tile& tile) const;
  std::uint32_t crc_of(const OpenFile::Tile& tile) const;
  ElementSums elements_of(const OpenFile::Tile& tile) const;
  Status seal(std::span<const std::uint32_t> tiles, OutputFile& file);
  Status seal_rest(std::uint32_t index, OutputFile& file);
  Status finish(std::uint32_t index, OutputFile& file);

  const FolderRun& run_;
  const LaidOut& laid_out_;
  WritableDirectory& directory_;
  const FileDone& done_;
  Progress* progress_;
  PassingItems& came_along_;
  Payloads payloads_;
  std::vector<std::uint32_t> checksums_;  // by tile
  std::vector<std::uint8_t> sealed_;      // by tile; a byte each: threads write them
  std::vector<OpenFile> files_;
  std::vector<FilePart> parts_;
  std::vector<WrittenBlocks> pieces_;  // of tiles; each is written by one thread
};

}  // namespace shw
