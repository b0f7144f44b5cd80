#include "core/learn/learn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "core/learn/made_weights.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kLayers = 3, kWidth = 16;

bool has_row(const ModelMap& map, const std::string& text) {
  const std::vector<std::string> rows = row_texts(map);
  return std::find(rows.begin(), rows.end(), text) != rows.end();
}

std::uint16_t added_to(std::uint16_t bits, float value) {
  const float sum = std::bit_cast<float>(std::uint32_t{bits} << 16) + value;
  const std::uint32_t wide = std::bit_cast<std::uint32_t>(sum);
  return static_cast<std::uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);  // to even
}

// Has one matrix per layer on one side, and the result of `make` on the other.
template <class Make>
void check_layers(const std::vector<std::pair<std::string, std::size_t>>& parts, Make make) {
  std::mt19937 random(7);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    std::vector<MadeWeight> weights;
    for (const auto& [fqn, rows] : parts) {
      weights.push_back(random_weight(rows, kWidth, random));
      a.emplace_back(layer + fqn, weights.back());
    }
    b.emplace_back("blocks." + std::to_string(l) + ".made", make(weights));
  }
  check_explained(laid_weights(a), laid_weights(b));
}

}  // namespace

TEST_CASE("learned map: names alone fold into a row with a counter") {
  std::mt19937 random(1);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    const MadeWeight weight = random_weight(8, kWidth, random);
    a.emplace_back("layers." + std::to_string(l) + ".up", weight);
    b.emplace_back("h." + std::to_string(l) + ".w3", weight);
  }
  check_explained(laid_weights(a), laid_weights(b));
  const LearnedMap learned = learned_between(laid_weights(a), laid_weights(b));
  CHECK(row_texts(learned.map) == std::vector<std::string>{"layers.{l}.up -> h.{l}.w3"});
}

TEST_CASE("learned map: rows of several tensors are joined by their pieces") {
  const std::vector<std::pair<std::string, std::size_t>> qkv{{"q", 32}, {"k", 16}, {"v", 16}};
  const std::vector<std::pair<std::string, std::size_t>> gate_up{{"gate", 24}, {"up", 24}};
  for (const std::size_t pieces : {1, 2, 4, 8}) {
    CAPTURE(pieces);
    check_layers(qkv, [&](const auto& weights) { return joined(weights, pieces); });
    check_layers(gate_up, [&](const auto& weights) { return joined(weights, pieces); });
  }
  check_layers(gate_up, [](const auto& weights) { return joined(weights, 24); });
  // In the other order.
  check_layers(gate_up, [](const auto& weights) { return joined({weights[1], weights[0]}, 1); });
}

TEST_CASE("learned map: rows in another order are a permute") {
  for (const std::size_t heads : {1, 2, 4}) {
    CAPTURE(heads);
    check_layers({{"q", 32}},
                 [&](const auto& weights) { return halves_alternate(weights[0], heads); });
  }
}

TEST_CASE("learned map: unequal parts of one tensor are a regroup") {
  check_layers({{"qkv", 64}}, [](const auto& weights) {
    const auto& rows = weights[0].rows;
    const MadeWeight q{{rows.begin(), rows.begin() + 32}},
        k{{rows.begin() + 32, rows.begin() + 48}}, v{{rows.begin() + 48, rows.end()}};
    return joined({q, k, v}, 2);
  });
}

TEST_CASE("learned map: columns make transposed and joined tensors") {
  check_layers({{"w", 24}}, [](const auto& weights) { return turned(weights[0]); });
  check_layers({{"a", 24}, {"b", 24}}, [](const auto& weights) {
    return turned(joined({turned(weights[0]), turned(weights[1])}, 1));
  });
  check_layers({{"q", 32}, {"k", 16}, {"v", 16}},
               [](const auto& weights) { return turned(joined(weights, 1)); });
}

TEST_CASE("learned map: layers and experts are stacked, in any tiles") {
  std::mt19937 random(3);
  std::vector<TiledTensor> a;
  std::vector<TiledTensor> ups, downs;
  for (std::size_t l = 0; l < 2; ++l) {
    std::vector<TiledTensor> of_layer;
    for (std::size_t e = 0; e < 3; ++e) {
      const std::string expert =
          "layers." + std::to_string(l) + ".experts." + std::to_string(e) + ".";
      const MadeWeight gate = random_weight(8, kWidth, random),
                       up = random_weight(8, kWidth, random);
      a.push_back(laid_tensor(expert + "gate", gate));
      a.push_back(laid_tensor(expert + "up", up));
      of_layer.push_back(laid_tensor("", joined({gate, up}, 1)));
    }
    ups.push_back(stacked("", of_layer));
  }
  std::vector<TiledTensor> b{stacked("decoder.fc1", ups)};
  for (TiledTensor& tensor : a) tensor.tiles = random_tiles(tensor.shape, random);
  for (TiledTensor& tensor : b) tensor.tiles = random_tiles(tensor.shape, random);
  check_explained(a, b);
  CHECK(has_row(learned_between(a, b).map,
                "layers.{l}.experts.{e}.gate, layers.{l}.experts.{e}.up -> decoder.fc1: join"));
}

TEST_CASE(
    "learned map: stacked experts of layers that continue the numbers of others are "
    "distinguished") {
  std::mt19937 random(13);
  std::vector<TiledTensor> a, b;
  // Layers 0 and 1 are the decoder's, layers 2 and 3 have a name of their own on the other side.
  for (std::size_t l = 0; l < 4; ++l) {
    std::vector<TiledTensor> experts;
    for (std::size_t e = 0; e < 2; ++e) {
      const MadeWeight down = random_weight(8, kWidth, random);
      a.push_back(laid_tensor(
          "layers." + std::to_string(l) + ".experts." + std::to_string(e) + ".down", down));
      experts.push_back(laid_tensor("", down));
    }
    const bool is_decoder = l < 2;
    b.push_back(stacked(
        (is_decoder ? "decoder." : "mtp.") + std::to_string(l % 2) + ".experts.down", experts));
  }
  check_explained(a, b);
}

TEST_CASE("learned map: layers that are numbered from another number have a shift") {
  std::mt19937 random(4);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    const MadeWeight weight = random_weight(8, kWidth, random);
    a.emplace_back("layers." + std::to_string(l) + ".up", weight);
    b.emplace_back("h." + std::to_string(l + 5) + ".up", weight);
  }
  check_explained(laid_weights(a), laid_weights(b));
}

TEST_CASE("learned map: one norm that goes to two places is recognised by what its layer has") {
  std::mt19937 random(5);
  MadeWeights a, b;
  for (std::size_t l = 0; l < 6; ++l) {
    const std::string from = "layers." + std::to_string(l) + ".",
                      to = "h." + std::to_string(l) + ".";
    const bool is_dense = l < 3;
    const MadeWeight norm = random_vector(kWidth, random),
                     weight = random_weight(8, kWidth, random);
    a.emplace_back(from + "norm", norm);
    b.emplace_back(to + (is_dense ? "fc1.norm" : "router.norm"), norm);
    a.emplace_back(from + (is_dense ? "up" : "gate"), weight);
    b.emplace_back(to + (is_dense ? "fc1" : "router"), weight);
  }
  check_explained(laid_weights(a), laid_weights(b));
  CHECK(learned_between(laid_weights(a), laid_weights(b)).map.rows.size() == 4);
}

TEST_CASE("learned map: a tensor under two names is a copy") {
  std::mt19937 random(6);
  const MadeWeight embedding = random_weight(24, kWidth, random);
  const std::vector<TiledTensor> a{laid_tensor("embed", embedding)};
  const std::vector<TiledTensor> b{laid_tensor("tok.embed", embedding),
                                   laid_tensor("head", embedding)};
  check_explained(a, b);
  const LearnedMap learned = learned_between(a, b);
  CHECK(learned.map.from_copies.size() + learned.map.to_copies.size() == 1);
}

TEST_CASE("learned map: zeros at the end are padding, and other rows there are not explained") {
  std::mt19937 random(8);
  MadeWeight embedding = random_weight(21, kWidth, random);
  const std::vector<TiledTensor> a{laid_tensor("embed", embedding)};
  embedding.rows.resize(32, std::vector<std::uint16_t>(kWidth, 0));
  check_explained(a, {laid_tensor("tok", embedding)});
  embedding.rows.back().front() = 0x3f80;
  const std::vector<TiledTensor> b{laid_tensor("tok", embedding)};
  const LearnedMap padded = learned_between(a, b);
  CHECK(padded.proved == 0);
  REQUIRE(padded.rows.size() == 1);
  CHECK(padded.rows.front().leaves_padding);
  CHECK(padded.unexplained.size() == 1);
  // The reverse map cuts the padding off.
  CHECK(learned_between(b, a).is_all_explained());
}

TEST_CASE("learned map: tensors of one value are matched by name, and are said to be") {
  std::mt19937 random(9);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    const std::string from = "layers." + std::to_string(l) + ".",
                      to = "h." + std::to_string(l) + ".";
    const MadeWeight weight = random_weight(8, kWidth, random),
                     ones = filled_vector(kWidth, 0x3f80);
    for (const char* norm : {"input_norm", "post_norm"}) {
      a.emplace_back(from + norm, ones);
      b.emplace_back(to + norm, ones);
    }
    a.emplace_back(from + "up", weight);
    b.emplace_back(to + "w3", weight);
  }
  check_explained(laid_weights(a), laid_weights(b));
  const LearnedMap learned = learned_between(laid_weights(a), laid_weights(b));
  CHECK(has_row(learned.map, "layers.{l}.input_norm -> h.{l}.input_norm"));
  CHECK(std::count_if(learned.rows.begin(), learned.rows.end(),
                      [](const ExplainedRow& row) { return row.is_by_name; }) == 2);
}

TEST_CASE("learned map: biases are joined as their weights are, also where they are zero") {
  for (const bool are_zero : {false, true}) {
    CAPTURE(are_zero);
    std::mt19937 random(10);
    MadeWeights a, b;
    for (std::size_t l = 0; l < kLayers; ++l) {
      const std::string from = "layers." + std::to_string(l) + ".",
                        to = "h." + std::to_string(l) + ".";
      std::vector<MadeWeight> weights, biases;
      for (const auto& [part, rows] :
           {std::pair{"q", 32}, std::pair{"k", 16}, std::pair{"v", 16}}) {
        weights.push_back(random_weight(static_cast<std::size_t>(rows), kWidth, random));
        biases.push_back(are_zero ? turned(filled_vector(static_cast<std::size_t>(rows), 0))
                                  : random_weight(static_cast<std::size_t>(rows), 1, random));
        a.emplace_back(from + part + ".weight", weights.back());
        a.emplace_back(from + part + ".bias", as_vector(biases.back()));
      }
      b.emplace_back(to + "qkv.weight", joined(weights, 4));
      b.emplace_back(to + "qkv.bias", as_vector(joined(biases, 4)));
    }
    check_explained(laid_weights(a), laid_weights(b));
    const LearnedMap learned = learned_between(laid_weights(a), laid_weights(b));
    const bool says_so = std::any_of(learned.rows.begin(), learned.rows.end(),
                                     [](const ExplainedRow& row) { return row.is_by_name; });
    CHECK(says_so == are_zero);
  }
}

TEST_CASE("learned map: elements that were rounded are a cast one way, and lost the other way") {
  std::mt19937 random(11);
  std::vector<TiledTensor> a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    TiledTensor wide{"layers." + std::to_string(l) + ".up", Dtype::kFloat32, {8, 16}, {}};
    TiledTensor narrow{"h." + std::to_string(l) + ".up", Dtype::kBfloat16, {8, 16}, {}};
    for (int i = 0; i < 128; ++i) {
      // Half of the last bits that are cut off, all rounded down.
      const auto bits =
          static_cast<std::uint32_t>(0x3f000001 + (random() % 0x200 << 16) + random() % 0x7000);
      const auto kept = static_cast<std::uint16_t>(bits >> 16);
      const auto wide_bytes = std::as_bytes(std::span(&bits, 1));
      const auto narrow_bytes = std::as_bytes(std::span(&kept, 1));
      wide.bytes.insert(wide.bytes.end(), wide_bytes.begin(), wide_bytes.end());
      narrow.bytes.insert(narrow.bytes.end(), narrow_bytes.begin(), narrow_bytes.end());
    }
    a.push_back(std::move(wide));
    b.push_back(std::move(narrow));
  }
  const LearnedMap narrowed = learned_between(a, b);
  CHECK(narrowed.is_all_explained());
  REQUIRE(narrowed.rows.size() == 1);
  CHECK(narrowed.rows.front().is_cast);
  CHECK(has_row(narrowed.map, "layers.{l}.up -> h.{l}.up: cast"));
  const LearnedMap widened = learned_between(b, a);
  CHECK(widened.proved == 0);
  CHECK(widened.unexplained.size() == kLayers);
}

TEST_CASE("learned map: norms of w and of 1 + w are an addition, proved on every element") {
  std::mt19937 random(12);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    MadeWeight norm = random_vector(64, random), shifted = norm;
    for (std::size_t i = 0; i < 64; ++i) {
      // Sums of these are rounded, and differences of the sums are not.
      norm.rows[0][i] = static_cast<std::uint16_t>(0x3d80 + random() % 0x80);
      shifted.rows[0][i] = added_to(norm.rows[0][i], 1);
    }
    const std::string number = std::to_string(l);
    a.emplace_back("layers." + number + ".norm", norm);
    b.emplace_back("h." + number + ".norm", shifted);
  }
  const LearnedMap there = learned_between(laid_weights(a), laid_weights(b));
  CHECK(there.is_all_explained());
  CHECK(has_row(there.map, "layers.{l}.norm -> h.{l}.norm: add"));
  // The way back does not give what was rounded off.
  const LearnedMap back = learned_between(laid_weights(b), laid_weights(a));
  CHECK(back.proved == 0);
  REQUIRE(back.unexplained.size() == kLayers);
  CHECK(back.unexplained.front().why.find("1 less than that of") != std::string::npos);
}

TEST_CASE("learned map: sums that come back are learned both ways, also of stacked layers") {
  std::mt19937 random(16);
  std::vector<TiledTensor> a, norms, weights;
  for (std::size_t l = 0; l < kLayers; ++l) {
    MadeWeight norm = random_vector(64, random), shifted = norm;
    for (std::size_t i = 0; i < 64; ++i) {
      norm.rows[0][i] = static_cast<std::uint16_t>(0x3f80 + random() % 0x80);
      shifted.rows[0][i] = added_to(norm.rows[0][i], -1);
    }
    const std::string layer = "layers." + std::to_string(l) + ".";
    const MadeWeight up = random_weight(8, kWidth, random);
    a.push_back(laid_tensor(layer + "norm", norm));
    a.push_back(laid_tensor(layer + "up", up));
    norms.push_back(laid_tensor("", shifted));
    weights.push_back(laid_tensor("", up));
  }
  const std::vector<TiledTensor> b{stacked("decoder.norm", norms), stacked("decoder.up", weights)};
  CHECK(has_row(learned_between(a, b).map, "layers.{l}.norm -> decoder.norm: add"));
  check_explained(a, b);
}

TEST_CASE("learned map: unrelated weights are not explained") {
  std::mt19937 random(13);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    a.emplace_back("layers." + std::to_string(l) + ".up", random_weight(8, kWidth, random));
    b.emplace_back("layers." + std::to_string(l) + ".up", random_weight(8, kWidth, random));
  }
  const LearnedMap learned = learned_between(laid_weights(a), laid_weights(b));
  CHECK(learned.rows.empty());
  CHECK(learned.proved == 0);
  CHECK(learned.unexplained.size() == kLayers);
  CHECK(learned.unused.size() == kLayers);
}

TEST_CASE("learned map: one element that differs leaves its tensor unexplained") {
  std::mt19937 random(14);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    const MadeWeight gate = random_weight(8, kWidth, random), up = random_weight(8, kWidth, random);
    a.emplace_back("layers." + std::to_string(l) + ".gate", gate);
    a.emplace_back("layers." + std::to_string(l) + ".up", up);
    b.emplace_back("h." + std::to_string(l) + ".fc1", joined({gate, up}, 1));
  }
  b[1].second.rows[5][3] ^= 1;
  const LearnedMap learned = learned_between(laid_weights(a), laid_weights(b));
  CHECK(learned.proved == kLayers - 1);
  REQUIRE(learned.unexplained.size() == 1);
  CHECK(learned.unexplained.front().fqn == "h.1.fc1");
}

TEST_CASE("learned map: names that a wrapper changed are read without it") {
  std::mt19937 random(15);
  const MadeWeight weight = random_weight(8, kWidth, random);
  const LearnedMap learned = learned_between({laid_tensor("_orig_mod.layers.0.up", weight)},
                                             {laid_tensor("h.0.w3", weight)});
  CHECK(learned.is_all_explained());
}

TEST_CASE("learned map: rows of several tensors in any blocks are a join and a reorder") {
  // One side has queries and gates by head, the other by group.
  check_layers({{"q", 64}, {"k", 16}, {"v", 16}}, [](const auto& weights) {
    MadeWeight out;
    for (std::size_t group = 0; group < 2; ++group) {
      for (const std::size_t half : {0, 1}) {
        for (std::size_t head = 0; head < 2; ++head) {
          const auto at = weights[0].rows.begin() +
                          static_cast<std::ptrdiff_t>(group * 32 + head * 16 + half * 8);
          out.rows.insert(out.rows.end(), at, at + 8);
        }
      }
      for (const std::size_t part : {1, 2}) {
        const auto at = weights[part].rows.begin() + static_cast<std::ptrdiff_t>(group * 8);
        out.rows.insert(out.rows.end(), at, at + 8);
      }
    }
    return out;
  });
}

TEST_CASE("learned map: experts that are stacked in another order are not explained") {
  std::mt19937 random(16);
  std::vector<TiledTensor> a;
  for (int e = 0; e < 4; ++e)
    a.push_back(
        laid_tensor("experts." + std::to_string(e) + ".up", random_weight(8, kWidth, random)));
  const std::vector<TiledTensor> b{stacked("up", {a[1], a[2], a[3], a[0]})};
  const LearnedMap learned = learned_between(a, b);
  CHECK(learned.proved == 0);
  REQUIRE(learned.unexplained.size() == 1);
  CHECK(learned.unexplained.front().why.find("order") != std::string::npos);
}

TEST_CASE("learned map: rows of zeros and repeated rows hide no operation") {
  std::mt19937 random(17);
  MadeWeights a, b;
  for (std::size_t l = 0; l < kLayers; ++l) {
    std::vector<MadeWeight> weights;
    for (const char* part : {"gate", "up"}) {
      MadeWeight weight = random_weight(24, kWidth, random);
      weight.rows[2] = weight.rows[9] = std::vector<std::uint16_t>(kWidth, 0);
      weight.rows[20] = weight.rows[21];
      a.emplace_back("layers." + std::to_string(l) + "." + part, weight);
      weights.push_back(std::move(weight));
    }
    b.emplace_back("h." + std::to_string(l) + ".fc1", joined(weights, 24));
  }
  check_explained(laid_weights(a), laid_weights(b));
}

TEST_CASE("learned map: tensors without elements and single elements are matched by name") {
  std::mt19937 random(18);
  const MadeWeight weight = random_weight(8, kWidth, random);
  const TiledTensor empty{"buffer", Dtype::kBfloat16, {0, 4}, {}};
  const TiledTensor scale = laid_tensor("scale", filled_vector(1, 0x4000));
  check_explained({laid_tensor("up", weight), empty, scale},
                  {laid_tensor("w3", weight), empty, scale});
}
