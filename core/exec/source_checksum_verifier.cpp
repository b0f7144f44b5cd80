#include "core/exec/source_checksum_verifier.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/encoder.h"
#include "core/base/parallel.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/items/chunk_storage.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/zip/crc32.h"
#include "core/io/gather.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

// Shorter runs cost more than a separate read.
constexpr std::int64_t kShortRun = 64;

bool has_checksum(const Checkpoint& checkpoint, ChunkId chunk) {
  const Codec& codec = checkpoint.codec(chunk);
  return codec.reader != nullptr && codec.reader->check != nullptr;
}

// Finds items by file and offset.
class ItemsByPlace {
 public:
  explicit ItemsByPlace(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), order_(chunks_on_disk(checkpoint)) {
    std::erase_if(order_, [&](ChunkId chunk) { return !checkpoint.item(chunk); });
    for (std::uint32_t i = 0; i < checkpoint.file_count(); ++i)
      files_.emplace(checkpoint.file(FileId{i}).path, i);
  }

  // The chunk whose item contains this byte.
  std::optional<ChunkId> at(const std::string& path, std::uint64_t offset) const {
    const auto file = files_.find(path);
    if (file == files_.end()) return std::nullopt;
    const std::pair place{file->second, offset};
    auto after = std::upper_bound(
        order_.begin(), order_.end(), place,
        [&](const auto& wanted, ChunkId chunk) { return wanted < place_of(chunk); });
    if (after == order_.begin()) return std::nullopt;
    const ChunkId chunk = *std::prev(after);
    const auto [its_file, begin] = place_of(chunk);
    const auto length =
        static_cast<std::uint64_t>(std::max<std::int64_t>(checkpoint_.item(chunk)->length, 0));
    const bool inside = its_file == file->second && offset - begin < length;
    return inside ? std::optional(chunk) : std::nullopt;
  }

 private:
  std::pair<std::uint32_t, std::uint64_t> place_of(ChunkId chunk) const {
    const ItemPlace item = *checkpoint_.item(chunk);
    return {static_cast<std::uint32_t>(index_of(item.file)),
            static_cast<std::uint64_t>(std::max<std::int64_t>(item.offset, 0))};
  }

  const Checkpoint& checkpoint_;
  std::vector<ChunkId> order_;
  std::map<std::string, std::uint32_t> files_;
};

// nullopt if the job reads an element more than once.
std::optional<std::uint64_t> bytes_of_job(const Program& program, const ProgramJob& job) {
  ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] == 0) return std::nullopt;
  }
  const auto elements = volume(sizes);
  return elements
             ? checked_mul(static_cast<std::uint64_t>(*elements), std::uint64_t{size_of(job.from)})
             : std::nullopt;
}

Error checksum_mismatch_error(const Checkpoint& checkpoint, ChunkId chunk, const DataCheck& check) {
  return {ErrorKind::kDamaged,
          "the bytes are not those that were saved (record " + check.record +
              " does not match its checksum), and a new file with good checksums would hide that",
          {checkpoint.file(checkpoint.item(chunk)->file).path, check.record_offset,
           std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))},
          "copy the file again from the original: `check --data` lists all damage"};
}

}  // namespace

Result<std::unique_ptr<SourceChecksumVerifier>> SourceChecksumVerifier::of(
    const Program& program, const std::vector<const Checkpoint*>& inputs, Progress* progress) {
  std::unique_ptr<SourceChecksumVerifier> sums(
      new SourceChecksumVerifier(program, inputs, progress));
  for (std::uint32_t input = 0; input < inputs.size(); ++input) {
    if (inputs[input]->directory() != nullptr) SHW_CHECK(sums->find_items(input));
  }
  sums->count_bytes();
  return sums;
}

// Finds the saved checksums of the sources of one input.
Status SourceChecksumVerifier::find_items(std::uint32_t input) {
  const Checkpoint& checkpoint = *inputs_[input];
  const ItemsByPlace items(checkpoint);
  std::vector<ChunkId> chunks;
  std::vector<std::uint32_t> sources;  // by chunk
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const ProgramSource& source = program_.sources[i];
    if (source.input != input) continue;
    const bool is_item = source.form == SourceForm::kItem;
    const auto chunk = is_item ? std::optional(ChunkId{source.chunk})
                               : items.at(program_.names[source.file], source.offset);
    if (!chunk || index_of(*chunk) >= checkpoint.chunk_count() || !has_checksum(checkpoint, *chunk))
      continue;
    rows_[i].chunk = *chunk;
    // Decompression verifies the checksum itself (decoded_items.h).
    const bool is_held = is_item && !checkpoint.transforms(*chunk).empty();
    rows_[i].left = is_held ? kVerifiedOrNone : kApart;
    if (is_item) continue;
    chunks.push_back(*chunk);
    sources.push_back(i);
  }
  auto note = [&](std::size_t i, const ChunkStorage& storage) {
    const ProgramSource& source = program_.sources[sources[i]];
    const bool is_all = storage.is_stored && storage.offset == source.offset &&
                        storage.length == source.length && source.length < kApart;
    if (!is_all) return;
    if (!storage.crc) {
      // For a bare record the archive's directory may hold the checksum.
      rows_[sources[i]].left =
          checkpoint.codec(chunks[i]).is_without_header ? kApart : kVerifiedOrNone;
      return;
    }
    rows_[sources[i]].left = source.length;
    rows_[sources[i]].wanted = *storage.crc ^ crc32_of_zeros(0, source.length);
  };
  // Items that cannot be read or differ from their record are verified separately.
  Status read = for_each_storage(checkpoint, chunks, note, progress_);
  return read || read.error().kind != ErrorKind::kCancelled ? Status{} : read;
}

// Only sources that are read completely and exactly once can be verified on the way.
void SourceChecksumVerifier::count_bytes() {
  std::vector<std::uint64_t> read(rows_.size(), 0);
  for (const ProgramJob& job : program_.jobs) {
    if (job.source == SourceId::kNone) continue;
    // A scale (four bytes) is read apart from the job's elements, so its source is never fully
    // counted.
    if (job.factor != SourceId::kNone) read[static_cast<std::size_t>(job.factor)] = UINT64_MAX;
    std::uint64_t& bytes = read[static_cast<std::size_t>(job.source)];
    bytes =
        checked_add(bytes, bytes_of_job(program_, job).value_or(UINT64_MAX)).value_or(UINT64_MAX);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::uint64_t left = rows_[i].left;
    if (left != kVerifiedOrNone && left != read[i])
      rows_[i].left = read[i] == 0 ? kVerifiedOrNone : kApart;
    rows_[i].is_counted = rows_[i].left == left && left != kVerifiedOrNone && left != kApart;
  }
}

Status SourceChecksumVerifier::add(const BytesRead& read) {
  const auto at = static_cast<std::size_t>(read.source);
  Row& row = rows_[at];
  if (!needs_reads_of(read.source) || read.bytes.empty()) return {};
  CrcChange change(program_.source(read.source).length);
  const bool is_long = for_each_run(
      read.first, read.sizes, read.strides, read.element,
      [&](std::int64_t begin, std::size_t done, std::int64_t length) {
        if (length < kShortRun && static_cast<std::size_t>(length) != read.bytes.size())
          return false;
        const BytesView run = read.bytes.subspan(done, static_cast<std::size_t>(length));
        const bool is_known = read.crc && run.size() == read.bytes.size();
        change.add(static_cast<std::uint64_t>(begin), run.size(),
                   is_known ? *read.crc : crc32_of(run));
        return true;
      });
  if (!is_long) {
    row.left = kApart;
    return {};
  }
  row.change ^= change.value();
  const std::uint64_t bytes = read.bytes.size();
  // Another thread may have marked the source for a separate read.
  for (std::uint64_t now = row.left; now != kApart && now != kVerifiedOrNone;) {
    if (!row.left.compare_exchange_weak(now, now - bytes)) continue;
    return now == bytes && row.change != row.wanted ? look(at) : Status{};
  }
  return {};
}

// Sends three numbers per source. All ranks merge them alike: verified by one means verified,
// marked by one means marked for a separate read.
Status SourceChecksumVerifier::share(Team& team) {
  std::vector<std::uint64_t> own;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const std::uint64_t length = program_.sources[i].length;
    if (!row.is_counted || row.left == length) continue;
    own.insert(own.end(), {i, row.left, row.change});
    row.left = length;
    row.change = 0;
  }
  Encoder payload;
  payload.add(own);
  SHW_TRY(auto told, team.allgather(payload.take(), "checksums of what was read"));
  for (const Bytes& message : told) {
    Decoder theirs(message);
    SHW_TRY(own, theirs.numbers());
    for (std::size_t i = 0; i + 2 < own.size(); i += 3) {
      if (own[i] >= rows_.size() || !rows_[static_cast<std::size_t>(own[i])].is_counted)
        return fail(ErrorKind::kIo, "another worker reads other sources");
      Row& row = rows_[static_cast<std::size_t>(own[i])];
      const std::uint64_t length = program_.sources[static_cast<std::size_t>(own[i])].length;
      row.left = merge_remaining_bytes(row.left, own[i + 1], length);
      row.change ^= static_cast<std::uint32_t>(own[i + 2]);
    }
  }
  return {};
}

// Merges one rank's remaining bytes into the common value.
std::uint64_t SourceChecksumVerifier::merge_remaining_bytes(std::uint64_t left,
                                                            std::uint64_t of_one,
                                                            std::uint64_t length) {
  if (left == kVerifiedOrNone || of_one == kVerifiedOrNone) return kVerifiedOrNone;
  if (left == kApart || of_one > length) return kApart;
  const std::uint64_t read = length - of_one;
  return read > left ? kApart : left - read;
}

Status SourceChecksumVerifier::look(std::size_t at) {
  ItemCursor items(*inputs_[program_.sources[at].input], /*decoded_bytes=*/0);
  return look(at, items);
}

Status SourceChecksumVerifier::look(std::size_t at, ItemCursor& items) {
  const Checkpoint& checkpoint = *inputs_[program_.sources[at].input];
  auto seen = check_item_data(items, rows_[at].chunk, progress_);
  // Read errors are reported by the code that needs the data; in an otherwise damaged archive the
  // checksum is not conclusive.
  const bool is_said = !seen && (seen.error().kind == ErrorKind::kCancelled ||
                                 seen.error().kind == ErrorKind::kDamaged);
  if (is_said) return tl::unexpected<Error>(std::move(seen).error());
  if (seen && seen->crc == DataCheck::Crc::kDiffers)
    return tl::unexpected<Error>(checksum_mismatch_error(checkpoint, rows_[at].chunk, *seen));
  rows_[at].left = kVerifiedOrNone;
  return {};
}

Status SourceChecksumVerifier::finalize(Team* team) {
  std::vector<std::uint64_t> costs;
  std::vector<std::size_t> unsettled;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.left == kVerifiedOrNone || (row.left == 0 && row.change == row.wanted)) continue;
    unsettled.push_back(i);
    costs.push_back(program_.sources[i].length);
  }
  // by input: a thread checks items in file order
  std::vector<std::unique_ptr<Pool<ItemCursor>>> items;
  for (const Checkpoint* input : inputs_)
    items.push_back(std::make_unique<Pool<ItemCursor>>(
        [input] { return std::make_unique<ItemCursor>(*input, 0); }));
  MapTask work{"hold what was read against its checksums", costs, {}, progress_};
  work.find = [&](std::size_t i) -> Result<std::string> {
    if (is_cancelled(progress_)) return cancelled_error();
    auto own = items[program_.sources[unsettled[i]].input]->take();
    SHW_CHECK(look(unsettled[i], *own));
    return std::string();
  };
  SHW_TRY([[maybe_unused]] std::vector<std::string> told, map_across_ranks(team, work));
  return {};
}

}  // namespace shw
