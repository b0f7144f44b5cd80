// The fixtures of spec/failures.md, F5.1 to F5.9 as 0.7 corrects them, built by code.
#include "core/facts/facts.h"
#include "core/rules/layout/made.h"

using namespace shw;

TEST_CASE("F5.1 to F5.3: strided shards that were labelled plain, and those that were not") {
  std::vector<SavedTile> plain, strided;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    plain.push_back({{rank}, {1}, static_cast<std::uint32_t>(rank)});
    strided.push_back({{rank % 2 * 4 + rank / 2}, {1}, static_cast<std::uint32_t>(rank)});
  }
  Made wrong;
  wrong.tensor("fc1.weight", {8}, plain)
      .expect("fc1.weight", {8}, "dp=4,tp=2", {"SS(0,2)", "S(0)"}, "column");
  Seen seen = look(wrong);
  const Finding* finding = seen.find("strided-recorded-plain");
  REQUIRE(finding != nullptr);
  CHECK(finding->remedy->lossless);
  const auto& boxes = std::get<WrongBoxes>(finding->diagnoses[0]).boxes;
  for (std::size_t rank = 0; rank < 8; ++rank)
    CHECK(boxes[rank].offsets[0] == static_cast<std::int64_t>(rank % 2 * 4 + rank / 2));

  Made right;
  right.tensor("fc1.weight", {8}, strided)
      .expect("fc1.weight", {8}, "dp=4,tp=2", {"SS(0,2)", "S(0)"}, "column");
  CHECK(look(right).quiet());
  Made asked;
  asked.tensor("fc1.weight", {8}, plain)
      .expect("fc1.weight", {8}, "dp=4,tp=2", {"S(0)", "S(0)"}, "column");
  CHECK(look(asked).quiet());
  // Saved by eight plain ranks: the norm shows that this mesh is not the one of the spec.
  Made elsewhere;
  elsewhere.tensor("fc1.weight", {8}, plain)
      .expect("fc1.weight", {8}, "dp=4,tp=2", {"SS(0,2)", "S(0)"}, "column")
      .tensor("norm.weight", {8}, plain)
      .expect("norm.weight", {8}, "dp=4,tp=2", {"S(0)", "R"}, "norm");
  CHECK(look(elsewhere).quiet());
}

TEST_CASE("uneven strided shards that were labelled plain are relabelled by what the items hold") {
  // 10 rows: tp gives 5 and 5, dp then 3 and 2 of each; recorded as if dp had cut first.
  auto make = [](Made& made) {
    made.tensor("embed.weight", {10}, {{{0}, {3}, 0}, {{3}, {2}, 1}, {{5}, {3}, 2}, {{8}, {2}, 3}})
        .expect("embed.weight", {10}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
        .tensor("output.weight", {10}, {{{0}, {3}, 0}, {{3}, {2}, 1}, {{5}, {3}, 2}, {{8}, {2}, 3}})
        .expect("output.weight", {10}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
        .tensor("wq.weight", {8}, {{{0}, {2}, 0}, {{2}, {2}, 1}, {{4}, {2}, 2}, {{6}, {2}, 3}})
        .expect("wq.weight", {8}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
        .tensor(
            "wo.weight", {8, 2},
            {{{0, 0}, {4, 1}, 0}, {{0, 1}, {4, 1}, 1}, {{4, 0}, {4, 1}, 2}, {{4, 1}, {4, 1}, 3}})
        .expect("wo.weight", {8, 2}, "dp=2,tp=2", {"S(0)", "S(1)"});
  };
  auto found_with = [&](const std::vector<Extents>& held) {
    Made made;
    make(made);
    Seen seen = look(made);
    std::vector<Result<ItemHeader>> headers;
    for (const Extents& sizes : held) {
      ItemHeader header;
      header.sizes = sizes;
      headers.emplace_back(header);
    }
    const ItemHeaders kept = ItemHeadersBuilder::of(std::move(headers));
    CheckInput input{*seen.checkpoint, made.spec.get(), nullptr, kept, {}, {}, {}};
    std::vector<Finding> findings;
    find_rule("strided-recorded-plain")->run(build_facts(input), findings);
    return findings;
  };
  // Uneven tensors on the same mesh do not prevent the repair of even ones.
  Made made;
  make(made);
  Seen seen = look(made);
  const Finding* alone = seen.find("strided-recorded-plain");
  REQUIRE(alone != nullptr);
  CHECK(alone->subjects == std::vector<std::string>{"wq.weight"});

  const std::vector<Extents> strided = {{3}, {3}, {2}, {2}}, even = {{2}, {2}, {2}, {2}};
  const std::vector<Extents> grid = {{4, 1}, {4, 1}, {4, 1}, {4, 1}};
  auto all = [](std::vector<Extents> a, const auto&... more) {
    (a.insert(a.end(), more.begin(), more.end()), ...);
    return a;
  };
  std::vector<Finding> findings = found_with(all(strided, strided, even, grid));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].subjects ==
        std::vector<std::string>{"embed.weight", "output.weight", "wq.weight"});
  CHECK(std::get<WrongBoxes>(findings[0].diagnoses[0]).boxes ==
        std::vector<Box>{{{0}, {3}}, {{5}, {3}}, {{3}, {2}}, {{8}, {2}}});
  // If the items are as large as recorded, a saver with another layout than the spec cut them
  // plainly.
  const std::vector<Extents> plain = {{3}, {2}, {3}, {2}};
  CHECK(found_with(all(plain, plain, even, grid)).empty());
}

TEST_CASE("uneven shards recorded along another dimension go where their writers hold them") {
  // 10 rows on tp 4: 3, 3, 3 and 1. from_local with Shard(1) took 4 times 2 columns.
  auto found_with = [](std::int64_t last_offset, std::int64_t last_rows, const char* mesh) {
    Made made;
    made.tensor("embed.weight", {3, 8},
                {{{0, 0}, {3, 2}, 0},
                 {{0, 2}, {3, 2}, 1},
                 {{0, 4}, {3, 2}, 2},
                 {{0, last_offset}, {1, 2}, 3}})
        .expect("embed.weight", {10, 2}, mesh, {"S(0)"});
    auto checkpoint = made.builder.finish();
    std::vector<Result<ItemHeader>> headers;
    for (std::int64_t rows : {std::int64_t{3}, std::int64_t{3}, std::int64_t{3}, last_rows}) {
      ItemHeader header;
      header.sizes = {rows, 2};
      headers.emplace_back(header);
    }
    const ItemHeaders kept = ItemHeadersBuilder::of(std::move(headers));
    const std::vector<TensorTiling> tilings = compute_tilings(*checkpoint);
    CheckInput input{*checkpoint, made.spec.get(), nullptr, kept, {}, {}, tilings};
    std::vector<Finding> findings;
    find_rule("uneven-shards")->run(build_facts(input), findings);
    return findings;
  };
  std::vector<Finding> findings = found_with(6, 1, "tp=4");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].remedy->lossless);
  CHECK(std::get<WrongBoxes>(findings[0].diagnoses.at(0)).boxes ==
        std::vector<Box>{{{0, 0}, {3, 2}}, {{3, 0}, {3, 2}}, {{6, 0}, {3, 2}}, {{9, 0}, {1, 2}}});
  CHECK(found_with(5, 1, "tp=4").empty());  // another place than the rule gives
  CHECK(found_with(6, 2, "tp=4").empty());  // another item than recorded
  CHECK(found_with(6, 1, "tp=5").empty());  // another mesh: 2 rows per rank
}

TEST_CASE("tensors that another mesh cut at any row do not excuse a strided shard") {
  std::vector<SavedTile> plain, grid;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    const auto writer = static_cast<std::uint32_t>(rank);
    plain.push_back({{rank}, {1}, writer});
    grid.push_back({{rank / 2 * 2, rank % 2}, {2, 1}, writer});
  }
  for (bool same_mesh : {false, true}) {
    CAPTURE(same_mesh);
    Made made;
    made.tensor("fc1.weight", {8}, plain)
        .expect("fc1.weight", {8}, "dp=4,tp=2", {"SS(0,2)", "S(0)"}, "column");
    made.tensor("fc2.weight", {8, 2}, grid)
        .expect("fc2.weight", {8, 2}, "dp=4,tp=2", {"S(0)", "S(1)"}, "row");
    // Flat buckets, as Megatron-FSDP has them.
    for (const char* name : {"a", "b", "c"}) {
      made.tensor(name, {8}, {{{0}, {5}, 1}, {{5}, {3}, 2}});
      if (same_mesh)
        made.expect(name, {8}, "dp=4,tp=2", {"S(0)", "R"});
      else
        made.expect(name, {8}, "dp_cp=8", {"S(0)"});
    }
    CHECK((look(made).find("strided-recorded-plain") == nullptr) == same_mesh);
  }
}

TEST_CASE("F5.4: survivors of a forgotten tp axis, with and without a mosaic") {
  auto make = [](Made& made, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    made.tensor("w1", {4}, {{{0}, {2}, a}, {{2}, {2}, b}})
        .expect("w1", {8}, "dp=2,tp=2", {"SS(0,2)", "S(0)"}, "column")
        .tensor("w2", {4}, {{{0}, {2}, c}, {{2}, {2}, d}})
        .expect("w2", {8}, "dp=2,tp=2", {"SS(0,2)", "S(0)"}, "column");
  };
  Made clean;
  make(clean, 0, 2, 1, 3);
  Seen seen = look(clean);
  CHECK(seen.findings[0].rule == "axis-dropped");
  CHECK(seen.retained_chunks("w1") == "0+2<0 2+2<2");
  CHECK(seen.retained_chunks("w2") == "4+2<1 6+2<3");
  Made mixed;
  make(mixed, 1, 2, 0, 3);
  Seen mosaic = look(mixed);
  CHECK(mosaic.retained_chunks("w1") == "2+2<2 4+2<1");
  CHECK(mosaic.retained_chunks("w2") == "0+2<0 6+2<3");
  REQUIRE(mosaic.find("writer-mosaic") != nullptr);
  CHECK(mosaic.find("writer-mosaic")->subjects == std::vector<std::string>{"w1", "w2"});
}

TEST_CASE("F5.5 and F5.6: an uneven strided cut is a hazard, and torn offsets are relabelled") {
  Made fine;
  fine.tensor("w", {17},
              {{{0}, {3}, 0},
               {{9}, {2}, 1},
               {{3}, {3}, 2},
               {{11}, {2}, 3},
               {{6}, {3}, 4},
               {{13}, {2}, 5},
               {{15}, {2}, 7},
               {{17}, {0}, 6}})
      .expect("w", {17}, "dp=4,tp=2", {"SS(0,2)", "S(0)"});
  Seen hazard = look(fine);
  CHECK(hazard.quiet());
  CHECK(hazard.find("uneven-strided") != nullptr);

  Made torn;
  torn.tensor("w", {10}, {{{0}, {3}, 0}, {{4}, {2}, 1}, {{3}, {3}, 2}, {{6}, {2}, 3}})
      .expect("w", {10}, "dp=2,tp=2", {"SS(0,2)", "S(0)"});
  Seen named = look(torn);
  REQUIRE_FALSE(named.findings.empty());
  CHECK(named.findings.front().rule == "uneven-strided");
  CHECK(named.findings.front().diagnoses.empty());
  CHECK(named.find("chunk-overlap") != nullptr);
  CHECK(named.find("coverage-gap") != nullptr);
  // With the items' headers it can be repaired.
  std::vector<Result<ItemHeader>> headers;
  for (std::int64_t rows : {3, 3, 2, 2}) {
    ItemHeader header;
    header.sizes = {rows};
    headers.emplace_back(header);
  }
  const ItemHeaders kept = ItemHeadersBuilder::of(std::move(headers));
  CheckInput input{*named.checkpoint, torn.spec.get(), nullptr, kept, {}, {}, {}};
  std::vector<Finding> findings;
  find_rule("uneven-strided")->run(build_facts(input), findings);
  REQUIRE(findings.size() == 1);
  REQUIRE(findings[0].diagnoses.size() == 1);
  const auto& boxes = std::get<WrongBoxes>(findings[0].diagnoses[0]).boxes;
  CHECK(boxes == std::vector<Box>{{{0}, {3}}, {{5}, {3}}, {{3}, {2}}, {{8}, {2}}});
}

TEST_CASE("F5.7: gate and up of each rank are put together, and FSDP alone is healthy") {
  Made made;
  made.tensor("fc1.weight", {4}, {{{0}, {2}, 0}, {{2}, {2}, 1}})
      .expect("fc1.weight", {4}, "tp=2", {"S(0)"}, "glu");
  CHECK(order_of(look(made), "fused-per-rank") == std::vector<std::int64_t>{0, 2, 1, 3});
  Made flat;
  flat.tensor("fc1.weight", {4}, {{{0}, {2}, 0}, {{2}, {2}, 1}})
      .expect("fc1.weight", {4}, "dp=2", {"S(0)"}, "glu");
  CHECK(look(flat).quiet());
  Made apart;
  apart.tensor("fc1.weight", {4}, {{{0}, {1}, 0}, {{2}, {1}, 0}, {{1}, {1}, 1}, {{3}, {1}, 1}})
      .expect("fc1.weight", {4}, "tp=2", {"S(0)"}, "glu");
  CHECK(look(apart).quiet());
}

TEST_CASE("queries, keys and values of each rank are put together where the role says their rows") {
  // Two ranks of four rows of queries, one of keys and one of values each.
  const std::vector<SavedTile> by_rank = {{{0}, {6}, 0}, {{6}, {6}, 1}};
  auto order = [&](const char* role) {
    Made made;
    made.tensor("attn.qkv.weight", {12}, by_rank)
        .expect("attn.qkv.weight", {12}, "tp=2", {"S(0)"}, role);
    return look(made).quiet() ? std::vector<std::int64_t>{}
                              : order_of(look(made), "fused-per-rank");
  };
  CHECK(order("stacked:8,2,2") == std::vector<std::int64_t>{0, 1, 2, 3, 6, 7, 8, 9, 4, 10, 5, 11});
  CHECK(order("stacked:4,4,4") == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
  CHECK(order("stacked:6,6") == order("glu"));
  // Other rows than the tensor has, a part that the ranks do not share evenly, or no numbers.
  for (const char* role : {"stacked:8,2", "stacked:8,2,3", "stacked:9,2,1", "stacked:12", "qkv",
                           "stacked:", "stacked:8,,2,2", "stacked:8,2,2,", "stacked:-8,18,2"}) {
    CAPTURE(std::string(role));
    CHECK(order(role).empty());
  }
}

TEST_CASE("F5.8 and F5.9: replicas of a strided grid, and a grid of two dimensions, are healthy") {
  Made made;
  made.tensor("fc1.weight", {8}, {{{0}, {2}, 0}, {{4}, {2}, 5}, {{2}, {2}, 6}, {{6}, {2}, 3}})
      .expect("fc1.weight", {8}, "dp_replicate=2,dp_shard=2,tp=2", {"R", "SS(0,2)", "S(0)"})
      .tensor("fc2.weight", {4, 4},
              {{{0, 0}, {2, 2}, 4}, {{0, 2}, {2, 2}, 1}, {{2, 0}, {2, 2}, 2}, {{2, 2}, {2, 2}, 7}})
      .expect("fc2.weight", {4, 4}, "dp_replicate=2,dp_shard=2,tp=2", {"R", "S(0)", "S(1)"});
  CHECK(look(made).quiet());
}

TEST_CASE("0.7.12: a flat bucket of one tp rank stands for both in the model's own weights") {
  Made made;
  // dp 2 x tp 2; the item of tp 1 is on dp rank 1 alone, the other is split 3 + 5.
  made.tensor("fc1.weight_w", {8, 4}, {{{0, 0}, {8, 4}, 3}})
      .expect("fc1.weight_w", {16, 4}, "dp_cp=2,tp=2", {"SS(0,2)", "S(0)"}, "swiglu")
      .tensor("output_layer.weight", {8, 4}, {{{0, 0}, {3, 4}, 0}, {{3, 0}, {5, 4}, 2}})
      .expect("output_layer.weight", {16, 4}, "dp_cp=2,tp=2", {"SS(0,2)", "S(0)"})
      .tensor("qkv.weight", {12, 4}, {{{0, 0}, {6, 4}, 0}, {{6, 0}, {6, 4}, 1}})
      .expect("qkv.weight", {12, 4}, "dp_cp=2,tp=2", {"SS(0,2)", "S(0)"});
  Seen seen = look(made);
  REQUIRE_FALSE(seen.findings.empty());
  CHECK(seen.findings[0].rule == "axis-dropped");
  CHECK(seen.findings[0].subjects ==
        std::vector<std::string>{"fc1.weight_w", "output_layer.weight"});
  CHECK(seen.retained_chunks("fc1.weight_w") == "8+8<3");
  CHECK(seen.retained_chunks("output_layer.weight") == "0+3<0 3+5<2");
}

TEST_CASE("an axis that was left out along with the strides is placed by who wrote what") {
  // dp 2 x cp 2 x tp 2 on one dim, tp first and dp last in training: rank (d, c, t) has row 4t + 2c
  // + d. The saver knew only dp and cp, as plain shards: box 2d + c of 4.
  Made made;
  std::vector<SavedTile> tiles;
  for (std::uint32_t box = 0; box < 4; ++box) tiles.push_back({{box, 0}, {1, 2}, 2 * box + 1});
  made.tensor("fc1.weight", {4, 2}, tiles)
      .expect("fc1.weight", {8, 2}, "dp=2,cp=2,tp=2", {"SS(0,4)", "SS(0,2)", "S(0)"}, "column");
  Seen seen = look(made);
  REQUIRE_FALSE(seen.findings.empty());
  CHECK(seen.findings[0].rule == "axis-dropped");
  CHECK(seen.number(seen.findings[0], "total_lost_elements") == 8);
  CHECK(seen.retained_chunks("fc1.weight") == "4+1<1 5+1<5 6+1<3 7+1<7");
}

TEST_CASE("chunks in an order that the spec does not know are not placed") {
  // Four rows of a bucket from the last rank to the first, which no placement of the spec does.
  Made made;
  std::vector<SavedTile> tiles;
  const std::int64_t rows[] = {3, 1, 3, 1};
  std::int64_t at = 0;
  for (std::uint32_t box = 0; box < 4; ++box) {
    tiles.push_back({{at, 0}, {rows[box], 2}, 2 * (3 - box)});
    at += rows[box];
  }
  made.tensor("fc1.weight", {8, 2}, tiles)
      .expect("fc1.weight", {16, 2}, "dp=4,tp=2", {"SS(0,2)", "S(0)"}, "column");
  Seen seen = look(made);
  REQUIRE_FALSE(seen.findings.empty());
  CHECK(seen.findings[0].rule == "axis-dropped");
  CHECK_FALSE(seen.findings[0].remedy.has_value());
  CHECK(seen.retained_chunks("fc1.weight").empty());
}

TEST_CASE("tensors that the spec leaves out show that one axis of all ranks saved the others") {
  std::vector<SavedTile> rows, grid;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    rows.push_back({{rank * 2, 0}, {2, 4}, static_cast<std::uint32_t>(rank)});
    grid.push_back({{rank / 2 * 4, rank % 2 * 2}, {4, 2}, static_cast<std::uint32_t>(rank)});
  }
  Made fsdp;
  fsdp.tensor("q_proj.weight", {8, 4}, rows)
      .expect("q_proj.weight", {8, 4}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
      .tensor("o_proj.weight", {8, 4}, rows);
  CHECK(look(fsdp).quiet());

  Made two_axes;
  two_axes.tensor("q_proj.weight", {8, 4}, rows)
      .expect("q_proj.weight", {8, 4}, "dp=2,tp=2", {"SS(0,2)", "S(0)"})
      .tensor("o_proj.weight", {8, 4}, grid)
      .tensor("up_proj.weight", {8, 4}, rows);
  CHECK(look(two_axes).find("strided-recorded-plain") != nullptr);
}
