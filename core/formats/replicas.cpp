#include "core/formats/replicas.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/checked.h"
#include "core/formats/items/item_access.h"
#include "core/formats/items/items.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::uint64_t kComparedAtOnce = 256 << 10;
constexpr std::uint64_t kMaxChecked = std::uint64_t{64} << 30;
constexpr std::uint64_t kMaxDecodedCopy = std::uint64_t{256} << 20;

// The byte range of a copy in its file.
struct CopyRange {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0, length = 0;
};

Result<CopyRange> range_of(const Checkpoint& checkpoint, const ItemPlace& place) {
  if (!is_reachable(checkpoint, place))
    return fail(ErrorKind::kDamaged, "the file is missing or truncated");
  SHW_TRY(auto source, checkpoint.directory()->open(checkpoint.file(place.file).path));
  return CopyRange{std::move(source), static_cast<std::uint64_t>(place.offset),
                   static_cast<std::uint64_t>(place.length)};
}

Result<bool> are_equal(const CopyRange& a, const CopyRange& b, Progress* progress) {
  if (a.length != b.length) return false;
  Bytes left, right;
  for (std::uint64_t at = 0; at < a.length; at += kComparedAtOnce) {
    if (is_cancelled(progress)) return cancelled_error();
    left.resize(static_cast<std::size_t>(std::min(kComparedAtOnce, a.length - at)));
    right.resize(left.size());
    SHW_CHECK(a.source->read(a.offset + at, left));
    SHW_CHECK(b.source->read(b.offset + at, right));
    if (left != right) return false;
  }
  return true;
}

// True if the bytes of both can be compared directly.
bool have_equal_layout(const ItemHeader& a, const ItemHeader& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides &&
         a.storage_offset == b.storage_offset && a.payload_length == b.payload_length &&
         a.big_endian == b.big_endian && a.conjugate == b.conjugate && a.negative == b.negative &&
         !a.compressed && !b.compressed;
}

Result<OpenItem> open_replica_item(const Checkpoint& checkpoint, const Replica& replica,
                                   ItemPart part) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, checkpoint.place(replica.storage)));
  const ItemReader* reader = checkpoint.codec(replica.storage).reader;
  if (reader == nullptr)
    return fail(ErrorKind::kUnsupported, "holds items without headers",
                {range.source->name(), range.offset});
  return reader->open(checkpoint, replica.of, std::move(range), part);
}

bool is_in_order(const ItemHeader& header) {
  return is_row_major(header.sizes, header.strides);
}

// Compares row-major elements as sequential streams.
Result<bool> are_equal_streams(const OpenItem& one, const OpenItem& two, Progress* progress) {
  SHW_TRY(StorageBytes left, storage_bytes(one));
  SHW_TRY(StorageBytes right, storage_bytes(two));
  const std::uint64_t width = size_of(one.header.dtype);
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(volume(one.header.sizes).value_or(0)) * width;
  left.offset += static_cast<std::uint64_t>(one.header.storage_offset) * width;
  right.offset += static_cast<std::uint64_t>(two.header.storage_offset) * width;
  Bytes here, there;
  for (std::uint64_t at = 0; at < bytes; at += here.size()) {
    if (is_cancelled(progress)) return cancelled_error();
    here.resize(static_cast<std::size_t>(std::min(kComparedAtOnce, bytes - at)));
    there.resize(here.size());
    SHW_CHECK(left.source->read(left.offset + at, here));
    SHW_CHECK(right.source->read(right.offset + at, there));
    SHW_CHECK(apply_flags(one, here));
    SHW_CHECK(apply_flags(two, there));
    if (here != there) return false;
  }
  return true;
}

// Compares copies that are compressed or have gaps.
Result<bool> are_equal_elements(const Checkpoint& checkpoint, const Replica& replica,
                                const ItemHeader& one, const ItemHeader& two, Progress* progress) {
  if (one.dtype != two.dtype || one.sizes != two.sizes) return false;
  if (is_in_order(one) && is_in_order(two)) {
    ItemFiles files(checkpoint);
    SHW_TRY(OpenItem left, open_item(files, checkpoint, replica.of, ItemPart::kStreamedPayload));
    SHW_TRY(OpenItem right, open_replica_item(checkpoint, replica, ItemPart::kStreamedPayload));
    return are_equal_streams(left, right, progress);
  }
  if (std::max(one.payload_length, two.payload_length) > kMaxDecodedCopy)
    return fail(ErrorKind::kUnsupported,
                fmt::format("copies of more than {} bytes are not decoded", kMaxDecodedCopy));
  SHW_TRY(Bytes left, read_chunk(checkpoint, replica.of));
  SHW_TRY(OpenItem copy, open_replica_item(checkpoint, replica, ItemPart::kPayload));
  SHW_TRY(Bytes right, read_elements(copy));
  return left == right;
}

// Verifies the checksums of a copy that is not bytewise equal to its chunk.
Status check_copy(const Checkpoint& checkpoint, const Replica& replica, Progress* progress) {
  const ItemReader* reader = checkpoint.codec(replica.storage).reader;
  if (reader == nullptr || reader->check == nullptr) return {};
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, checkpoint.place(replica.storage)));
  SHW_TRY(DataCheck done, reader->check(range, checkpoint.transforms(replica.storage), kMaxChecked,
                                        progress, nullptr));
  if (done.crc != DataCheck::Crc::kDiffers) return {};
  return fail(ErrorKind::kDamaged, "the record " + done.record + " differs from its checksum",
              {range.source->name(), done.record_offset});
}

// First character of a result text, which encodes its kind.
constexpr char kDiffers = '!', kUnread = '?', kDamaged = '#';

ReplicaMismatch::Kind kind_of(char letter) {
  if (letter == kDamaged) return ReplicaMismatch::Kind::kDamaged;
  return letter == kDiffers ? ReplicaMismatch::Kind::kDiffers : ReplicaMismatch::Kind::kUnread;
}

std::string unread_copy_text(const Error& error) {
  if (error.kind != ErrorKind::kDamaged)
    return kUnread + ("a copy of a chunk cannot be read: " + error.message);
  // A damaged copy matters even if the chunk is intact: the rank that saved the copy loads the
  // copy.
  return kDamaged + ("a copy of a chunk in " + error.place.file + " is damaged: " + error.message);
}

std::vector<const Replica*> replicas_of(const Checkpoint& checkpoint) {
  std::vector<const Replica*> all;
  for (std::uint32_t chunk = 0; chunk < checkpoint.chunk_count(); ++chunk) {
    for (const Replica& replica : checkpoint.replicas(ChunkId{chunk})) all.push_back(&replica);
  }
  return all;
}

// Bytes read to compare all ranks' items of an entry.
std::uint64_t bytes_to_compare(const NonTensorEntry& row) {
  std::uint64_t bytes = 0;
  for (const ItemPlace& other : row.of_other_ranks) {
    const std::int64_t length = std::clamp<std::int64_t>(other.length, 0, INT64_MAX / 2);
    bytes = checked_add(bytes, 2 * static_cast<std::uint64_t>(length)).value_or(UINT64_MAX);
  }
  return bytes;
}

// Compares bytes, because torch pickles equal values equally.
Result<bool> is_equal_on_all_ranks(const Checkpoint& checkpoint, const NonTensorEntry& row,
                                   Progress* progress) {
  for (const ItemPlace& other : row.of_other_ranks) {
    if (!row.item) return false;
    auto equal = [&]() -> Result<bool> {
      SHW_TRY(CopyRange left, range_of(checkpoint, *row.item));
      SHW_TRY(CopyRange right, range_of(checkpoint, other));
      return are_equal(left, right, progress);
    }();
    if (!equal && equal.error().kind == ErrorKind::kCancelled) return equal;
    if (!equal || !*equal) return false;
  }
  return true;
}

}  // namespace

Result<std::string> mismatch_of(const Checkpoint& checkpoint, const Replica& replica,
                                Progress* progress) {
  ItemPlace other = checkpoint.place(replica.storage);
  auto first = checkpoint.item(replica.of);
  std::string file = checkpoint.file(other.file).path;
  if (!first) return std::string();  // reported for the chunk itself
  SHW_TRY(CopyRange left, range_of(checkpoint, *first));
  SHW_TRY(CopyRange right, range_of(checkpoint, other));
  const bool same_codec = &checkpoint.codec(replica.of) == &checkpoint.codec(replica.storage);
  if (same_codec) {
    SHW_TRY(bool equal, are_equal(left, right, progress));
    if (equal) return std::string();
  }
  SHW_CHECK(check_copy(checkpoint, replica, progress));
  SHW_TRY(ItemHeader one, read_item_header(checkpoint, replica.of));
  SHW_TRY(OpenItem copy, open_replica_item(checkpoint, replica, ItemPart::kHeader));
  const ItemHeader& two = copy.header;
  std::string words = "copies of one chunk differ: " + checkpoint.file(first->file).path + " and " +
                      file + " should be equal";
  if (!same_codec || !have_equal_layout(one, two) || !is_stored_verbatim(one)) {
    SHW_TRY(bool equal, are_equal_elements(checkpoint, replica, one, two, progress));
    return equal ? std::string() : words;
  }
  left = {left.source, one.payload_offset, one.payload_length};
  right = {right.source, two.payload_offset, two.payload_length};
  SHW_TRY(bool equal, are_equal(left, right, progress));
  return equal ? std::string() : words;
}

Result<std::map<TensorId, ReplicaMismatch>> mismatched_replicas(const Checkpoint& checkpoint,
                                                                Progress* progress, Team* team) {
  const std::vector<const Replica*> replicas = replicas_of(checkpoint);
  std::vector<std::uint64_t> costs;
  for (const Replica* replica : replicas)
    costs.push_back(2 * static_cast<std::uint64_t>(
                            std::max<std::int64_t>(checkpoint.place(replica->storage).length, 0)));
  // Texts prefixed with a letter.
  MapTask work{"compare copies", costs, {}, progress};
  work.find = [&](std::size_t i) -> Result<std::string> {
    auto mismatch = mismatch_of(checkpoint, *replicas[i], progress);
    if (!mismatch && mismatch.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(mismatch).error());
    if (!mismatch) return unread_copy_text(mismatch.error());
    return mismatch->empty() ? std::string() : kDiffers + *mismatch;
  };
  SHW_TRY(std::vector<std::string> words, map_across_ranks(team, work));
  std::vector<ReplicaMismatch> mismatches(replicas.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) continue;
    mismatches[i] = {kind_of(words[i].front()), words[i].substr(1)};
  }
  std::map<TensorId, ReplicaMismatch> out;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    if (mismatches[i].words.empty()) continue;
    ReplicaMismatch& worst = out[checkpoint.tensor_of(replicas[i]->of)];
    if (worst.words.empty() || mismatches[i].kind > worst.kind) worst = std::move(mismatches[i]);
  }
  return out;
}

Result<RankSpecificEntries> own_entries(const Checkpoint& checkpoint, std::uint64_t most,
                                        Progress* progress) {
  RankSpecificEntries found;
  if (checkpoint.format().traits.index_of_rank == nullptr) return found;
  for (const NonTensorEntry& row : checkpoint.objects()) {
    const std::uint64_t cost = bytes_to_compare(row);
    if (cost > most) {
      ++found.not_compared;
      continue;
    }
    most -= cost;
    SHW_TRY(bool alike, is_equal_on_all_ranks(checkpoint, row, progress));
    if (!alike) found.differing.push_back(row.fqn);
  }
  return found;
}

Result<std::vector<std::string>> entries_differing_between_ranks(const Checkpoint& checkpoint,
                                                                 Progress* progress, Team* team) {
  std::vector<std::string> names;
  if (checkpoint.format().traits.index_of_rank == nullptr) return names;
  SHW_TRY(auto tensors, mismatched_replicas(checkpoint, progress, team));
  for (const auto& [tensor, mismatch] : tensors) names.emplace_back(checkpoint.fqn(tensor));
  SHW_TRY(RankSpecificEntries entries, own_entries(checkpoint, UINT64_MAX, progress));
  names.insert(names.end(), entries.differing.begin(), entries.differing.end());
  return names;
}

Result<std::vector<std::string>> differing_entries_left_out(const Checkpoint& checkpoint,
                                                            const std::vector<std::string>& dropped,
                                                            Progress* progress) {
  SHW_TRY(std::vector<std::string> names, entries_differing_between_ranks(checkpoint, progress));
  const std::unordered_set<std::string_view> gone(dropped.begin(), dropped.end());
  std::erase_if(names, [&](const std::string& fqn) { return gone.contains(fqn); });
  return names;
}

}  // namespace shw
