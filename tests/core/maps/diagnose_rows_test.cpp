// Mistakes of converters, imitated on small tensors whose elements are all different.
#include "core/maps/diagnose_rows.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace shw;

namespace {

// Element i is i + 1.
LoadedTensor counted(const Extents& shape) {
  LoadedTensor out{Dtype::kFloat32, shape, {}};
  std::vector<float> values(static_cast<std::size_t>(volume(shape).value_or(0)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  out.bytes.resize(values.size() * sizeof(float));
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

// Row i of the result is row order[i] of `from`; every row has `columns` elements.
LoadedTensor reordered(const LoadedTensor& from, std::size_t columns,
                       const std::vector<int>& order) {
  LoadedTensor out = from;
  const std::size_t row = columns * sizeof(float);
  for (std::size_t i = 0; i < order.size(); ++i)
    std::memcpy(out.bytes.data() + i * row,
                from.bytes.data() + static_cast<std::size_t>(order[i]) * row, row);
  return out;
}

// 2 query heads, a key and a value in each of 2 groups, of one row each.
RowLayout grouped() {
  return {.part_names = {"q_proj", "k_proj", "v_proj"}, .parts = {4, 2, 2}, .pieces = 2};
}

bool says(const std::optional<Mistake>& mistake, const std::string& part) {
  return mistake && mistake->text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("wrong conversions: rows that were not regrouped are named with their parts") {
  const LoadedTensor expected = counted({8, 6});
  // Expected: q0 q1 k0 v0 q2 q3 k1 v1.
  const LoadedTensor there = reordered(expected, 6, {0, 1, 4, 5, 2, 6, 3, 7});
  const auto cause = diagnose_conversion(there, expected, grouped());
  CHECK(says(cause, "not regrouped"));
  CHECK(says(cause, "q_proj, k_proj and v_proj"));
}

TEST_CASE("wrong conversions: swapped parts are named") {
  const RowLayout gate_up{.part_names = {"gate_proj", "up_proj"}, .parts = {3, 3}};
  const LoadedTensor expected = counted({6, 4});
  CHECK(says(diagnose_conversion(reordered(expected, 4, {3, 4, 5, 0, 1, 2}), expected, gate_up),
             "swapped"));
  CHECK(says(diagnose_conversion(reordered(expected, 4, {0, 3, 1, 4, 2, 5}), expected, gate_up),
             "interleaved"));
}

TEST_CASE("wrong conversions: stacked experts that are off by one are named") {
  const RowLayout stacked{.lead = 1, .counters = {"expert"}};
  const LoadedTensor expected = counted({4, 2, 3});
  CHECK(says(diagnose_conversion(reordered(expected, 6, {1, 2, 3, 0}), expected, stacked),
             "experts are off by one"));
  CHECK(says(diagnose_conversion(reordered(expected, 6, {2, 0, 1, 3}), expected, stacked),
             "another order"));
}

TEST_CASE("wrong conversions: another layout of rotary positions is named") {
  const RowLayout heads{.part_names = {"q_proj"}, .parts = {8}, .head_dim = 4};
  const LoadedTensor expected = counted({8, 5});
  const LoadedTensor there = reordered(expected, 5, {0, 2, 1, 3, 4, 6, 5, 7});
  CHECK(says(diagnose_conversion(there, expected, heads), "rotary"));
}

TEST_CASE("wrong conversions: a transposed square matrix is told from its elements") {
  const LoadedTensor expected = counted({3, 3});
  LoadedTensor there = expected;
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c)
      std::memcpy(there.bytes.data() + (c * 3 + r) * 4, expected.bytes.data() + (r * 3 + c) * 4, 4);
  }
  CHECK(says(diagnose_conversion(there, expected, {}), "transposed"));
}

TEST_CASE("wrong conversions: norms that are shifted by 1 and rows that were cut off are named") {
  const LoadedTensor expected = counted({6, 2});
  LoadedTensor there = expected;
  for (std::size_t i = 0; i < 12; ++i) {
    const auto value = static_cast<float>(i + 2);
    std::memcpy(there.bytes.data() + i * 4, &value, 4);
  }
  CHECK(says(diagnose_conversion(there, expected, {}), "larger by 1"));
  there = expected;
  there.shape = {4, 2};
  there.bytes.resize(4 * 2 * 4);
  CHECK(says(diagnose_conversion(there, expected, {}), "cut off"));
}

TEST_CASE("wrong conversions: the layers in which a mistake was made are named") {
  const RowLayout stacked{
      .lead = 1, .counters = {"layer"}, .part_names = {"gate_proj", "up_proj"}, .parts = {2, 2}};
  const LoadedTensor expected = counted({3, 4, 4});
  const LoadedTensor there = reordered(expected, 4, {0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11});
  const auto cause = diagnose_conversion(there, expected, stacked);
  CHECK(says(cause, "in layer 1: "));
  CHECK(says(cause, "swapped"));
  const LoadedTensor all = reordered(expected, 4, {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9});
  CHECK_FALSE(says(diagnose_conversion(all, expected, stacked), "in layer"));
}

TEST_CASE("wrong conversions: two layers that are swapped are not off by one") {
  const RowLayout stacked{.lead = 1, .counters = {"layer"}};
  const LoadedTensor expected = counted({4, 6});
  CHECK(says(diagnose_conversion(reordered(expected, 6, {0, 2, 1, 3}), expected, stacked),
             "layers 1 and 2 are swapped"));
  CHECK(says(diagnose_conversion(reordered(expected, 6, {2, 3, 0, 1}), expected, stacked),
             "two halves of the layers are swapped"));
  CHECK(says(diagnose_conversion(reordered(expected, 6, {0, 0, 2, 3}), expected, stacked),
             "layer 1 is a copy of layer 0"));
}

TEST_CASE("wrong conversions: a piece of a rank that was written twice is named with its rows") {
  const LoadedTensor expected = counted({6, 4});
  CHECK(says(diagnose_conversion(reordered(expected, 4, {0, 1, 2, 0, 1, 2}), expected, {}),
             "rows 3 to 5 are a copy of rows 0 to 2"));
  CHECK(says(diagnose_conversion(reordered(expected, 4, {3, 4, 5, 0, 1, 2}), expected, {}),
             "two halves are swapped"));
}

TEST_CASE("wrong conversions: rows of the vocabulary are found next to padding of any value") {
  const RowLayout padded{.part_names = {"embed_tokens"}, .parts = {6}, .padding_from = 4};
  LoadedTensor expected = counted({6, 4});
  const LoadedTensor there = reordered(expected, 4, {1, 2, 3, 0, 4, 5});
  CHECK(says(diagnose_conversion(there, expected, padded), "one too early"));
  // Padding in front; any value is accepted where padding is expected.
  const LoadedTensor front = reordered(expected, 4, {4, 5, 0, 1, 2, 3});
  std::copy(front.bytes.begin() + 64, front.bytes.end(), expected.bytes.begin() + 64);
  CHECK(says(diagnose_conversion(front, expected, padded), "padding comes before"));
}

TEST_CASE("wrong conversions: one part of a joined tensor is named alone") {
  const RowLayout layout{.part_names = {"q_proj", "k_proj", "v_proj"}, .parts = {4, 2, 2}};
  const LoadedTensor expected = counted({8, 4});
  LoadedTensor there = expected;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c)
      std::memcpy(there.bytes.data() + (c * 4 + r) * 4, expected.bytes.data() + (r * 4 + c) * 4, 4);
  }
  const auto cause = diagnose_conversion(there, expected, layout);
  CHECK(says(cause, "in q_proj: "));
  CHECK(says(cause, "transposed"));
  CHECK_FALSE(says(cause, "k_proj"));
}

TEST_CASE("wrong conversions: rotary rows at the end of every head are named") {
  const RowLayout latent{.part_names = {"q_b_proj"},
                         .parts = {12},
                         .head_dim = 6,
                         .rotary_begin = 2,
                         .rotary_rows = 4};
  const LoadedTensor expected = counted({12, 5});
  const LoadedTensor there = reordered(expected, 5, {0, 1, 2, 4, 3, 5, 6, 7, 8, 10, 9, 11});
  CHECK(says(diagnose_conversion(there, expected, latent), "rotary rows of every head"));
}

TEST_CASE("wrong conversions: elements that were rounded on the way are named with the dtype") {
  LoadedTensor expected = counted({4, 4});
  LoadedTensor there = expected;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto exact = static_cast<float>(i + 1) + 1.0F / 1024, rounded = static_cast<float>(i + 1);
    std::memcpy(expected.bytes.data() + i * 4, &exact, 4);
    std::memcpy(there.bytes.data() + i * 4, &rounded, 4);
  }
  CHECK(says(diagnose_conversion(there, expected, {}), "rounded to bfloat16"));
}

TEST_CASE("wrong conversions: weights of a later step have no cause") {
  const LoadedTensor expected = counted({8, 6});
  LoadedTensor there = expected;
  for (std::size_t i = 0; i < 48; ++i) {
    const float value = static_cast<float>(i + 1) * (i % 2 == 0 ? 1.001F : 0.999F);
    std::memcpy(there.bytes.data() + i * 4, &value, 4);
  }
  CHECK_FALSE(diagnose_conversion(there, expected, grouped()));
}

TEST_CASE("wrong conversions: heads of keys and values that stand once for each query head") {
  // Two layers of two groups: queries 0 and 1, keys, values, each of two rows.
  const RowLayout qkv{.lead = 1,
                      .counters = {"layer"},
                      .part_names = {"q_proj", "k_proj", "v_proj"},
                      .parts = {8, 4, 4},
                      .pieces = 2,
                      .head_dim = 2};
  const LoadedTensor expected = counted({2, 16, 4});
  LoadedTensor there{expected.dtype, {2, 24, 4}, {}};
  for (const std::size_t head :
       {0, 2, 3, 1, 2, 3, 4, 6, 7, 5, 6, 7, 8, 10, 11, 9, 10, 11, 12, 14, 15, 13, 14, 15}) {
    const auto block = BytesView(expected.bytes).subspan(head * 2 * 4 * 4, 2 * 4 * 4);
    there.bytes.insert(there.bytes.end(), block.begin(), block.end());
  }
  CHECK(says(diagnose_conversion(there, expected, qkv), "repeated 2 times"));
  there.bytes.back() ^= std::byte{1};
  CHECK_FALSE(says(diagnose_conversion(there, expected, qkv), "repeated"));
}

TEST_CASE("wrong conversions: rows of zeros in the middle are named, and other numbers are not") {
  const LoadedTensor expected = counted({6, 4});
  LoadedTensor there = expected;
  std::fill_n(there.bytes.begin() + 2 * 16, 2 * 16, std::byte{0});
  CHECK(says(diagnose_conversion(there, expected, {}), "rows 2 to 3 are zero"));
  there.bytes[5 * 16] ^= std::byte{1};
  CHECK_FALSE(says(diagnose_conversion(there, expected, {}), "are zero"));
}

TEST_CASE("wrong conversions: columns of zeros are named as one rank's part that was not written") {
  const LoadedTensor expected = counted({3, 8});
  LoadedTensor there = expected;
  for (std::size_t row = 0; row < 3; ++row)
    std::fill_n(there.bytes.begin() + static_cast<std::ptrdiff_t>(row * 32 + 16), 16, std::byte{0});
  CHECK(says(diagnose_conversion(there, expected, {}), "columns 4 to 7 are zero"));
  there.bytes[0] ^= std::byte{1};
  CHECK_FALSE(says(diagnose_conversion(there, expected, {}), "are zero"));
}

TEST_CASE("wrong conversions: a vocabulary that moved by some rows is named with what it lost") {
  const LoadedTensor expected = counted({10, 4});
  LoadedTensor there = reordered(expected, 4, {9, 9, 0, 1, 2, 3, 4, 5, 8, 9});
  std::fill_n(there.bytes.begin(), 32, std::byte{7});
  const RowLayout padded{.part_names = {"embed_tokens"}, .parts = {10}, .padding_from = 8};
  CHECK(says(diagnose_conversion(there, expected, padded),
             "every row is 2 too late, and what belongs to the last 2 rows is missing"));
  there.bytes[4 * 16] ^= std::byte{1};
  CHECK_FALSE(diagnose_conversion(there, expected, padded));
}

TEST_CASE("wrong conversions: experts that are swapped in one part are named with the part") {
  const RowLayout experts{
      .lead = 1, .counters = {"expert"}, .part_names = {"gate_proj", "up_proj"}, .parts = {2, 2}};
  const LoadedTensor expected = counted({3, 4, 5});
  // Rows of an expert: two of gate_proj, two of up_proj.
  const LoadedTensor there = reordered(expected, 5, {0, 1, 2, 3, 8, 9, 6, 7, 4, 5, 10, 11});
  const auto cause = diagnose_conversion(there, expected, experts);
  CHECK(says(cause, "in gate_proj: experts 1 and 2 are swapped"));
  CHECK_FALSE(says(cause, "up_proj"));
}

TEST_CASE("wrong conversions: heads that were dealt to the groups are named both ways") {
  const RowLayout qkv{
      .part_names = {"q_proj", "k_proj", "v_proj"}, .parts = {6, 2, 2}, .pieces = 2, .head_dim = 1};
  const LoadedTensor expected = counted({10, 4});
  // Expected: q0 q1 q2 k0 v0 q3 q4 q5 k1 v1.
  for (const std::vector<int>& order :
       {std::vector<int>{0, 2, 6, 3, 4, 1, 5, 7, 8, 9}, {0, 5, 1, 3, 4, 6, 2, 7, 8, 9}})
    CHECK(says(diagnose_conversion(reordered(expected, 4, order), expected, qkv), "were dealt to"));
}

TEST_CASE("wrong conversions: rotary rows before the others of their head are named") {
  const RowLayout latent{.part_names = {"q_b_proj"},
                         .parts = {12},
                         .head_dim = 6,
                         .rotary_begin = 4,
                         .rotary_rows = 2};
  const LoadedTensor expected = counted({12, 5});
  const LoadedTensor there = reordered(expected, 5, {4, 5, 0, 1, 2, 3, 10, 11, 6, 7, 8, 9});
  CHECK(says(diagnose_conversion(there, expected, latent),
             "the rotary rows of every head of q_b_proj come before"));
}

TEST_CASE("wrong conversions: bytes of the transposed matrix under the right shape are named") {
  const RowLayout experts{.lead = 1, .counters = {"expert"}};
  const LoadedTensor expected = counted({2, 3, 5});
  LoadedTensor there = expected;
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 5; ++c)
      std::memcpy(there.bytes.data() + 60 + (c * 3 + r) * 4,
                  expected.bytes.data() + 60 + (r * 5 + c) * 4, 4);
  }
  CHECK(says(diagnose_conversion(there, expected, experts), "in expert 1: it is transposed"));
}

TEST_CASE("wrong conversions: an order without its reason is told from a named mistake") {
  const LoadedTensor expected = counted({8, 6});
  auto kind_of = [&](const std::vector<int>& order, const RowLayout& layout) {
    const auto mistake = diagnose_conversion(reordered(expected, 6, order), expected, layout);
    REQUIRE(mistake);
    return mistake->kind;
  };
  const RowLayout gate_up{.part_names = {"gate_proj", "up_proj"}, .parts = {4, 4}};
  CHECK(kind_of({4, 5, 6, 7, 0, 1, 2, 3}, gate_up) == Mistake::Kind::kNamed);
  CHECK(kind_of({0, 1, 4, 5, 2, 6, 3, 7}, grouped()) == Mistake::Kind::kNamed);
  // Joined in two pieces, moved in blocks, and moved row by row.
  CHECK(kind_of({0, 1, 4, 5, 2, 3, 6, 7}, gate_up) == Mistake::Kind::kOrder);
  CHECK(kind_of({4, 5, 0, 1, 6, 7, 2, 3}, {}) == Mistake::Kind::kOrder);
  CHECK(kind_of({0, 3, 5, 1, 6, 2, 4, 7}, {}) == Mistake::Kind::kOrder);
  // The order of one part alone has no reason either.
  CHECK(kind_of({3, 0, 2, 1, 4, 5, 6, 7}, gate_up) == Mistake::Kind::kOrder);
  // In one of two layers.
  const RowLayout stacked{.lead = 1, .counters = {"layer"}};
  const LoadedTensor layers{expected.dtype, {2, 4, 6}, expected.bytes};
  const LoadedTensor moved{expected.dtype, {2, 4, 6}, reordered(expected, 6, {3, 0, 2, 1}).bytes};
  const auto in_layer = diagnose_conversion(moved, layers, stacked);
  REQUIRE(in_layer);
  CHECK(in_layer->kind == Mistake::Kind::kOrder);
}
