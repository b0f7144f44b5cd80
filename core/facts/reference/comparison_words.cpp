#include "core/facts/reference/comparison_words.h"

#include <bit>

namespace shw {
namespace {

void add_signed(Encoder& payload, std::int64_t number) {
  payload.add(static_cast<std::uint64_t>(number));
}

Result<std::int64_t> signed_number(Decoder& payload) {
  SHW_TRY(std::uint64_t number, payload.number());
  return static_cast<std::int64_t>(number);
}

template <class Numbers>
void add_numbers(Encoder& payload, const Numbers& numbers) {
  payload.add(std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
}

template <class Numbers>
Result<Numbers> signed_numbers(Decoder& payload) {
  SHW_TRY(auto numbers, payload.numbers());
  return Numbers(numbers.begin(), numbers.end());
}

void add_box(Encoder& payload, const Box& box) {
  add_numbers(payload, box.offsets);
  add_numbers(payload, box.sizes);
}

Result<Box> unpacked_box(Decoder& payload) {
  Box box;
  SHW_TRY(box.offsets, signed_numbers<Extents>(payload));
  SHW_TRY(box.sizes, signed_numbers<Extents>(payload));
  return box;
}

// Decodes an enum whose last value is `last`.
template <class Enum>
Result<Enum> decode_enum(Decoder& payload, Enum last) {
  SHW_TRY(std::uint64_t number, payload.number());
  if (number > static_cast<std::uint64_t>(last))
    return fail(ErrorKind::kIo, "another process sent a message that this version does not know");
  return static_cast<Enum>(number);
}

Result<bool> decode_bool(Decoder& payload) {
  SHW_TRY(std::uint64_t number, payload.number());
  return number != 0;
}

}  // namespace

void add(Encoder& payload, const TilePlaces& places) {
  payload.add(static_cast<std::uint64_t>(places.answer));
  for (bool is_so : {places.sampled, places.rounded, places.telling})
    payload.add(std::uint64_t{is_so});
  for (std::int64_t count : {places.tiles, places.nowhere, places.doubled})
    add_signed(payload, count);
  payload.add(std::bit_cast<std::uint64_t>(places.likeness));
  payload.add(std::uint64_t{places.boxes.size()});
  for (const Box& box : places.boxes) add_box(payload, box);
  payload.add(std::uint64_t{places.moves.size()});
  for (const TileMove& move : places.moves) {
    add_box(payload, move.recorded);
    add_box(payload, move.found);
  }
  payload.add(std::vector<std::uint64_t>(places.right.begin(), places.right.end()));
  payload.add(std::uint64_t{places.strange.size()});
  for (const UnmatchedTile& tile : places.strange) {
    payload.add(std::uint64_t{tile.chunk});
    payload.add(std::string_view(tile.holds));
    payload.add(std::string_view(tile.wanted));
  }
}

Result<TilePlaces> decode_tile_places(Decoder& payload) {
  TilePlaces places;
  SHW_TRY(places.answer, decode_enum(payload, PlacesAnswer::kForeignContent));
  for (bool* is_so : {&places.sampled, &places.rounded, &places.telling}) {
    SHW_TRY(*is_so, decode_bool(payload));
  }
  for (std::int64_t* count : {&places.tiles, &places.nowhere, &places.doubled}) {
    SHW_TRY(*count, signed_number(payload));
  }
  SHW_TRY(std::uint64_t likeness, payload.number());
  places.likeness = std::bit_cast<double>(likeness);
  SHW_TRY(std::uint64_t boxes, payload.number());
  for (std::uint64_t i = 0; i < boxes; ++i) {
    SHW_TRY(places.boxes.emplace_back(), unpacked_box(payload));
  }
  SHW_TRY(std::uint64_t moves, payload.number());
  for (std::uint64_t i = 0; i < moves; ++i) {
    TileMove move;
    SHW_TRY(move.recorded, unpacked_box(payload));
    SHW_TRY(move.found, unpacked_box(payload));
    places.moves.push_back(std::move(move));
  }
  SHW_TRY(auto right, payload.numbers());
  places.right.assign(right.begin(), right.end());
  SHW_TRY(std::uint64_t strange, payload.number());
  for (std::uint64_t i = 0; i < strange; ++i) {
    UnmatchedTile tile;
    SHW_TRY(tile.chunk, payload.number());
    SHW_TRY(tile.holds, payload.text());
    SHW_TRY(tile.wanted, payload.text());
    places.strange.push_back(std::move(tile));
  }
  return places;
}

void add(Encoder& payload, const BlockOrder& order) {
  payload.add(std::uint64_t{order.dim});
  add_signed(payload, order.block);
  add_numbers(payload, order.order);
  payload.add(std::bit_cast<std::uint64_t>(order.margin));
}

Result<BlockOrder> decode_block_order(Decoder& payload) {
  BlockOrder order;
  SHW_TRY(order.dim, payload.number());
  SHW_TRY(order.block, signed_number(payload));
  SHW_TRY(order.order, signed_numbers<std::vector<std::int64_t>>(payload));
  SHW_TRY(const std::uint64_t margin, payload.number());
  order.margin = std::bit_cast<double>(margin);
  return order;
}

void add(Encoder& payload, const OrientationFound& found) {
  payload.add(static_cast<std::uint64_t>(found.orientation));
  payload.add(std::uint64_t{found.exact});
  payload.add(std::bit_cast<std::uint64_t>(found.margin));
  payload.add(std::uint64_t{found.sampled});
  for (std::int64_t count : {found.compared, found.matrices, found.transposed})
    add_signed(payload, count);
}

Result<OrientationFound> decode_orientation(Decoder& payload) {
  OrientationFound found;
  SHW_TRY(found.orientation, decode_enum(payload, Orientation::kUnrelated));
  SHW_TRY(found.exact, decode_bool(payload));
  SHW_TRY(std::uint64_t margin, payload.number());
  found.margin = std::bit_cast<double>(margin);
  SHW_TRY(found.sampled, decode_bool(payload));
  for (std::int64_t* count : {&found.compared, &found.matrices, &found.transposed}) {
    SHW_TRY(*count, signed_number(payload));
  }
  return found;
}

}  // namespace shw
