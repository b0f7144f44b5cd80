// A repair beside a hole that nothing can mend: what was mended is as it was certified, and of the
// hole nothing is ever called proved, nor broken where it is the source's own.
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

// "exchanged" has two tiles at each other's places; of "torn" rows [2:4] were never saved.
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

TEST_CASE("a hole of the source beside what was mended is told as undecided and never as broken") {
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
    CHECK(says(report, "torn: 8 of its 32 elements lie in no tile"));
    CHECK(report.lost == 8);
    CHECK(report.kept == 56);
  }
  // Every element that is there was held against the source.
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
  // The result of one with a hole under the certificate of one without.
  Torn other;
  other.repair();
  std::filesystem::copy_file(torn.out + "/certificate.json", other.out + "/certificate.json",
                             std::filesystem::copy_options::overwrite_existing);
  auto report = verify_repair(other.out);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kBroken);
  CHECK(says(*report, "torn"));
}

TEST_CASE("an overlap of the source beside what was mended is undecided, as a hole is") {
  TemporaryFolder folder;
  const std::string path = folder / "tangled", out = folder / "out", reference = folder / "right";
  const Extents shape = {8, 4};
  MadeTensor right = cut_in_rows("exchanged", shape, numbers_from(0, 32), 4);
  MadeTensor wrong = right;
  std::swap(wrong.chunks[1].values, wrong.chunks[2].values);
  // Rows [1:4] instead of [2:4]: row 1 is there twice, and the same.
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
  CHECK(says(*alone, "tangled: two of its tiles hold the same elements"));
}
