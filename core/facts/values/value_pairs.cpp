#include "core/facts/values/value_pairs.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/base/encoder.h"
#include "core/facts/values/hole_check.h"
#include "core/facts/values/value_reader.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/items/tensor_box.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::int64_t kPieceElements = std::int64_t{1} << 15;
constexpr std::uint64_t kWorkUnitBytes = std::uint64_t{16}
                                         << 20;  // of both tensors: work unit of a thread
// Limit of tile comparisons if the tilings of a and b differ and all combinations are tested.
constexpr std::uint64_t kMaxTilePairs = std::uint64_t{1} << 24;

struct TileOfPair {
  std::size_t pair = 0;
  ChunkId a{};
  std::optional<ChunkId> b;  // the tile with the same box; empty: several share it
  bool must_decode_from_start =
      false;  // must be decoded: later elements cost the preceding ones too
};

struct Piece {
  std::uint32_t tile = 0;
  std::uint64_t block = 0;
};

// Pieces [first, last), adjacent.
struct PairPart {
  std::size_t first = 0, last = 0;
};

Blocks blocks_of(ExtentsView sizes) {
  const Extents all = copy_of(sizes);
  return {all, block_sizes(all, kPieceElements, {})};
}

// Chooses a sample: one of each run of neighbours, at positions
// (fractions of multiples of the golden ratio) that do not align with
// periodic data.
class GoldenRatioSampler {
 public:
  explicit GoldenRatioSampler(double share) : share_(share) {}
  std::uint64_t number() const {
    if (share_ >= 1) return turn_;
    constexpr std::uint64_t kGoldenFraction = 0x9E3779B97F4A7C15;
    constexpr double kAll = 18446744073709551616.0;
    const double place = static_cast<double>(turn_ * kGoldenFraction) / kAll;
    const double number = (static_cast<double>(turn_) + place) / share_;
    return number < kAll / 2 ? static_cast<std::uint64_t>(number) : UINT64_MAX;
  }
  void skip_to_next_sample() {
    const std::uint64_t last = number();
    do ++turn_;
    while (number() == last && last != UINT64_MAX);
  }

 private:
  const double share_;
  std::uint64_t turn_ = 0;
};

std::vector<ChunkId> sort_chunks_by_offset(const Checkpoint& c, TensorId tensor) {
  std::vector<ChunkId> chunks;
  for (ChunkId chunk : c.chunks(tensor)) chunks.push_back(chunk);
  std::sort(chunks.begin(), chunks.end(), [&](ChunkId one, ChunkId two) {
    const ExtentsView left = c.offsets(one), right = c.offsets(two);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
  return chunks;
}

// The chunk of another tensor with the box of `wanted`; `sorted`: chunks sorted by offsets.
std::optional<ChunkId> find_chunk_with_box(const Checkpoint& c, const std::vector<ChunkId>& sorted,
                                           ChunkId wanted) {
  const ExtentsView offsets = c.offsets(wanted);
  auto found =
      std::lower_bound(sorted.begin(), sorted.end(), offsets, [&](ChunkId one, ExtentsView right) {
        const ExtentsView left = c.offsets(one);
        return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
      });
  // Empty tiles may have equal offsets.
  for (; found != sorted.end() && same(c.offsets(*found), offsets); ++found) {
    if (same(c.sizes(*found), c.sizes(wanted))) return *found;
  }
  return std::nullopt;
}

class PairPass {
 public:
  PairPass(const CheckInput& input, const PairWork& work)
      : input_(input), checkpoint_(input.checkpoint), work_(work) {}
  Result<PairResults> run();

 private:
  struct Readers {
    ItemCursor a, b;
    HoleCheck holes;
    std::optional<std::uint32_t> tile = {};  // the tile to which is_hole applies
    bool is_hole = false;                    // both of its items are unallocated zeros on disk
  };

  bool is_encoded(ChunkId chunk) const;
  bool add_tiles(std::size_t pair);
  void add_all_tiles();
  void cut();
  std::uint64_t bytes_of(std::size_t pair, std::uint64_t elements) const {
    const ValuePair& of = work_.pairs[pair];
    return elements * (size_of(checkpoint_.dtype(of.a)) + size_of(checkpoint_.dtype(of.b)));
  }
  Result<Bytes> gather(ItemCursor& reader, TensorId tensor, const Box& box) const;
  bool is_hole(const TileOfPair& tile, HoleCheck& holes) const;
  Status count(const Piece& piece, Readers& readers, PairCounter& counter) const;
  Result<std::string> count_part(const PairPart& part) const;
  Status decode_results(const std::vector<std::string>& told);

  const CheckInput& input_;
  const Checkpoint& checkpoint_;
  const PairWork& work_;
  std::vector<TileOfPair> tiles_;
  std::vector<Piece> pieces_;
  std::vector<PairPart> parts_;
  std::vector<std::uint64_t> costs_, examined_elements_;  // by part, by pair
  PairResults seen_;
};

bool PairPass::is_encoded(ChunkId chunk) const {
  if (!checkpoint_.transforms(chunk).empty()) return true;
  if (index_of(chunk) >= input_.headers.size()) return false;
  const Result<ItemHeader>& header = input_.headers[index_of(chunk)];
  return header && header->compressed;
}

bool PairPass::add_tiles(std::size_t pair) {
  const auto [a, b] = work_.pairs[pair];
  if (!has_comparable_values(input_, a) || !has_comparable_values(input_, b) ||
      !same(checkpoint_.shape(a), checkpoint_.shape(b)))
    return false;
  const std::vector<ChunkId> others = sort_chunks_by_offset(checkpoint_, b);
  const std::size_t first = tiles_.size();
  bool alike = true;
  for (ChunkId chunk : checkpoint_.chunks(a)) {
    if (volume(checkpoint_.sizes(chunk)).value_or(0) == 0) continue;
    TileOfPair tile{pair, chunk, find_chunk_with_box(checkpoint_, others, chunk)};
    tile.must_decode_from_start = is_encoded(chunk) || (tile.b && is_encoded(*tile.b));
    alike = alike && tile.b.has_value();
    tiles_.push_back(tile);
  }
  const std::uint64_t here = tiles_.size() - first;
  const bool is_decoded_often =
      !alike && std::any_of(others.begin(), others.end(), [&](ChunkId o) { return is_encoded(o); });
  if (is_decoded_often || (!alike && here * others.size() > kMaxTilePairs)) {
    tiles_.resize(first);
    return false;
  }
  return true;
}

// Adds the work in file order of the tiles of `a`.
void PairPass::add_all_tiles() {
  seen_.is_read.resize(work_.pairs.size());
  examined_elements_.resize(work_.pairs.size());
  for (std::size_t pair = 0; pair < work_.pairs.size() && !is_cancelled(input_.progress); ++pair) {
    seen_.is_read[pair] = add_tiles(pair);
    seen_.elements +=
        static_cast<std::uint64_t>(volume(checkpoint_.shape(work_.pairs[pair].a)).value_or(0));
  }
  std::vector<ChunkId> chunks;
  chunks.reserve(tiles_.size());
  for (const TileOfPair& tile : tiles_) chunks.push_back(tile.a);
  std::vector<TileOfPair> as_they_lie;
  as_they_lie.reserve(tiles_.size());
  for (std::uint32_t i : order_on_disk(checkpoint_, chunks)) as_they_lie.push_back(tiles_[i]);
  tiles_ = std::move(as_they_lie);
}

void PairPass::cut() {
  GoldenRatioSampler taken(work_.share);
  std::uint64_t before = 0, bytes = 0;  // blocks of other tiles; bytes of this part
  PairPart part;
  auto close = [&] {
    part.last = pieces_.size();
    if (part.first == part.last) return;
    parts_.push_back(part);
    costs_.push_back(bytes);
    part.first = part.last;
    bytes = 0;
  };
  for (std::uint32_t i = 0; i < tiles_.size(); ++i) {
    if (is_cancelled(input_.progress)) return;
    Blocks blocks = blocks_of(checkpoint_.sizes(tiles_[i].a));
    const std::uint64_t behind = before + blocks.count();
    for (; taken.number() < behind; taken.skip_to_next_sample()) {
      const std::uint64_t block = taken.number() - before;
      blocks.go_to(block);
      blocks.next();
      const auto elements = static_cast<std::uint64_t>(volume(blocks.block.sizes).value_or(0));
      pieces_.push_back({i, block});
      bytes += bytes_of(tiles_[i].pair, elements);
      examined_elements_[tiles_[i].pair] += elements;
      if (bytes >= kWorkUnitBytes && !tiles_[i].must_decode_from_start) close();
    }
    before = behind;
    if (bytes >= kWorkUnitBytes) close();
  }
  close();
}

// A box of a tensor, gathered from all tiles that contain parts of it.
Result<Bytes> PairPass::gather(ItemCursor& reader, TensorId tensor, const Box& box) const {
  const std::size_t width = size_of(checkpoint_.dtype(tensor));
  Bytes out(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * width);
  SHW_TRY([[maybe_unused]] const auto read, read_tensor_box(reader, tensor, box, out));
  return out;
}

// True if unallocated zeros of both files are zeros: float8_e8m0fnu has no zero.
bool PairPass::is_hole(const TileOfPair& tile, HoleCheck& holes) const {
  const ValuePair& pair = work_.pairs[tile.pair];
  const Bytes zero(16);
  return tile.b && value_at(checkpoint_.dtype(pair.a), zero, 0) == 0 &&
         value_at(checkpoint_.dtype(pair.b), zero, 0) == 0 && holes.is_hole(tile.a) &&
         holes.is_hole(*tile.b);
}

Status PairPass::count(const Piece& piece, Readers& readers, PairCounter& counter) const {
  const TileOfPair& tile = tiles_[piece.tile];
  const ValuePair& pair = work_.pairs[tile.pair];
  if (readers.tile != piece.tile) {
    readers.tile = piece.tile;
    readers.is_hole = is_hole(tile, readers.holes);
  }
  Blocks blocks = blocks_of(checkpoint_.sizes(tile.a));
  blocks.go_to(piece.block);
  blocks.next();
  Box box = blocks.block;
  if (readers.is_hole) {
    const auto elements = static_cast<std::uint64_t>(volume(box.sizes).value_or(0));
    if (input_.progress != nullptr) input_.progress->add(bytes_of(tile.pair, elements));
    counter.add_zeros(elements);
    return {};
  }
  SHW_TRY(Bytes a, readers.a.read(tile.a, box));
  Bytes b;
  if (tile.b) {
    SHW_TRY(b, readers.b.read(*tile.b, box));
  } else {
    const ExtentsView origin = checkpoint_.offsets(tile.a);
    for (std::size_t d = 0; d < origin.size(); ++d) box.offsets[d] += origin[d];
    SHW_TRY(b, gather(readers.b, pair.b, box));
  }
  if (input_.progress != nullptr) input_.progress->add(a.size() + b.size());
  const Dtype a_dtype = checkpoint_.dtype(pair.a), b_dtype = checkpoint_.dtype(pair.b);
  counter.add({a_dtype, b_dtype, a, b, a.size() / size_of(a_dtype)});
  return {};
}

// Encoded statistics of the part's pairs; no numbers for a pair with an unreadable piece.
Result<std::string> PairPass::count_part(const PairPart& part) const {
  Readers readers{ItemCursor(checkpoint_, /*decoded_bytes=*/0),
                  ItemCursor(checkpoint_, /*decoded_bytes=*/0), HoleCheck(checkpoint_)};
  Encoder payload;
  std::unique_ptr<PairCounter> counter;
  for (std::size_t i = part.first; i < part.last; ++i) {
    const std::size_t pair = tiles_[pieces_[i].tile].pair;
    const bool begins = i == part.first || tiles_[pieces_[i - 1].tile].pair != pair;
    const bool ends = i + 1 == part.last || tiles_[pieces_[i + 1].tile].pair != pair;
    if (begins) counter = work_.counter(pair);
    if (is_cancelled(input_.progress)) return cancelled_error();
    if (counter != nullptr && !count(pieces_[i], readers, *counter)) counter.reset();
    if (!ends) continue;
    payload.add(std::uint64_t{pair});
    payload.add(counter == nullptr ? std::vector<std::uint64_t>{} : counter->numbers());
  }
  return packed_text(payload.take());
}

Status PairPass::decode_results(const std::vector<std::string>& told) {
  // The first pass completes is_read, so that the second one delivers readable pairs only.
  for (const bool is_second : {false, true}) {
    for (const std::string& text : told) {
      Decoder payload(std::as_bytes(std::span(text)));
      while (!payload.is_at_end()) {
        SHW_TRY(std::uint64_t pair, payload.number());
        SHW_TRY(auto numbers, payload.numbers());
        if (pair >= work_.pairs.size())
          return fail(ErrorKind::kIo, "another process sent invalid data about a pair of tensors");
        if (numbers.empty()) seen_.is_read[pair] = false;
        if (is_second && seen_.is_read[pair]) SHW_CHECK(work_.receive(pair, numbers));
      }
    }
  }
  return {};
}

Result<PairResults> PairPass::run() {
  add_all_tiles();
  cut();
  if (is_cancelled(input_.progress)) return cancelled_error();
  std::uint64_t bytes = 0;
  for (std::uint64_t cost : costs_) bytes += cost;
  if (bytes == 0) return std::move(seen_);
  if (input_.progress != nullptr)
    input_.progress->begin(Phase::kReadingBytes, bytes, /*bytes=*/true);
  MapTask work{work_.step, costs_, {}, input_.progress};
  work.find = [&](std::size_t i) { return count_part(parts_[i]); };
  SHW_TRY(auto told, map_across_ranks(input_.team, work));
  SHW_CHECK(decode_results(told));
  for (std::size_t pair = 0; pair < work_.pairs.size(); ++pair)
    seen_.looked_at += seen_.is_read[pair] ? examined_elements_[pair] : 0;
  return std::move(seen_);
}

}  // namespace

bool has_comparable_values(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  return c.directory() != nullptr && has_values(c.dtype(tensor)) &&
         input.tilings[index_of(tensor)].tiling == Tiling::kExact &&
         volume(c.shape(tensor)).value_or(0) > 0;
}

Result<PairResults> compare_pairs(const CheckInput& input, const PairWork& work) {
  return PairPass(input, work).run();
}

}  // namespace shw
