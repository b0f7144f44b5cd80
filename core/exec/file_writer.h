// Writes files that consist of parts. A file is open from its first part to its last, then gets its
// checksums and is made durable.
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
#include "core/exec/output_blocks.h"

namespace shw {

// Called for every file as soon as it is durable, from several threads.
using OnFileDurable = std::function<Status(const DurableFile& file)>;

// Larger parts are split into pieces of this size, so that all threads can work on one file.
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 20;

// Inputs of FileWriter, which must outlive it.
struct FileWriterInputs {
  const FolderRun& run;
  const MemoryPlan& shares;
  const Executors& executors;
  const std::vector<bool>& there;  // by index in LaidOut::files: exists already, is not written
  WritableDirectory& directory;
  CopyHasher& copied_items;      // hashes the bytes of copied parts
  SourceChecksumVerifier& sums;  // verifies the bytes read for computed parts
  Progress* progress;
};
// Checksums of the written chunks by index in LaidOut::made; nullopt for chunks in files that
// existed already.
using WrittenElementSums = std::vector<std::optional<ElementSums>>;

class FileWriter {
 public:
  FileWriter(const FileWriterInputs& with, const OnFileDurable& done);

  // Adds a part as a whole, or split into pieces for several threads.
  void add(const FilePart& part, std::uint64_t piece_bytes);
  std::span<const FilePart> parts() const { return parts_; }

  // Declares the parts that this rank writes. A file is finished with its last declared part, so
  // this must precede the first write to the file.
  void expect(std::span<const FilePart> own);
  // Marks a file that several ranks of a machine write. Its owner creates it before they start, and
  // finishes it after all have reported their parts.
  void share(std::uint32_t file, bool is_owner);
  Status create(std::uint32_t file);
  // Makes this rank's parts of a shared file durable; returns the report for the owner.
  Result<Bytes> leave(std::uint32_t file, std::span<const FilePart> own);
  Status receive(BytesView left);
  // Finishes a shared file, or one without parts that consists of metadata only.
  Status finish(std::uint32_t file);
  // Thread-safe. `sent`: source data that other ranks have read for the part.
  Status write(const FilePart& part, RemoteSourceData* sent = nullptr);
  // How many parts, from the first of `parts` on, one thread should write together: more than one
  // only for small adjacent chunks.
  std::size_t length_of_run(std::span<const FilePart> parts) const;
  Status write_run(std::span<const FilePart> parts);

  OutputBlocks& payloads() { return payloads_; }
  // Checksums of all chunks written here. Must be the last call: releases the parts.
  WrittenElementSums release_elements();

 private:
  // A file that is open for writing.
  struct OpenFile {
    std::mutex guard;
    std::unique_ptr<OutputFile> file;
    std::atomic<std::size_t> left{0};
    bool is_joined = false;    // created by another rank
    bool is_finished = false;  // by this rank
    // The chunks of the file, by index in LaidOut::made, with the range of their pieces.
    struct Tile {
      std::uint32_t made = 0, first_piece = 0, last_piece = 0;
    };
    std::vector<Tile> tiles;
  };

  Result<OutputFile*> open(std::uint32_t index);
  Status put(const FilePart& part, OutputFile& file, RemoteSourceData* sent);
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
  const OnFileDurable& done_;
  Progress* progress_;
  CopyHasher& copy_hasher_;
  OutputBlocks payloads_;
  std::vector<std::uint32_t> checksums_;  // by chunk
  std::vector<std::uint8_t> sealed_;      // by chunk; bytes, because several threads write them
  std::vector<OpenFile> files_;
  std::vector<FilePart> parts_;
  std::vector<WrittenBlocks> pieces_;  // per piece of a chunk; each is written by one thread
};

}  // namespace shw
