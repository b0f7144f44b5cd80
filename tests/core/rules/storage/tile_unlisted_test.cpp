// Tiles that the metadata does not list although their records and bytes exist: listed again if
// there is only one possibility.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "core/model/builder.h"
#include "core/model/evidence.h"
#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

const Values kFirst = {1, 2, 3, 4}, kSecond = {5, 6, 7, 8}, kOther = {9, 10};

void write_sound(const std::string& path) {
  write_checkpoint(
      path, {{"w",
              {4, 2},
              {{{{0, 0}, {2, 2}}, {2, 2}, kFirst, 0}, {{{2, 0}, {2, 2}}, {2, 2}, kSecond, 1}}},
             {"b", {2}, {{{{0}, {2}}, {2}, kOther, 0}}}});
}

// The change to a chunk: it stays, is removed from the list, or gets another box.
struct Bent {
  bool is_gone = false;
  std::optional<Box> box = {};  // its box in the list instead, without a record
};
using Bend = std::function<Bent(std::string_view fqn, const Box& box)>;
using More = std::function<void(CheckpointBuilder&, const Checkpoint&)>;

// The same files with a modified list; the records stay.
std::shared_ptr<const Checkpoint> bent_list(const Checkpoint& sound, const Bend& bend,
                                            const More& more = {}) {
  CheckpointBuilder builder;
  builder.set_format(sound.format());
  builder.set_directory(sound.directory());
  builder.set_provenance(sound.provenance());
  for (TensorId tensor : sound.tensors()) {
    std::string fqn(sound.fqn(tensor));
    builder.add_tensor(fqn, sound.dtype(tensor), sound.shape(tensor));
    for (ChunkId chunk : sound.chunks(tensor)) {
      const Box box{copy_of(sound.offsets(chunk)), copy_of(sound.sizes(chunk))};
      ItemPlace item = *sound.item(chunk);
      item.file = builder.file(sound.file(item.file).path);
      const Bent bent = bend(fqn, box);
      if (!bent.is_gone && !bent.box) {
        builder.add_chunk(box.offsets, box.sizes, item);
        continue;
      }
      if (bent.box) builder.add_chunk(bent.box->offsets, bent.box->sizes);
      builder.add_unclaimed_record({fqn, box.offsets, item});
    }
  }
  if (more) more(builder, sound);
  return builder.finish();
}

Bend gone(std::string fqn, Extents offsets) {
  return [fqn = std::move(fqn), offsets = std::move(offsets)](std::string_view tensor,
                                                              const Box& box) {
    return Bent{tensor == fqn && box.offsets == offsets};
  };
}

CheckReport report_at(const Checkpoint& checkpoint, Depth depth = Depth::kHeaders) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

const Finding* find_rule_in(const CheckReport& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

// Repairs by a plan that went through JSON, proves the result against the source, and expects all
// elements back.
void expect_all_back(const Checkpoint& broken, const CheckReport& report, const std::string& out) {
  auto plan = make_plan(broken, report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->lossless);
  CHECK(plan->undecided.empty());
  auto kept = plan_from_json(broken, plan_to_json(broken, *plan), "plan.json");
  if (!kept) FAIL(kept.error().message);
  auto repaired = apply_plan(broken, *kept, {out});
  if (!repaired) FAIL(repaired.error().message);
  auto verified = verified_against(out, broken);
  if (!verified) FAIL(verified.error().message);
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
  auto result = opened(out);
  CHECK(values_of(*result, "w") == Values{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(values_of(*result, "b") == kOther);
  CHECK(report_at(*result, Depth::kData).verdict == Verdict::kClean);
}

// The reason why a finding was not repaired.
std::string why_not_put_back(const Checkpoint& broken) {
  CheckReport report = report_at(broken);
  CHECK(report.verdict == Verdict::kFindings);
  CHECK(find_rule_in(report, "tile-unlisted") == nullptr);
  const Finding* finding = find_rule_in(report, "storage-dangling");
  REQUIRE(finding != nullptr);
  CHECK_FALSE(finding->remedy.has_value());
  auto plan = make_plan(broken, report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->tensors.empty());
  return report.findings.empty() ? "" : finding->cause;
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a tile that is gone from the list is listed again without a loss") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto broken = bent_list(*opened(folder / "ckpt"), gone("w", {2, 0}));
  CheckReport report = report_at(*broken);
  const Finding* finding = find_rule_in(report, "tile-unlisted");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->consequence == Consequence::kSilentlyWrong);
  CHECK(finding->subjects == std::vector<std::string>{"w"});
  CHECK(says(finding->cause, "__1_0.distcp"));
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->lossless);
  REQUIRE(find_rule_in(report, "coverage-gap") != nullptr);
  CHECK(find_rule_in(report, "coverage-gap")->severity == Severity::kInfo);
  CHECK(find_rule_in(report, "storage-dangling") == nullptr);
  expect_all_back(*broken, report, folder / "out");
}

TEST_CASE("tile-unlisted: each box names its tensor") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  const CheckReport report =
      report_at(*bent_list(*opened(folder / "ckpt"), [](std::string_view fqn, const Box& box) {
        return Bent{fqn == "b" || box.offsets[0] == 2};
      }));
  const Finding* finding = find_rule_in(report, "tile-unlisted");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects.size() == 2);
  const auto* boxes = find_evidence<std::vector<Box>>(*finding, "boxes");
  const auto* inside = find_evidence<std::vector<std::string>>(*finding, "boxes_in");
  REQUIRE(boxes != nullptr);
  REQUIRE(inside != nullptr);
  REQUIRE(boxes->size() == 2);
  REQUIRE(inside->size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK((*boxes)[i] == ((*inside)[i] == "w" ? Box{{2, 0}, {2, 2}} : Box{{0}, {2}}));
}

TEST_CASE("a tensor whose list is empty gets its only tile back") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto broken = bent_list(*opened(folder / "ckpt"), gone("b", {0}));
  CheckReport report = report_at(*broken);
  REQUIRE(find_rule_in(report, "tile-unlisted") != nullptr);
  expect_all_back(*broken, report, folder / "out");
}

TEST_CASE("a tile that is listed under another box than its record is put where that says") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto broken = bent_list(*opened(folder / "ckpt"), [](std::string_view fqn, const Box& box) {
    return fqn == "w" && box.offsets[0] == 2 ? Bent{false, Box{{1, 0}, {2, 2}}} : Bent{};
  });
  CheckReport report = report_at(*broken);
  const Finding* finding = find_rule_in(report, "storage-dangling");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->consequence == Consequence::kWillNotLoad);
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->lossless);
  expect_all_back(*broken, report, folder / "out");
}

TEST_CASE("where no header is read the tile is only reported to be missing") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto broken = bent_list(*opened(folder / "ckpt"), gone("w", {2, 0}));
  CheckReport report = report_at(*broken, Depth::kMetadata);
  CHECK(find_rule_in(report, "tile-unlisted") == nullptr);
  REQUIRE(find_rule_in(report, "coverage-gap") != nullptr);
  CHECK(find_rule_in(report, "coverage-gap")->severity == Severity::kError);
  CHECK(find_rule_in(report, "storage-dangling") != nullptr);
}

TEST_CASE("of two records for one place none is put back") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto sound = opened(folder / "ckpt");
  // The first tile's item is listed at the second tile's offsets, next to the second's own.
  auto broken = bent_list(
      *sound, [](std::string_view fqn, const Box&) { return Bent{fqn == "w"}; },
      [](CheckpointBuilder& builder, const Checkpoint& all) {
        ItemPlace item = *all.item(all.chunks(*all.find("b"))[0]);
        item.file = builder.file(all.file(item.file).path);
        builder.add_unclaimed_record({"w", Extents{2, 0}, item});
      });
  CHECK(says(why_not_put_back(*broken), "They are not restored"));
}

TEST_CASE("a record whose item does not fill the hole is not put back") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto sound = opened(folder / "ckpt");
  CheckpointBuilder builder;
  builder.set_format(sound->format());
  builder.set_directory(sound->directory());
  builder.add_tensor("w", Dtype::kFloat32, Extents{4, 2});
  ItemPlace first = *sound->item(ChunkId{0}), second = *sound->item(ChunkId{1});
  first.file = builder.file(sound->file(first.file).path);
  second.file = builder.file(sound->file(second.file).path);
  builder.add_chunk(Extents{0, 0}, Extents{2, 2}, first);
  builder.add_unclaimed_record({"w", Extents{1, 0}, second});
  CHECK(says(why_not_put_back(*builder.finish()), "would not cover [4, 2] exactly once"));
}

TEST_CASE("a record whose bytes another one claims is not put back") {
  TemporaryFolder folder;
  write_sound(folder / "ckpt");
  auto sound = opened(folder / "ckpt");
  CheckpointBuilder builder;
  builder.set_format(sound->format());
  builder.set_directory(sound->directory());
  builder.add_tensor("w", Dtype::kFloat32, Extents{4, 2});
  ItemPlace first = *sound->item(ChunkId{0});
  first.file = builder.file(sound->file(first.file).path);
  builder.add_chunk(Extents{0, 0}, Extents{2, 2}, first);
  builder.add_unclaimed_record({"w", Extents{2, 0}, first});
  CHECK(says(why_not_put_back(*builder.finish()), "another record uses"));
}

TEST_CASE("a plan that keeps a tile without bytes in a tensor that it mends is refused") {
  TemporaryFolder folder;
  write_sound(folder / "sound");
  auto sound = opened(folder / "sound");
  auto broken = bent_list(*sound, [](std::string_view fqn, const Box& box) {
    const bool is_moved = fqn == "w" && box.offsets == Extents{2, 0};
    return is_moved ? Bent{false, Box{{2, 0}, {2, 1}}} : Bent{};
  });
  auto plan = make_plan(*broken, report_at(*broken), {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  PlannedTensor& planned = plan->tensors.front();
  planned.chunks.clear();
  for (ChunkId chunk : broken->chunks(planned.tensor)) {
    PlannedChunk kept;
    kept.box = {copy_of(broken->offsets(chunk)), copy_of(broken->sizes(chunk))};
    kept.item = chunk;
    planned.chunks.push_back(std::move(kept));
  }
  planned.lost_elements = 2;
  auto repaired = apply_plan(*broken, *plan, {folder / "out"});
  REQUIRE_FALSE(repaired.has_value());
  CHECK(says(repaired.error().message, "a chunk that it needs has no stored item"));
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}
