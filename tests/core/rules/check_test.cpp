#include "core/rules/check.h"

#include <doctest/doctest.h>

#include <set>

#include "core/model/builder.h"
#include "core/rules/on_fixtures.h"
#include "core/unnamed_format.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Tile {
  Extents offsets, sizes;
};

void add(CheckpointBuilder& builder, const std::string& fqn, const Extents& shape,
         const std::vector<Tile>& tiles, Dtype dtype = Dtype::kFloat32) {
  builder.add_tensor(fqn, dtype, shape);
  std::int64_t at = 0;
  std::uint32_t rank = 0;
  for (const Tile& tile : tiles) {
    std::string file = "__" + std::to_string(rank++) + "_0.distcp";
    builder.add_chunk(tile.offsets, tile.sizes, ItemPlace{builder.file(file), at, 16});
  }
}

CheckReport look(const Checkpoint& checkpoint, Depth depth = Depth::kMetadata) {
  auto report = check(checkpoint, CheckOptions{depth, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  return *report;
}

const EvidenceValue& evidence(const Finding& finding, std::string_view key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key) return value;
  }
  FAIL("no evidence " << key);
  static const EvidenceValue kNone = false;
  return kNone;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("zero-size tensors, 0-d tensors and empty tiles at the end are healthy") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "scalar", {}, {{{}, {}}});
  add(builder, "nothing", {0, 4}, {{{0, 0}, {0, 4}}});
  add(builder, "nothing at all", {0, 4}, {});
  add(builder, "uneven", {6, 2},
      {{{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}, {{4, 0}, {2, 2}}, {{6, 0}, {0, 2}}});
  add(builder, "reversed", {6}, {{{3}, {3}}, {{0}, {3}}});
  auto report = look(*builder.finish());
  CHECK(report.verdict == Verdict::kClean);
  CHECK(report.findings.empty());
}

TEST_CASE("geometry: each defect is the finding that names it") {
  struct Case {
    const char* what;
    Extents shape;
    std::vector<Tile> tiles;
    Names rules;
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  const Case cases[] = {
      {"two dimensions in three", {2, 2, 2}, {{{0, 0}, {2, 2}}}, {"chunk-rank"}},
      {"a negative extent", {-2, 2}, {}, {"chunk-rank"}},
      {"past the end", {4}, {{{0}, {2}}, {{2}, {3}}}, {"chunk-out-of-bounds"}},
      {"a negative offset", {4}, {{{-1}, {5}}}, {"chunk-out-of-bounds"}},
      {"an offset of 2^62, and so a hole",
       {4},
       {{{0}, {2}}, {{huge}, {huge}}},
       {"chunk-out-of-bounds", "coverage-gap"}},
      {"two on the same place", {4}, {{{0}, {3}}, {{2}, {2}}}, {"chunk-overlap"}},
      {"two scalars", {}, {{{}, {}}, {{}, {}}}, {"chunk-overlap"}},
      {"a hole", {4, 4}, {{{0, 0}, {4, 2}}, {{0, 2}, {2, 2}}}, {"coverage-gap"}},
      {"no tile", {4}, {}, {"coverage-gap"}},
      {"no scalar", {}, {}, {"coverage-gap"}},
      {"a shape of 2^124 elements", {huge, huge}, {{{0, 0}, {2, 2}}}, {"coverage-gap"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    add(builder, "w", one.shape, one.tiles);
    add(builder, "healthy", {2}, {{{0}, {2}}});
    auto report = look(*builder.finish());
    CHECK(rules_above_info(report) == one.rules);
    CHECK(report.verdict == Verdict::kFindings);
    for (const Finding& finding : report.findings) {
      CHECK(finding.subjects == Names{"w"});
      CHECK_FALSE(finding.cause.empty());
      CHECK_FALSE(finding.remedy.has_value());
    }
  }
}

TEST_CASE("a tile that is listed twice with one item is remarked on, and not called an overlap") {
  auto listed = [](bool same_item) {
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    const Extents shape{4}, first{0}, second{2}, half{2};
    builder.add_tensor("w", Dtype::kFloat32, shape);
    FileId file = builder.file("__0_0.distcp");
    builder.add_chunk(first, half, ItemPlace{file, 0, 16});
    builder.add_chunk(first, half, ItemPlace{file, same_item ? 0 : 32, 16});
    builder.add_chunk(second, half, ItemPlace{file, 16, 16});
    std::vector<Finding> told;
    for (Finding& finding : look(*builder.finish()).findings) {
      if (finding.rule == "chunk-overlap") told.push_back(std::move(finding));
    }
    REQUIRE(told.size() == 1);
    CHECK(told[0].subjects == Names{"w"});
    return told[0];
  };
  CHECK(listed(true).severity == Severity::kInfo);
  CHECK(listed(true).cause.find("lists twice") != std::string::npos);
  CHECK(listed(false).severity == Severity::kError);
  CHECK(listed(false).cause.find("read order") != std::string::npos);
}

TEST_CASE("a gap names the missing boxes, merged, of all tensors in one finding") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "a", {4, 4}, {{{0, 0}, {1, 4}}, {{3, 0}, {1, 4}}});
  add(builder, "b", {6}, {{{0}, {2}}, {{4}, {2}}});
  auto report = look(*builder.finish());
  REQUIRE(report.findings.size() == 1);
  const Finding& gap = report.findings.front();
  CHECK(gap.subjects == Names{"a", "b"});
  CHECK(std::get<std::vector<Box>>(evidence(gap, "missing_boxes")) ==
        std::vector<Box>{{{1, 0}, {2, 4}}, {{2}, {2}}});
  CHECK(std::get<Names>(evidence(gap, "missing_in")) == Names{"a", "b"});
  CHECK(std::get<std::int64_t>(evidence(gap, "missing_elements")) == 10);
}

TEST_CASE("chunk-overlap: each box names its tensor, and both lists have one limit") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "a", {4}, {{{0}, {3}}, {{2}, {2}}});
  add(builder, "b", {2, 4}, {{{0, 0}, {2, 3}}, {{0, 1}, {2, 3}}});
  for (int i = 0; i < 100; ++i)
    add(builder, "c" + std::to_string(i), {4}, {{{0}, {2}}, {{1}, {3}}});
  auto report = look(*builder.finish());
  REQUIRE(report.findings.size() == 1);
  const auto& boxes = std::get<std::vector<Box>>(evidence(report.findings.front(), "boxes"));
  const auto& inside = std::get<Names>(evidence(report.findings.front(), "boxes_in"));
  REQUIRE(boxes.size() > 2);
  CHECK(boxes.size() == inside.size());
  CHECK(boxes.size() < 102);
  CHECK(inside[0] == "a");
  CHECK(boxes[0] == Box{{2}, {1}});
  CHECK(inside[1] == "b");
  CHECK(boxes[1] == Box{{0, 1}, {2, 2}});
}

TEST_CASE("many tensors with one defect are one finding with all of them as subjects") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  for (int i = 0; i < 300; ++i)
    add(builder, "layers." + std::to_string(i), {4}, {{{0}, {2}}, {{1}, {3}}});
  auto report = look(*builder.finish());
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings.front().subjects.size() == 300);
  CHECK(std::get<Names>(evidence(report.findings.front(), "pairs")).size() == 64);
  CHECK(std::get<std::int64_t>(evidence(report.findings.front(), "pair_count")) == 300);
}

TEST_CASE("every rule has an id of its own, a title, and something to teach") {
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    CHECK(ids.insert(rule.id).second);
    CHECK_FALSE(rule.title.empty());
    CHECK(rule.teaches.size() > 150);
    CHECK(find_rule(rule.id)->title == rule.title);
  }
  CHECK(find_rule("no-such-rule") == nullptr);
}

TEST_CASE(
    "files: missing, short, negative and outside are distinguished and unreferenced ones are not") {
  Bytes hundred(100);
  auto directory = memory_directory(
      "ckpt", {{"__0_0.distcp", hundred}, {"__1_0.distcp", {}}, {"left_over.distcp", hundred}});
  struct Case {
    const char* what;
    std::string file;
    std::int64_t offset, length;
    Names rules;
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  const Case cases[] = {
      {"good", "__0_0.distcp", 0, 100, {}},
      {"absent", "__7_0.distcp", 0, 100, {"missing-file"}},
      {"a byte too long", "__0_0.distcp", 1, 100, {"short-file"}},
      {"in an empty file", "__1_0.distcp", 0, 8, {"short-file"}},
      {"a negative offset", "__0_0.distcp", -1, 8, {"short-file"}},
      {"a negative length", "__0_0.distcp", 50, -8, {"short-file"}},
      {"an offset of 2^62 and a length that overflows",
       "__0_0.distcp",
       huge,
       huge * 1,
       {"short-file"}},
      {"outside", "../secret", 0, 8, {"path-escape"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    builder.set_directory(directory);
    builder.add_tensor("w", Dtype::kFloat32, Extents{2});
    builder.add_chunk(Extents{0}, Extents{2},
                      ItemPlace{builder.file(one.file), one.offset, one.length});
    auto report = look(*builder.finish());
    CHECK(rules_above_info(report) == one.rules);
    if (!one.rules.empty()) CHECK(report.findings.front().subjects == Names{one.file});
  }
}

TEST_CASE("a tile without a storage record, and a record without a tile, are distinguished") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{2});
  builder.add_chunk(Extents{0}, Extents{2});
  builder.add_unclaimed_record({"w", Extents{1}, ItemPlace{builder.file("__0_0.distcp"), 0, 8}});
  auto report = look(*builder.finish());
  REQUIRE(report.findings.size() == 2);
  CHECK(report.findings[0].severity == Severity::kError);
  CHECK(report.findings[1].severity == Severity::kWarning);
  CHECK(report.findings[0].rule == "storage-dangling");
}

TEST_CASE("portability is information, and says who cannot open it") {
  static const Format kWithIndex = [] {
    Format format = test::kUnnamedFormat;
    format.rewrite = Rewrite::kIndex;
    return format;
  }();
  CheckpointBuilder builder;
  builder.set_format(kWithIndex);
  Provenance provenance;
  provenance.path_class = "pathlib._local.PosixPath";
  provenance.properties_arity = 6;
  builder.set_provenance(provenance);
  add(builder, "w", {2}, {{{0}, {2}}}, Dtype::kFloat8E8m0fnu);
  auto report = look(*builder.finish());
  CHECK(report.verdict == Verdict::kClean);
  REQUIRE(report.findings.size() == 2);
  CHECK(report.findings[0].cause.find("Python 3.12") != std::string::npos);
  CHECK(report.findings[0].cause.find("older than 2.15") != std::string::npos);
  REQUIRE(report.findings[0].remedy);
  CHECK(report.findings[0].remedy->kind == "rewrite-metadata");
  CHECK(report.findings[1].cause.find("2.7") != std::string::npos);
}

TEST_CASE(
    "the depth is headers up to 100,000 items and metadata above, and what is deeper is said") {
  CheckpointBuilder small;
  small.set_format(test::kUnnamedFormat);
  add(small, "w", {2}, {{{0}, {2}}});
  auto report = check(*small.finish(), {});
  REQUIRE(report);
  CHECK(report->depth == Depth::kHeaders);
  CHECK(report->deeper.find("--data") != std::string::npos);

  CheckpointBuilder large;

  large.set_format(test::kUnnamedFormat);
  large.add_tensor("w", Dtype::kInt8, Extents{100'001});
  for (std::int64_t i = 0; i < 100'001; ++i) large.add_chunk(Extents{i}, Extents{1});
  report = check(*large.finish(), {});
  REQUIRE(report);
  CHECK(report->depth == Depth::kMetadata);
}

TEST_CASE("a check that is cancelled says so") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "w", {2}, {{{0}, {2}}});
  Progress progress;
  progress.cancel();
  auto report = check(*builder.finish(), {}, &progress);
  REQUIRE_FALSE(report);
  CHECK(report.error().kind == ErrorKind::kCancelled);
}
