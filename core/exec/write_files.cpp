#include "core/exec/write_files.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/exec/payloads.h"
#include "core/io/copy_range.h"

namespace shw {
namespace {

// Large parts are cut into pieces of it, so that one file, or one tile, keeps every thread busy.
constexpr std::uint64_t kPiece = std::uint64_t{64} << 20;

// Something that stands in a file: which of LaidOut's lists it is in, and where.
struct Part {
  enum class Is : std::uint8_t { kBytes, kCopy, kMade } is = Is::kBytes;
  std::uint32_t file = 0;
  std::size_t index = 0;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t skipped = 0;  // of a copy, in front of this piece
  BlockRange blocks = {};     // of a tile, in this piece
  std::size_t piece = 0;      // of all tiles' pieces
};

// Of all files, file by file and from the front to the back.
std::vector<Part> parts_of(const LaidOut& laid_out) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < laid_out.before.size(); ++i) {
    const OutputBytes& bytes = laid_out.before[i];
    parts.push_back({Part::Is::kBytes, bytes.file, i, bytes.offset, bytes.bytes.size()});
  }
  for (std::size_t i = 0; i < laid_out.copies.size(); ++i) {
    const OutputCopy& copy = laid_out.copies[i];
    parts.push_back({Part::Is::kCopy, copy.file, i, copy.offset, copy.length});
  }
  for (std::size_t i = 0; i < laid_out.made.size(); ++i) {
    const MadeTile& made = laid_out.made[i];
    parts.push_back({Part::Is::kMade, made.file, i, made.offset, made.length});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    // Of nothing comes first: it begins where the next one does.
    return std::tuple(a.file, a.offset, a.length) < std::tuple(b.file, b.offset, b.length);
  });
  return parts;
}

// Each lies inside of its file, behind the one before.
Status check_parts(const LaidOut& laid_out, const std::vector<Part>& parts) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (i == 0 || parts[i - 1].file != part.file) end = 0;
    const LaidOut::File& file = laid_out.files[part.file];
    auto next = checked_add(part.offset, part.length);
    if (part.offset < end)
      return fail(ErrorKind::kIo, "two parts of a new file would lie at one place",
                  {file.path, part.offset});
    if (!next || *next > file.size)
      return fail(ErrorKind::kIo, "a part of a new file would lie beyond its end",
                  {file.path, part.offset});
    end = *next;
  }
  return {};
}

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

struct Writing {
  const FolderRun& run;
  const LaidOut& laid_out;
  WritableDirectory& directory;
  const FileDone& done;
  Progress* progress;
  Payloads payloads;
  std::vector<std::uint32_t> checksums;              // by tile
  std::vector<std::optional<Fingerprint>> elements;  // by tile
  std::vector<OpenFile> files;
  std::vector<Part> parts{};
  std::vector<WrittenBlocks> pieces{};  // of tiles; each is written by one thread

  // The part as it is, or what threads may do of it at once.
  void add_pieces(Part part) {
    if (part.is == Part::Is::kCopy) {
      std::uint64_t length = part.length;
      for (std::uint64_t begin = 0; begin < length; begin += kPiece) {
        part.skipped = begin;
        part.length = std::min(kPiece, length - begin);
        parts.push_back(part);
        parts.back().offset += begin;
      }
      return;
    }
    if (part.is == Part::Is::kMade) {
      std::uint64_t count = payloads.block_count(run.made[part.index]);
      std::uint64_t of_one = std::max<std::uint64_t>(part.length / count, 1);
      std::uint64_t at_once = std::max<std::uint64_t>(kPiece / of_one, 1);
      std::size_t first_piece = pieces.size();
      for (std::uint64_t first = 0; first < count; first += at_once) {
        part.blocks = {first, std::min(first + at_once, count)};
        part.piece = pieces.size();
        pieces.emplace_back();
        parts.push_back(part);
      }
      files[part.file].tiles.push_back({part.index, first_piece, pieces.size()});
      return;
    }
    parts.push_back(part);
  }

  Result<OutputFile*> open(std::uint32_t index) {
    OpenFile& file = files[index];
    std::lock_guard lock(file.guard);
    if (file.file == nullptr) {
      SHW_TRY(file.file, directory.create_file(laid_out.files[index].path));
    }
    return file.file.get();
  }

  Status write(const Part& part, OutputFile& file) {
    switch (part.is) {
      case Part::Is::kBytes:
        return file.write_at(part.offset, laid_out.before[part.index].bytes);
      case Part::Is::kCopy: {
        const OutputCopy& copy = laid_out.copies[part.index];
        SHW_TRY(auto source, run.outputs.source->directory()->open(copy.from));
        StageClock clock(stages_of(progress), Stage::kWrite, part.length);
        return copy_range(*source, copy.begin + part.skipped, part.length, file, part.offset,
                          progress);
      }
      case Part::Is::kMade: {
        SHW_TRY(pieces[part.piece], payloads.write(run.made[part.index], part.blocks, file));
        return {};
      }
    }
    return {};
  }

  // What depends on the bytes of all parts, and the end.
  Status finish(std::uint32_t index, OutputFile& file) {
    if (is_cancelled(progress)) return cancelled_error();
    std::vector<std::uint32_t> own;
    for (const OpenFile::Tile& tile : files[index].tiles) {
      auto of_tile =
          std::span(pieces).subspan(tile.first_piece, tile.last_piece - tile.first_piece);
      checksums[tile.made] = crc_of_all(of_tile, laid_out.made[tile.made].length);
      elements[tile.made].emplace();
      for (const WrittenBlocks& piece : of_tile) *elements[tile.made] += piece.elements;
      own.push_back(checksums[tile.made]);
    }
    if (run.writer->seal_file != nullptr) {
      SHW_TRY(auto around, run.writer->seal_file(run.outputs, laid_out, index, checksums));
      for (const OutputBytes& bytes : around) SHW_CHECK(file.write_at(bytes.offset, bytes.bytes));
    }
    SHW_CHECK(file.finish(laid_out.files[index].size));
    files[index].file.reset();
    return done({laid_out.files[index].path, laid_out.files[index].size, std::move(own)});
  }

  Status write_part(std::size_t i) {
    if (is_cancelled(progress)) return cancelled_error();
    const Part& part = parts[i];
    SHW_TRY(OutputFile * file, open(part.file));
    SHW_CHECK(write(part, *file));
    return --files[part.file].left == 0 ? finish(part.file, *file) : Status{};
  }
};

}  // namespace

Result<std::vector<std::optional<Fingerprint>>> write_files(
    const FolderRun& run, const MemoryShares& shares, const Executors& executors,
    const std::vector<bool>& there, WritableDirectory& directory, const FileDone& done,
    Progress* progress) {
  const LaidOut& laid_out = run.laid_out;
  Writing writing{run,
                  laid_out,
                  directory,
                  done,
                  progress,
                  Payloads(run.program, run.inputs, shares, executors, progress),
                  std::vector<std::uint32_t>(laid_out.made.size()),
                  std::vector<std::optional<Fingerprint>>(laid_out.made.size()),
                  std::vector<OpenFile>(laid_out.files.size())};
  std::vector<Part> whole = parts_of(laid_out);
  SHW_CHECK(check_parts(laid_out, whole));
  for (const Part& part : whole) {
    if (!there[part.file]) writing.add_pieces(part);
  }
  for (const Part& part : writing.parts) ++writing.files[part.file].left;
  // They hold nothing but what seals them.
  std::vector<std::uint32_t> without_parts;
  for (std::uint32_t i = 0; i < laid_out.files.size(); ++i) {
    if (writing.files[i].left == 0 && !there[i]) without_parts.push_back(i);
  }
  SHW_CHECK(
      each_in_parallel(writing.parts.size(), [&](std::size_t i) { return writing.write_part(i); }));
  for (std::uint32_t file : without_parts) {
    SHW_TRY(OutputFile * empty, writing.open(file));
    SHW_CHECK(writing.finish(file, *empty));
  }
  return std::move(writing.elements);
}

}  // namespace shw
