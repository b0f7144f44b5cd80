#include "core/facts/reference/equal_tensors.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/hash.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/items/items.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::uint64_t kPieceBytes = 256 << 10;    // two of them fit in a core's cache
constexpr std::uint64_t kBlockBytes = 2 << 20;      // held if rows are strided
constexpr std::uint64_t kComparedBytes = 64 << 20;  // per side, the work of one thread at a time

bool is_same_item(const Checkpoint& a, ChunkId one, const Checkpoint& b, ChunkId two) {
  if (a.directory()->name() != b.directory()->name()) return false;
  auto first = a.item(one), second = b.item(two);
  return first && second && is_reachable(a, *first) && is_reachable(b, *second) &&
         a.file(first->file).path == b.file(second->file).path && first->offset == second->offset &&
         first->length == second->length;
}

bool have_equal_chunks(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                       TensorId other) {
  auto one = checkpoint.chunks(tensor), two = reference.chunks(other);
  bool alike = checkpoint.directory() != nullptr && reference.directory() != nullptr &&
               checkpoint.dtype(tensor) == reference.dtype(other) &&
               size_of(checkpoint.dtype(tensor)) != 0 && one.size() == two.size() &&
               same(checkpoint.shape(tensor), reference.shape(other)) &&
               compute_tiling(checkpoint, tensor).tiling == Tiling::kExact;
  for (std::uint32_t i = 0; alike && i < one.size(); ++i)
    alike = same(checkpoint.offsets(one[i]), reference.offsets(two[i])) &&
            same(checkpoint.sizes(one[i]), reference.sizes(two[i]));
  return alike;
}

// Chunks [first, last) of a tensor; for large chunks a range of blocks.
struct TileRun {
  TensorId tensor{}, other{};
  std::uint32_t first = 0, last = 0;
  std::uint64_t first_block = 0, last_block = UINT64_MAX;
};

class EqualityPass {
 public:
  EqualityPass(const CheckInput& input, Progress* progress, Team* team)
      : a_(input.checkpoint),
        b_(*input.reference),
        progress_(progress),
        team_(team),
        decoded_(input.memory) {}

  void add(TensorId tensor, TensorId other);
  // The tensors without any difference.
  Result<std::set<TensorId>> run();

 private:
  struct Readers {
    ItemCursor a, b;
    Bytes a_piece = {}, b_piece = {};
  };

  std::uint64_t bytes_of(ChunkId chunk) const {
    const std::size_t element = size_of(a_.dtype(a_.tensor_of(chunk)));
    return static_cast<std::uint64_t>(volume(a_.sizes(chunk)).value_or(0)) * element;
  }
  Blocks blocks_of(ChunkId chunk) const {
    const std::size_t element = size_of(a_.dtype(a_.tensor_of(chunk)));
    const Extents sizes = copy_of(a_.sizes(chunk));
    return {sizes, block_sizes(sizes, static_cast<std::int64_t>(kBlockBytes / element), {})};
  }
  void add_run(const TileRun& run, std::uint64_t bytes);
  bool can_be_cut(ChunkId one, ChunkId two) const;
  std::optional<Hash128> decoded_hash(const Checkpoint& checkpoint, ChunkId chunk,
                                      std::uint64_t bytes);
  Result<bool> is_equal_tile(ChunkId one, ChunkId two, const TileRun& run, Readers& readers);
  Result<bool> is_equal(const TileRun& run);
  Result<bool> is_equal(ChunkId one, ChunkId two, const Box& block, Readers& readers);

  const Checkpoint &a_, &b_;
  Progress* progress_;
  Team* team_;
  DecodedItems decoded_;  // decoded items of both sides, shared by all threads
  std::set<TensorId> asked_;
  std::vector<TileRun> parts_;
  std::vector<std::uint64_t> costs_;
};

void EqualityPass::add_run(const TileRun& part, std::uint64_t bytes) {
  if (part.first == part.last) return;
  parts_.push_back(part);
  costs_.push_back(2 * bytes);
}

// Items that must be decoded are not split: one thread decodes each.
bool EqualityPass::can_be_cut(ChunkId one, ChunkId two) const {
  auto left = ItemCursor(a_, 0).storage(one), right = ItemCursor(b_, 0).storage(two);
  return left && right && left->is_stored && right->is_stored;
}

void EqualityPass::add(TensorId tensor, TensorId other) {
  asked_.insert(tensor);
  auto chunks = a_.chunks(tensor), chunks_there = b_.chunks(other);
  TileRun part{tensor, other};
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const std::uint64_t own = bytes_of(chunks[i]);
    if (bytes + own > kComparedBytes) {
      part.last = i;
      add_run(part, bytes);
      part.first = i;
      bytes = 0;
    }
    bytes += own;
    if (own <= kComparedBytes || !can_be_cut(chunks[i], chunks_there[i])) continue;
    const std::uint64_t blocks = blocks_of(chunks[i]).count();
    const std::uint64_t at_once = kComparedBytes / kBlockBytes;
    for (std::uint64_t block = 0; block < blocks; block += at_once)
      add_run({tensor, other, i, i + 1, block, std::min(block + at_once, blocks)},
              std::min(kComparedBytes, own));
    part.first = i + 1;
    bytes = 0;
  }
  part.last = chunks.size();
  add_run(part, bytes);
}

Result<bool> EqualityPass::is_equal(ChunkId one, ChunkId two, const Box& block, Readers& readers) {
  const std::size_t element = size_of(a_.dtype(a_.tensor_of(one)));
  const auto bytes = static_cast<std::uint64_t>(volume(block.sizes).value_or(0)) * element;
  if (!readers.a.begin_box(one, block) || !readers.b.begin_box(two, block)) return false;
  for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
    if (is_cancelled(progress_)) return cancelled_error();
    const std::uint64_t length = std::min(kPieceBytes, bytes - at);
    if (progress_ != nullptr) progress_->add(2 * length);
    if (readers.a.is_hole_at(at, length) && readers.b.is_hole_at(at, length)) continue;
    auto left = readers.a.read_at(at, length, readers.a_piece);
    auto right = readers.b.read_at(at, length, readers.b_piece);
    if (!left || !right || std::memcmp(left->data(), right->data(), left->size()) != 0)
      return false;
  }
  return true;
}

// One side at a time, so that no thread holds memory that another waits for.
std::optional<Hash128> EqualityPass::decoded_hash(const Checkpoint& checkpoint, ChunkId chunk,
                                                  std::uint64_t bytes) {
  auto decoded = decoded_.read(checkpoint, chunk, bytes);
  if (progress_ != nullptr) progress_->add(bytes);
  return decoded ? std::optional(hash_of(**decoded)) : std::nullopt;
}

Result<bool> EqualityPass::is_equal_tile(ChunkId one, ChunkId two, const TileRun& run,
                                         Readers& readers) {
  auto left = readers.a.storage(one), right = readers.b.storage(two);
  if (!left || !right) return false;
  if (!left->is_stored || !right->is_stored) {
    if (is_cancelled(progress_)) return cancelled_error();
    const std::uint64_t bytes = bytes_of(one);
    // Larger items are decoded block by block, sequentially on both sides.
    if (decoded_.has_room_for(a_, one, bytes) && decoded_.has_room_for(b_, two, bytes)) {
      auto here = decoded_hash(a_, one, bytes);
      return here && here == decoded_hash(b_, two, bytes);
    }
  }
  Blocks blocks = blocks_of(one);
  blocks.go_to(run.first_block);
  for (std::uint64_t at = run.first_block; at < run.last_block && blocks.next(); ++at) {
    SHW_TRY(bool same, is_equal(one, two, blocks.block, readers));
    if (!same) return false;
  }
  return true;
}

Result<bool> EqualityPass::is_equal(const TileRun& run) {
  auto one = a_.chunks(run.tensor), two = b_.chunks(run.other);
  Readers readers{{a_, decoded_}, {b_, decoded_}};
  for (std::uint32_t i = run.first; i < run.last; ++i) {
    if (is_same_item(a_, one[i], b_, two[i])) continue;
    SHW_TRY(bool same, is_equal_tile(one[i], two[i], run, readers));
    if (!same) return false;
  }
  return true;
}

Result<std::set<TensorId>> EqualityPass::run() {
  std::uint64_t bytes = 0;
  for (std::uint64_t cost : costs_) bytes += cost;
  if (progress_ != nullptr && bytes != 0)
    progress_->begin(Phase::kReadingBytes, bytes, /*bytes=*/true);
  // Stops early on a difference: the tensor is then excluded for all threads.
  std::vector<std::atomic<bool>> differs(a_.tensor_count());
  MapTask work{"compare with the reference", costs_, {}, progress_};
  work.find = [&](std::size_t i) -> Result<std::string> {
    std::atomic<bool>& differing = differs[index_of(parts_[i].tensor)];
    if (differing) return std::string("differs");
    SHW_TRY(bool same, is_equal(parts_[i]));
    if (same) return std::string("equal");
    differing = true;
    return std::string("differs");
  };
  SHW_TRY(auto told, map_across_ranks(team_, work));
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i] != "equal") asked_.erase(parts_[i].tensor);
  }
  return std::move(asked_);
}

}  // namespace

bool has_same_items(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                    TensorId other) {
  if (!have_equal_chunks(checkpoint, tensor, reference, other)) return false;
  auto one = checkpoint.chunks(tensor), two = reference.chunks(other);
  for (std::uint32_t i = 0; i < one.size(); ++i) {
    if (!is_same_item(checkpoint, one[i], reference, two[i])) return false;
  }
  return true;
}

Result<std::set<TensorId>> equal_to_reference(const CheckInput& input, Progress* progress,
                                              Team* team) {
  if (input.reference == nullptr || input.depth == Depth::kMetadata) return std::set<TensorId>{};
  EqualityPass pass(input, progress, team);
  std::set<TensorId> same_items;
  for (TensorId tensor : each_tensor(input)) {
    auto other = input.counterparts[index_of(tensor)];
    if (!other) continue;
    if (!is_read_whole(input, tensor)) {
      if (has_same_items(input.checkpoint, tensor, *input.reference, *other))
        same_items.insert(tensor);
    } else if (have_equal_chunks(input.checkpoint, tensor, *input.reference, *other)) {
      pass.add(tensor, *other);
    }
  }
  if (is_cancelled(progress)) return cancelled_error();
  SHW_TRY(std::set<TensorId> equal, pass.run());
  equal.merge(same_items);
  return equal;
}

}  // namespace shw
