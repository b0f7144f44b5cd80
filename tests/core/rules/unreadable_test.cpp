// Summaries are never more optimistic than a finding: for every checkpoint in tests/data, intact
// and with its first data file missing or truncated.
#include "core/rules/unreadable.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/report/listing.h"
#include "core/report/text.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

Finding finding_of(Severity severity, std::optional<bool> lossless) {
  Finding finding;
  finding.rule = "shape-mismatch";
  finding.severity = severity;
  if (lossless) finding.remedy = Remedy{"relabel", *lossless, "Relabel it."};
  return finding;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// False if it cannot be opened.
bool check_summary(const std::string& path) {
  CAPTURE(path);
  auto opened = open_checkpoint(path);
  if (!opened) return false;
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  bool all_lossless = true;
  for (const Finding& finding : report->findings) {
    if (finding.severity == Severity::kInfo) continue;
    all_lossless = all_lossless && finding.remedy && finding.remedy->lossless;
  }
  const Unreadable gone = unreadable_in(report->findings);
  const std::string brief = lost_data_text(report->findings);
  if (!all_lossless || !gone.is_none()) CHECK_FALSE(says(brief, "Nothing is lost"));
  auto plan = make_plan(**opened, *report, {});
  REQUIRE(plan.has_value());
  const std::string planned = plan_to_text(*plan, {}),
                    checked = check_to_text(**opened, *report, {});
  if (!plan->undecided.empty()) {
    CHECK_FALSE(says(planned, "nothing is lost"));
    CHECK(planned.find("not mended") < planned.find("   for "));
  }
  if (gone.is_none()) return true;
  CHECK(says(brief, unreadable_text(gone)));
  CHECK(says(checked, unreadable_text(gone)));
  return true;
}

}  // namespace

TEST_CASE("what is lost: nothing only where every finding has a remedy that loses nothing") {
  CHECK(lost_data_text({}) == "Nothing is lost.");
  CHECK(lost_data_text({finding_of(Severity::kError, true)}) == "Nothing is lost.");
  CHECK(lost_data_text({finding_of(Severity::kInfo, std::nullopt)}) == "Nothing is lost.");
  CHECK(says(lost_data_text({finding_of(Severity::kError, false)}), "Some data is lost"));
  CHECK(says(lost_data_text({finding_of(Severity::kError, std::nullopt)}), "no safe remedy"));
  const std::string mixed = lost_data_text(
      {finding_of(Severity::kError, true), finding_of(Severity::kError, std::nullopt)});
  CHECK_FALSE(says(mixed, "Nothing is lost"));
  CHECK(says(mixed, "1 finding has no safe remedy"));
  Finding gone = finding_of(Severity::kError, std::nullopt);
  write_unreadable(1024, 3, gone);
  CHECK(says(lost_data_text({gone}), "1,024 elements of 3 tensors cannot be read"));
}

TEST_CASE("what is lost: no summary of a real checkpoint is more hopeful than its findings") {
  std::size_t checked = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    checked += check_summary(folder + "/ckpt") ? 1 : 0;
    for (const bool is_cut : {false, true}) {
      TemporaryFolder copy;
      std::error_code error;
      fs::copy(folder + "/ckpt", copy / "c", fs::copy_options::recursive, error);
      if (error) continue;
      for (const auto& entry : fs::directory_iterator(copy / "c")) {
        if (!entry.is_regular_file() || entry.path().extension() != ".distcp" ||
            entry.file_size() < 8)
          continue;
        if (is_cut)
          fs::resize_file(entry.path(), entry.file_size() / 2);
        else
          fs::remove(entry.path());
        break;
      }
      checked += check_summary(copy / "c") ? 1 : 0;
    }
  }
  CHECK(checked >= 200);
}
