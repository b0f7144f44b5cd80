// A repair next to a hole that cannot be repaired: the repaired part is certified, and the hole is
// never called proved, nor broken if the source has it too.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/repair/against_source.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

bool says(const VerifyReport& report, const std::string& words) {
  return std::any_of(report.reasons.begin(), report.reasons.end(),
                     [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

// "exchanged" has two tiles at each other's places; rows [2:4] of "torn" were never saved.
struct Torn {
  TemporaryFolder folder;
  std::string path, reference, out;

  explicit Torn(bool has_hole = true)
      : path(folder / "torn"), reference(folder / "reference"), out(folder / "out") {
    const Extents shape = {8, 4};
    MadeTensor right = cut_in_rows("exchanged", shape, numbers_from(0, 32), 4);
    MadeTensor wrong = right;
    std::swap(wrong.chunks[1].values, wrong.chunks[2].values);
    MadeTensor whole_one = cut_in_rows("torn", shape, numbers_from(100, 32), 4);
    MadeTensor torn = whole_one;
    if (has_hole) torn.chunks.erase(torn.chunks.begin() + 1);
    write_checkpoint(path, {wrong, torn});
    write_checkpoint(reference, {right, whole_one});
  }
  void repair() {
    CheckReport report = held_against(path, reference, Depth::kData);
    REQUIRE(repaired_into(path, report, out) == out);
  }
};

}  // namespace

TEST_CASE(
    "a hole of the source next to what was mended is reported as undecided and never as broken") {
  Torn torn;
  torn.repair();
  CHECK(values_of(*opened(torn.out), "exchanged") == numbers_from(0, 32));
  auto alone = verify_repair(torn.out);
  REQUIRE(alone.has_value());
  auto beside = verified_against(torn.out, *opened(torn.path));
  REQUIRE(beside.has_value());
  for (const VerifyReport& report : {*alone, *beside}) {
    for (const std::string& reason : report.reasons) CAPTURE(reason);
    CHECK(report.outcome == VerifyReport::Outcome::kUndecided);
    CHECK(says(report, "torn: 8 of its 32 elements are in no chunk"));
    CHECK(report.lost == 8);
    CHECK(report.kept == 56);
  }
  // Every existing element was compared with the source.
  CHECK(beside->against->compared == 56);
}

TEST_CASE("without a hole the same repair is proved") {
  Torn whole_one(/*has_hole=*/false);
  whole_one.repair();
  auto report = verified_against(whole_one.out, *opened(whole_one.path));
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("a hole that came after the certificate is broken and so is a lie about one") {
  Torn torn(/*has_hole=*/false);
  torn.repair();
  // A result with a hole under the certificate of a result without one.
  Torn other;
  other.repair();
  std::filesystem::copy_file(torn.out + "/certificate.json", other.out + "/certificate.json",
                             std::filesystem::copy_options::overwrite_existing);
  auto report = verify_repair(other.out);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kBroken);
  CHECK(says(*report, "torn"));
}

TEST_CASE("an overlap of the source next to what was mended is undecided, as a hole is") {
  TemporaryFolder folder;
  const std::string path = folder / "tangled", out = folder / "out", reference = folder / "right";
  const Extents shape = {8, 4};
  MadeTensor right = cut_in_rows("exchanged", shape, numbers_from(0, 32), 4);
  MadeTensor wrong = right;
  std::swap(wrong.chunks[1].values, wrong.chunks[2].values);
  // Rows [1:4] instead of [2:4]: row 1 is saved twice with the same values.
  MadeTensor tangled = cut_in_rows("tangled", shape, numbers_from(100, 32), 4);
  tangled.chunks[1] = {{{1, 0}, {3, 4}}, {3, 4}, numbers_from(104, 12), tangled.chunks[1].writer};
  write_checkpoint(path, {wrong, tangled});
  write_checkpoint(reference, {right, tangled});
  CheckReport report = held_against(path, reference, Depth::kData);
  REQUIRE(repaired_into(path, report, out) == out);
  auto alone = verify_repair(out);
  REQUIRE(alone.has_value());
  for (const std::string& reason : alone->reasons) CAPTURE(reason);
  CHECK(alone->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(says(*alone, "tangled: two of its chunks hold the same elements"));
}

namespace {

// "right" is complete; "w" has four tiles of two rows and the tiles in `more`.
RepairResult metadata_written_anew(const TemporaryFolder& folder, std::vector<MadeChunk> more) {
  const Extents shape = {8, 4};
  MadeTensor w = cut_in_rows("w", shape, numbers_from(100, 32), 4);
  w.chunks.insert(w.chunks.end(), more.begin(), more.end());
  MadeTensor turned = cut_in_rows("turned", shape, numbers_from(0, 32), 4);
  write_checkpoint(folder / "ck", {turned, w});
  auto checkpoint = opened(folder / "ck");
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"turned"};
  WrongBoxes relabelled{*checkpoint->find("turned"), shape, {}};
  for (std::int64_t row : {6, 4, 2, 0}) relabelled.boxes.push_back({{row, 0}, {2, 4}});
  finding.diagnoses = {relabelled};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  auto result = apply_plan(*checkpoint, *plan, {folder / "out"});
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

TensorCertificate certified(const std::string& folder, std::string_view fqn) {
  auto certificate = certificate_from_json(contents(folder + "/certificate.json"), "certificate");
  REQUIRE(certificate.has_value());
  for (const TensorCertificate& tensor : certificate->tensors) {
    if (tensor.fqn == fqn) return tensor;
  }
  FAIL("it is not certified");
  return {};
}

}  // namespace

TEST_CASE("elements that two tiles hold or that a tile outside claims are not certified as kept") {
  struct Case {
    MadeChunk more;
    std::int64_t damaged;
  };
  const Case cases[] = {
      {{{{1, 0}, {2, 4}}, {2, 4}, numbers_from(900, 8), 0}, 8},   // over two others
      {{{{2, 0}, {2, 4}}, {2, 4}, numbers_from(900, 8), 0}, 8},   // one box, other bytes
      {{{{7, 0}, {2, 4}}, {2, 4}, numbers_from(900, 8), 0}, 4},   // half of it is outside
      {{{{8, 0}, {2, 4}}, {2, 4}, numbers_from(900, 8), 0}, 0}};  // all of it
  for (const Case& one : cases) {
    CAPTURE(to_text(one.more.box));
    TemporaryFolder folder;
    const RepairResult result = metadata_written_anew(folder, {one.more});
    CHECK_FALSE(result.lossless);
    CHECK(result.damage.contains("w"));
    const TensorCertificate w = certified(folder / "out", "w");
    CHECK(w.damaged == one.damaged);
    CHECK(w.kept == 32 - one.damaged);
    CHECK_FALSE(w.damage.empty());
    CHECK(certified(folder / "out", "turned").kept == 32);
    auto alone = verify_repair(folder / "out");
    auto beside = verified_against(folder / "out", *opened(folder / "ck"));
    REQUIRE(alone.has_value());
    REQUIRE(beside.has_value());
    for (const VerifyReport& report : {*alone, *beside}) {
      for (const std::string& reason : report.reasons) CAPTURE(reason);
      CHECK(report.outcome == VerifyReport::Outcome::kUndecided);
      CHECK(report.damaged == one.damaged);
    }
    CHECK(beside->against->compared == 72);
  }
}

TEST_CASE("a tile that is listed twice with the same bytes is kept and proved") {
  TemporaryFolder folder;
  const RepairResult result =
      metadata_written_anew(folder, {{{{2, 0}, {2, 4}}, {2, 4}, numbers_from(108, 8), 1}});
  CHECK(result.lossless);
  CHECK(certified(folder / "out", "w").kept == 32);
  // Its elements are compared once for each tile that has them.
  auto result_now = opened(folder / "out");
  auto source = opened(folder / "ck");
  auto beside = verify_repair(*result_now, nullptr, source);
  if (!beside) FAIL(beside.error().message);
  for (const std::string& reason : beside->reasons) CAPTURE(reason);
  CHECK(beside->outcome == VerifyReport::Outcome::kProved);
  CHECK(beside->against->compared == 72);
}
