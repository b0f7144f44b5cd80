#include "core/facts/reference/comparison_words.h"

#include <bit>

namespace shw {
namespace {

void add_signed(Packer& words, std::int64_t number) {
  words.add(static_cast<std::uint64_t>(number));
}

Result<std::int64_t> signed_number(Unpacker& words) {
  SHW_TRY(std::uint64_t number, words.number());
  return static_cast<std::int64_t>(number);
}

template <class Numbers>
void add_numbers(Packer& words, const Numbers& numbers) {
  words.add(std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
}

template <class Numbers>
Result<Numbers> signed_numbers(Unpacker& words) {
  SHW_TRY(auto numbers, words.numbers());
  return Numbers(numbers.begin(), numbers.end());
}

void add_box(Packer& words, const Box& box) {
  add_numbers(words, box.offsets);
  add_numbers(words, box.sizes);
}

Result<Box> unpacked_box(Unpacker& words) {
  Box box;
  SHW_TRY(box.offsets, signed_numbers<Extents>(words));
  SHW_TRY(box.sizes, signed_numbers<Extents>(words));
  return box;
}

// One of the values of an enum that ends with `last`.
template <class Enum>
Result<Enum> one_of(Unpacker& words, Enum last) {
  SHW_TRY(std::uint64_t number, words.number());
  if (number > static_cast<std::uint64_t>(last))
    return fail(ErrorKind::kIo, "a message of another worker says what this version does not know");
  return static_cast<Enum>(number);
}

Result<bool> flag(Unpacker& words) {
  SHW_TRY(std::uint64_t number, words.number());
  return number != 0;
}

}  // namespace

void add(Packer& words, const TilePlaces& places) {
  words.add(static_cast<std::uint64_t>(places.answer));
  for (bool is_so : {places.sampled, places.rounded, places.telling})
    words.add(std::uint64_t{is_so});
  for (std::int64_t count : {places.tiles, places.nowhere, places.doubled})
    add_signed(words, count);
  words.add(std::bit_cast<std::uint64_t>(places.likeness));
  words.add(std::uint64_t{places.boxes.size()});
  for (const Box& box : places.boxes) add_box(words, box);
  words.add(std::uint64_t{places.moves.size()});
  for (const TileMove& move : places.moves) {
    add_box(words, move.recorded);
    add_box(words, move.found);
  }
  words.add(std::vector<std::uint64_t>(places.right.begin(), places.right.end()));
  words.add(std::uint64_t{places.strange.size()});
  for (const StrangeTile& tile : places.strange) {
    words.add(std::uint64_t{tile.chunk});
    words.add(std::string_view(tile.holds));
    words.add(std::string_view(tile.wanted));
  }
}

Result<TilePlaces> unpacked_places(Unpacker& words) {
  TilePlaces places;
  SHW_TRY(places.answer, one_of(words, PlacesAnswer::kStrange));
  for (bool* is_so : {&places.sampled, &places.rounded, &places.telling}) {
    SHW_TRY(*is_so, flag(words));
  }
  for (std::int64_t* count : {&places.tiles, &places.nowhere, &places.doubled}) {
    SHW_TRY(*count, signed_number(words));
  }
  SHW_TRY(std::uint64_t likeness, words.number());
  places.likeness = std::bit_cast<double>(likeness);
  SHW_TRY(std::uint64_t boxes, words.number());
  for (std::uint64_t i = 0; i < boxes; ++i) {
    SHW_TRY(places.boxes.emplace_back(), unpacked_box(words));
  }
  SHW_TRY(std::uint64_t moves, words.number());
  for (std::uint64_t i = 0; i < moves; ++i) {
    TileMove move;
    SHW_TRY(move.recorded, unpacked_box(words));
    SHW_TRY(move.found, unpacked_box(words));
    places.moves.push_back(std::move(move));
  }
  SHW_TRY(auto right, words.numbers());
  places.right.assign(right.begin(), right.end());
  SHW_TRY(std::uint64_t strange, words.number());
  for (std::uint64_t i = 0; i < strange; ++i) {
    StrangeTile tile;
    SHW_TRY(tile.chunk, words.number());
    SHW_TRY(tile.holds, words.text());
    SHW_TRY(tile.wanted, words.text());
    places.strange.push_back(std::move(tile));
  }
  return places;
}

void add(Packer& words, const BlockOrder& order) {
  words.add(std::uint64_t{order.dim});
  add_signed(words, order.block);
  add_numbers(words, order.order);
  words.add(std::bit_cast<std::uint64_t>(order.margin));
}

Result<BlockOrder> unpacked_order(Unpacker& words) {
  BlockOrder order;
  SHW_TRY(order.dim, words.number());
  SHW_TRY(order.block, signed_number(words));
  SHW_TRY(order.order, signed_numbers<std::vector<std::int64_t>>(words));
  SHW_TRY(const std::uint64_t margin, words.number());
  order.margin = std::bit_cast<double>(margin);
  return order;
}

void add(Packer& words, const OrientationFound& found) {
  words.add(static_cast<std::uint64_t>(found.orientation));
  words.add(std::uint64_t{found.exact});
  words.add(std::bit_cast<std::uint64_t>(found.margin));
  words.add(std::uint64_t{found.sampled});
  for (std::int64_t count : {found.compared, found.matrices, found.transposed})
    add_signed(words, count);
}

Result<OrientationFound> unpacked_orientation(Unpacker& words) {
  OrientationFound found;
  SHW_TRY(found.orientation, one_of(words, Orientation::kUnlike));
  SHW_TRY(found.exact, flag(words));
  SHW_TRY(std::uint64_t margin, words.number());
  found.margin = std::bit_cast<double>(margin);
  SHW_TRY(found.sampled, flag(words));
  for (std::int64_t* count : {&found.compared, &found.matrices, &found.transposed}) {
    SHW_TRY(*count, signed_number(words));
  }
  return found;
}

}  // namespace shw
