#include "core/exec/file_writer.h"

#include <algorithm>

#include "core/base/encoder.h"
#include "core/io/coalescing_file.h"
#include "core/io/copy_range.h"

namespace shw {
namespace {

// Smaller chunks are written together, up to about 1 MiB with the bytes around them.
constexpr std::uint64_t kSmallTile = 16 << 10;
constexpr std::uint64_t kRunBytes = 1 << 20;
constexpr std::size_t kRunTiles = 256;

}  // namespace

FileWriter::FileWriter(const FileWriterInputs& with, const OnFileDurable& done)
    : run_(with.run),
      laid_out_(with.run.laid_out),
      directory_(with.directory),
      done_(done),
      progress_(with.progress),
      copy_hasher_(with.copied_items),
      payloads_(
          with.run.program, with.run.inputs, with.shares,
          [&directory = with.directory] { return directory.create_scratch(); }, with.executors,
          with.sums, with.progress),
      checksums_(laid_out_.made.size()),
      sealed_(laid_out_.made.size()),
      files_(laid_out_.files.size()) {
  // Nearly all parts are a single piece.
  parts_.reserve(file_part_count(laid_out_));
  pieces_.reserve(laid_out_.made.size());
}

void FileWriter::add(const FilePart& whole, std::uint64_t piece_bytes) {
  FilePart part = whole;
  if (part.kind == FilePart::Kind::kCopy) {
    const OutputCopy& copy = laid_out_.copies[part.index];
    for (std::uint64_t begin = 0; begin < whole.length; begin += part.length) {
      part.offset = whole.offset + begin;
      part.length = copy_hasher_.length_of_piece(copy.from, copy.begin + begin,
                                                 whole.length - begin, piece_bytes);
      parts_.push_back(part);
    }
    return;
  }
  if (part.kind == FilePart::Kind::kMade) {
    std::uint64_t count = part.block_count = payloads_.block_count(run_.made[part.index]);
    std::uint64_t of_one = std::max<std::uint64_t>(part.length / count, 1);
    std::uint64_t at_once = std::max<std::uint64_t>(piece_bytes / of_one, 1);
    const auto first_piece = static_cast<std::uint32_t>(pieces_.size());
    for (std::uint64_t first = 0; first < count; first += at_once) {
      part.blocks = {first, std::min(first + at_once, count)};
      part.piece = static_cast<std::uint32_t>(pieces_.size());
      pieces_.emplace_back();
      parts_.push_back(part);
      payloads_.expect(run_.made[part.index]);
    }
    files_[part.file].tiles.push_back(
        {part.index, first_piece, static_cast<std::uint32_t>(pieces_.size())});
    return;
  }
  parts_.push_back(part);
}

void FileWriter::expect(std::span<const FilePart> own) {
  for (const FilePart& part : own) ++files_[part.file].left;
}

void FileWriter::share(std::uint32_t file, bool is_owner) {
  files_[file].is_joined = !is_owner;
  ++files_[file].left;  // one more than this rank's parts: the owner finishes the file
}

Status FileWriter::create(std::uint32_t file) {
  SHW_TRY([[maybe_unused]] OutputFile * made, open(file));
  return {};
}

Result<Bytes> FileWriter::leave(std::uint32_t file, std::span<const FilePart> own) {
  if (files_[file].file != nullptr) SHW_CHECK(files_[file].file->sync());
  files_[file].file.reset();
  Encoder payload;
  for (const FilePart& part : own) {
    if (part.kind != FilePart::Kind::kMade) continue;
    const WrittenBlocks& piece = pieces_[part.piece];
    for (std::uint64_t number :
         {std::uint64_t{part.piece}, std::uint64_t{piece.crc}, std::uint64_t{piece.in_order},
          piece.length, piece.elements.fingerprint.a, piece.elements.fingerprint.b,
          piece.elements.out_of_range})
      payload.add(number);
  }
  return payload.take();
}

Status FileWriter::receive(BytesView left) {
  Decoder payload(left);
  while (!payload.is_at_end()) {
    std::uint64_t at = 0, crc = 0, in_order = 0;
    WrittenBlocks piece;
    SHW_TRY(at, payload.number());
    SHW_TRY(crc, payload.number());
    SHW_TRY(in_order, payload.number());
    SHW_TRY(piece.length, payload.number());
    SHW_TRY(piece.elements.fingerprint.a, payload.number());
    SHW_TRY(piece.elements.fingerprint.b, payload.number());
    SHW_TRY(piece.elements.out_of_range, payload.number());
    if (at >= pieces_.size())
      return fail(ErrorKind::kIo, "another worker wrote a piece that is not to be made");
    piece.crc = static_cast<std::uint32_t>(crc);
    piece.in_order = in_order != 0;
    pieces_[static_cast<std::size_t>(at)] = piece;
  }
  return {};
}

Status FileWriter::finish(std::uint32_t file) {
  SHW_TRY(OutputFile * opened, open(file));
  return finish(file, *opened);
}

Result<OutputFile*> FileWriter::open(std::uint32_t index) {
  OpenFile& file = files_[index];
  std::lock_guard lock(file.guard);
  if (file.file == nullptr) {
    const std::string& path = laid_out_.files[index].path;
    SHW_TRY(file.file, file.is_joined ? directory_.join_file(path) : directory_.create_file(path));
  }
  return file.file.get();
}

Status FileWriter::put(const FilePart& part, OutputFile& file, RemoteSourceData* sent) {
  switch (part.kind) {
    case FilePart::Kind::kBytes:
      return file.write_at(part.offset, laid_out_.before[part.index].bytes);
    case FilePart::Kind::kCopy: {
      const OutputCopy& copy = laid_out_.copies[part.index];
      SHW_TRY(auto source, run_.outputs.source->directory()->open(copy.from));
      const std::uint64_t begin = copy.begin + (part.offset - copy.offset);
      auto passing = copy_hasher_.watch(copy.from, begin, part.length);
      StageClock clock(stages_of(progress_), Stage::kWrite, part.length);
      return copy_range(*source, begin, part.length, file, part.offset, progress_,
                        passing ? &*passing : nullptr);
    }
    case FilePart::Kind::kMade: {
      SHW_TRY(pieces_[part.piece], payloads_.write(run_.made[part.index], part.blocks, file, sent));
      payloads_.done(run_.made[part.index]);
      return {};
    }
  }
  return {};
}

std::span<const WrittenBlocks> FileWriter::pieces_of(const OpenFile::Tile& tile) const {
  return std::span(pieces_).subspan(tile.first_piece, tile.last_piece - tile.first_piece);
}

std::uint32_t FileWriter::crc_of(const OpenFile::Tile& tile) const {
  return combine_range_crcs(pieces_of(tile), laid_out_.made[tile.made].length);
}

ElementSums FileWriter::elements_of(const OpenFile::Tile& tile) const {
  ElementSums sums;
  for (const WrittenBlocks& piece : pieces_of(tile)) sums += piece.elements;
  return sums;
}

WrittenElementSums FileWriter::release_elements() {
  parts_ = {};
  WrittenElementSums elements(laid_out_.made.size());
  for (const OpenFile& file : files_) {
    if (!file.is_finished) continue;
    for (const OpenFile::Tile& tile : file.tiles) elements[tile.made] = elements_of(tile);
  }
  return elements;
}

// Writes the checksums of chunks of one file.
Status FileWriter::seal(std::span<const std::uint32_t> tiles, OutputFile& file) {
  std::vector<std::uint32_t> checksums;
  for (std::uint32_t tile : tiles) checksums.push_back(checksums_[tile]);
  SHW_CHECK(run_.writer->seal_tiles(
      run_.outputs, laid_out_, tiles, checksums, [&](std::uint64_t offset, BytesView bytes) {
        return is_cancelled(progress_) ? Status(cancelled_error()) : file.write_at(offset, bytes);
      }));
  for (std::uint32_t tile : tiles) sealed_[tile] = 1;
  return {};
}

// Writes the checksums that are not yet in the file.
Status FileWriter::seal_rest(std::uint32_t index, OutputFile& file) {
  const FormatWriter& writer = *run_.writer;
  if (writer.seal_tiles != nullptr) {
    CoalescingFile gathered(file);
    std::vector<std::uint32_t> tiles;
    for (const OpenFile::Tile& tile : files_[index].tiles) {
      if (sealed_[tile.made] == 0) tiles.push_back(tile.made);
    }
    SHW_CHECK(seal(tiles, gathered));
    return gathered.flush();
  }
  if (writer.seal_file == nullptr || laid_out_.files[index].is_beside) return {};
  SHW_TRY(auto around, writer.seal_file(run_.outputs, laid_out_, index, checksums_));
  for (const OutputBytes& bytes : around) SHW_CHECK(file.write_at(bytes.offset, bytes.bytes));
  return {};
}

// Writes what is known after all parts were written (checksums), and the end of the file.
Status FileWriter::finish(std::uint32_t index, OutputFile& file) {
  if (is_cancelled(progress_)) return cancelled_error();
  std::vector<ElementSums> own;
  for (const OpenFile::Tile& tile : files_[index].tiles) {
    checksums_[tile.made] = crc_of(tile);
    own.push_back(elements_of(tile));
  }
  SHW_CHECK(seal_rest(index, file));
  SHW_CHECK(file.finish(laid_out_.files[index].size));
  files_[index].file.reset();
  files_[index].is_finished = true;
  return done_({laid_out_.files[index].path, laid_out_.files[index].size, std::move(own)});
}

Status FileWriter::write(const FilePart& part, RemoteSourceData* sent) {
  if (is_cancelled(progress_)) return cancelled_error();
  SHW_TRY(OutputFile * file, open(part.file));
  SHW_CHECK(put(part, *file, sent));
  return --files_[part.file].left == 0 ? finish(part.file, *file) : Status{};
}

bool FileWriter::is_small(const FilePart& part) const {
  return part.kind == FilePart::Kind::kMade && part.block_count == 1 && part.length <= kSmallTile;
}

std::size_t FileWriter::length_of_run(std::span<const FilePart> parts) const {
  if (run_.writer->seal_tiles == nullptr || !is_small(parts.front())) return 1;
  const std::size_t most = std::min(kRunTiles, parts.size());
  std::uint64_t bytes = parts.front().length;
  std::size_t length = 1;
  for (; length < most && bytes < kRunBytes; ++length) {
    if (parts[length].file != parts.front().file || !is_small(parts[length])) break;
    bytes += parts[length].length;
  }
  return length;
}

Status FileWriter::write_run(std::span<const FilePart> parts) {
  if (parts.size() == 1) return write(parts.front());
  const std::uint32_t index = parts.front().file;
  SHW_TRY(OutputFile * file, open(index));
  CoalescingFile gathered(*file);
  std::vector<std::uint32_t> tiles;
  for (const FilePart& part : parts) {
    if (is_cancelled(progress_)) return cancelled_error();
    SHW_CHECK(put(part, gathered, nullptr));
    checksums_[part.index] = crc_of({part.index, part.piece, part.piece + 1});
    tiles.push_back(part.index);
  }
  SHW_CHECK(seal(tiles, gathered));
  SHW_CHECK(gathered.flush());
  std::atomic<std::size_t>& left = files_[index].left;
  return (left -= parts.size()) == 0 ? finish(index, *file) : Status{};
}

}  // namespace shw
