// Tiles of one tensor that have the bytes of another of its tiles.
#include <doctest/doctest.h>

#include <random>

#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

const Extents kShape{32, 16};

Values drawn_values(std::uint32_t seed) {
  std::mt19937 dice(seed);
  Values values;
  for (int i = 0; i < 32 * 16; ++i) values.push_back(static_cast<std::int64_t>(dice() % 100'000));
  return values;
}

// A tensor of 8 tiles of 4 rows, in which tile copies[i].second equals tile copies[i].first.
using Copies = std::vector<std::pair<std::size_t, std::size_t>>;
MadeTensor with_copies(const std::string& fqn, const Values& values, const Copies& copies) {
  MadeTensor tensor = cut_in_rows(fqn, kShape, values, 8);
  for (auto [first, second] : copies) tensor.chunks[second].values = tensor.chunks[first].values;
  return tensor;
}

std::vector<Severity> finding_of_side_file(const std::vector<MadeTensor>& tensors) {
  TemporaryFolder folder;
  write_checkpoint(folder / "made", tensors);
  std::vector<Severity> severities;
  const CheckReport report = held_against(folder / "made", "", Depth::kData);
  for (const Finding* finding : all_of(report, "duplicate-content")) {
    CHECK(finding->cause.starts_with("Chunks of one tensor hold the same bytes"));
    severities.push_back(finding->severity);
  }
  return severities;
}

}  // namespace

TEST_CASE("a tile that two tensors have twice for the same ranks is a warning, of one it is said") {
  const Values a = drawn_values(1), b = drawn_values(2), c = drawn_values(3);
  using List = std::vector<Severity>;
  const MadeTensor sound = with_copies("model.c", c, {});
  CHECK(finding_of_side_file({with_copies("model.a", a, {}), sound}).empty());
  CHECK(finding_of_side_file({with_copies("model.a", a, {{1, 2}}), sound}) ==
        List{Severity::kInfo});
  CHECK(finding_of_side_file(
            {with_copies("model.a", a, {{1, 2}}), with_copies("model.b", b, {{1, 2}}), sound}) ==
        List{Severity::kWarning});
  // Copies between other pairs of ranks, or in half of the tiles: it may be intended.
  CHECK(finding_of_side_file(
            {with_copies("model.a", a, {{1, 2}}), with_copies("model.b", b, {{3, 4}}), sound}) ==
        List{Severity::kInfo});
  // If one rank wrote both tiles, no other rank's part is missing.
  MadeTensor a_alone = with_copies("model.a", a, {{1, 2}}),
             b_alone = with_copies("model.b", b, {{1, 2}});
  for (MadeTensor* one : {&a_alone, &b_alone}) one->chunks[2].writer = one->chunks[1].writer;
  CHECK(finding_of_side_file({a_alone, b_alone, sound}) == List{Severity::kInfo});
  const Copies pairs{{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  CHECK(finding_of_side_file({with_copies("model.a", a, pairs), with_copies("model.b", b, pairs),
                              sound}) == List{Severity::kInfo});
}

TEST_CASE("equal tiles of zeros, of a mean row or of experts accuse nobody") {
  Values zeros(32 * 16, 0), rows = drawn_values(4);
  for (std::size_t i = 8 * 16; i < rows.size(); ++i) rows[i] = rows[8 * 16 + i % 16];
  for (const auto& [fqn, values] :
       {std::pair<std::string, Values>{"model.zeros", zeros}, {"model.embed.weight", rows}})
    CHECK(finding_of_side_file(
              {with_copies(fqn, values, {}), with_copies("model.c", drawn_values(3), {})})
              .empty());
  CHECK(finding_of_side_file({with_copies("model.experts.w1", drawn_values(1), {{1, 2}}),
                              with_copies("model.experts.w2", drawn_values(2), {{1, 2}}),
                              with_copies("model.c", drawn_values(3), {})})
            .empty());
}

TEST_CASE("a rank's whole file under another's name is told once, as files") {
  const Copies copied{{1, 2}};
  TemporaryFolder folder;
  std::vector<MadeTensor> tensors;
  for (std::uint32_t i = 0; i < 4; ++i)
    tensors.push_back(with_copies("model.w" + std::string(1, static_cast<char>('a' + i)),
                                  drawn_values(10 + i), copied));
  write_checkpoint(folder / "made", tensors);
  const CheckReport report = held_against(folder / "made", "", Depth::kData);
  CHECK(all_of(report, "duplicate-content").empty());
  CHECK(first_of(report, "shared-storage") != nullptr);
}
