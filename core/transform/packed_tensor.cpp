// Numbers are zigzag (0, -1, 1, -2, ...) in groups of seven bits, low ones first, with the high bit
// set on all but the last: nearly all numbers of boxes take one to three bytes.
//
//   tensor  = count keeps tile* count part*
//   keeps   = 1 if any tile has kept or more, else 0
//   tile    = box writer [kept + 1, or 0 without kept; 1 if it has more, else 0]
//   box     = ndim offset* size*
//   part    = box origin numbers:first numbers:order saved count cast* scaling
//   origin  = 0 input chunk | 1 text offset length numbers:sizes | 2 bits bits is_padding
//   scaling = 0 | 1 factors numbers:first numbers:block numbers:order
#include "core/transform/packed_tensor.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shw {
namespace {

class TensorEncoder {
 public:
  explicit TensorEncoder(std::string& out) : out_(out) {}

  void unsigned_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) out_.push_back(static_cast<char>(number | 0x80));
    out_.push_back(static_cast<char>(number));
  }
  void number(std::int64_t number) {
    auto bits = static_cast<std::uint64_t>(number);
    unsigned_number(number < 0 ? ~(bits << 1) : bits << 1);
  }
  void numbers(const Extents& all) {
    unsigned_number(all.size());
    for (std::int64_t one : all) number(one);
  }
  void box(const Box& box) {
    numbers(box.offsets);
    for (std::int64_t size : box.sizes) number(size);
  }
  void origin(const Part& part) {
    unsigned_number(part.from.index());
    if (const auto* chunk = std::get_if<FromChunk>(&part.from)) {
      unsigned_number(chunk->input);
      unsigned_number(index_of(chunk->chunk));
    } else if (const FromFile* file = part.file()) {
      unsigned_number(file->file.size());
      out_ += file->file;
      unsigned_number(file->offset);
      unsigned_number(file->length);
      numbers(file->sizes);
    } else {
      const auto& constant = std::get<FromConstant>(part.from);
      for (std::uint64_t bits : constant.bits) unsigned_number(bits);
      unsigned_number(constant.is_padding);
    }
  }
  void part(const Part& part) {
    box(part.box);
    origin(part);
    numbers(part.first);
    numbers(part.order);
    unsigned_number(static_cast<std::uint64_t>(part.saved));
    unsigned_number(part.casts.size());
    for (Dtype cast : part.casts) unsigned_number(static_cast<std::uint64_t>(cast));
    unsigned_number(part.scaling.has_value());
    if (!part.scaling) return;
    unsigned_number(part.scaling->factors);
    numbers(part.scaling->first);
    numbers(part.scaling->block);
    numbers(part.scaling->order);
  }

 private:
  std::string& out_;
};

// Reads what Packer wrote. Needs no checks: the bytes never left this process.
class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}

  std::uint64_t unsigned_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      assert(at_ < in_.size());
      auto byte = static_cast<std::uint8_t>(in_[at_++]);
      number |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return number;
    }
  }
  template <class Narrow>
  Narrow as() {
    return static_cast<Narrow>(unsigned_number());
  }
  std::int64_t number() {
    std::uint64_t bits = unsigned_number();
    return static_cast<std::int64_t>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
  }
  Extents numbers(std::size_t count) {
    Extents all(count);
    for (std::int64_t& one : all) one = number();
    return all;
  }
  Extents numbers() { return numbers(as<std::size_t>()); }
  Box box() {
    Box box{numbers(), {}};
    box.sizes = numbers(box.offsets.size());
    return box;
  }
  PartSource origin() {
    auto kind = unsigned_number();
    if (kind == 0) {
      auto input = as<std::uint32_t>();
      return FromChunk{input, ChunkId{as<std::uint32_t>()}};
    }
    if (kind == 1) {
      FromFile file;
      auto length = as<std::size_t>();
      file.file = in_.substr(at_, length);
      at_ += length;
      file.offset = unsigned_number();
      file.length = unsigned_number();
      file.sizes = numbers();
      return file;
    }
    FromConstant constant;
    for (std::uint64_t& bits : constant.bits) bits = unsigned_number();
    constant.is_padding = unsigned_number() != 0;
    return constant;
  }
  Part part() {
    Part part{box(), origin()};
    part.first = numbers();
    part.order = numbers();
    part.saved = as<Dtype>();
    part.casts.resize(as<std::size_t>());
    for (Dtype& cast : part.casts) cast = as<Dtype>();
    if (unsigned_number() == 0) return part;
    Scaling scaling;
    scaling.factors = as<std::uint32_t>();
    scaling.first = numbers();
    scaling.block = numbers();
    scaling.order = numbers();
    part.scaling = std::move(scaling);
    return part;
  }
  bool is_at_end() const { return at_ == in_.size(); }

 private:
  std::string_view in_;
  std::size_t at_ = 0;
};

}  // namespace

PackedTensor::PackedTensor(TargetTensor tensor) : without_tiles_(std::move(tensor)) {
  const std::vector<TargetChunk> tiles = std::exchange(without_tiles_.tiles, {});
  const std::vector<Part> parts = std::exchange(without_tiles_.parts, {});
  TensorEncoder packer(tiles_);
  const bool keeps = std::any_of(tiles.begin(), tiles.end(), [](const TargetChunk& tile) {
    return tile.kept.has_value() || tile.more != nullptr;
  });
  packer.unsigned_number(tiles.size());
  packer.unsigned_number(keeps);
  for (const TargetChunk& tile : tiles) {
    packer.box(tile.box);
    packer.unsigned_number(tile.writer);
    if (!keeps) continue;
    packer.unsigned_number(tile.kept ? index_of(*tile.kept) + 1 : 0);
    packer.unsigned_number(tile.more != nullptr);
    if (tile.more != nullptr) more_.push_back(tile.more);
  }
  packer.unsigned_number(parts.size());
  for (const Part& part : parts) packer.part(part);
  tiles_.shrink_to_fit();
}

TargetTensor PackedTensor::unpacked() const {
  TargetTensor tensor = without_tiles_;
  Decoder unpacker(tiles_);
  tensor.tiles.resize(unpacker.as<std::size_t>());
  const bool keeps = unpacker.unsigned_number() != 0;
  std::size_t more = 0;
  for (TargetChunk& tile : tensor.tiles) {
    tile.box = unpacker.box();
    tile.writer = unpacker.as<std::uint32_t>();
    if (!keeps) continue;
    if (auto kept = unpacker.as<std::uint32_t>()) tile.kept = ChunkId{kept - 1};
    if (unpacker.unsigned_number() != 0) tile.more = more_[more++];
  }
  auto parts = unpacker.as<std::size_t>();
  tensor.parts.reserve(parts);
  for (std::size_t i = 0; i < parts; ++i) tensor.parts.push_back(unpacker.part());
  assert(unpacker.is_at_end());
  return tensor;
}

}  // namespace shw
