// Names that are in only one part of the metadata: in the paths, or in the storage records.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_support.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"
#include "core/transform/target_state.h"

using namespace shw;
using namespace shw::test;

namespace {

// Two tensors; "w" lacks a tile in its list, and "b" its entry.
void write_without_entry(const std::string& path) {
  write_checkpoint(
      path,
      {{"w",
        {4, 2},
        {{{{0, 0}, {2, 2}}, {2, 2}, {1, 2, 3, 4}, 0}, {{{2, 0}, {2, 2}}, {2, 2}, {5, 6, 7, 8}, 1}}},
       {"b", {2}, {{{{0}, {2}}, {2}, {9, 10}, 0}}}});
  DcpMetadata metadata = metadata_of(*opened(path));
  REQUIRE(metadata.tensors.size() == 2);
  DcpTensor& w = metadata.tensors[0];
  const DcpTensor b = metadata.tensors[1];
  metadata.unclaimed_records = {{"w", w.chunks[1].offsets, w.chunks[1].item},
                                {"b", b.chunks[0].offsets, b.chunks[0].item}};
  w.chunks.pop_back();
  metadata.tensors.pop_back();
  metadata.only_in_planner = {"b"};
  MemorySink sink;
  REQUIRE(write_dcp_metadata(metadata, sink));
  std::filesystem::remove(path + "/.metadata");
  shw::put(path + "/.metadata",
           {reinterpret_cast<const char*>(sink.bytes.data()), sink.bytes.size()});
}

bool names_b(const Checkpoint& checkpoint, std::string_view rule) {
  auto report = check(checkpoint, {});
  REQUIRE(report.has_value());
  CHECK(report->verdict == Verdict::kFindings);
  return std::any_of(report->findings.begin(), report->findings.end(), [&](const Finding& finding) {
    return finding.rule == rule && finding.severity == Severity::kWarning &&
           finding.subjects == std::vector<std::string>{"b"};
  });
}

}  // namespace

TEST_CASE("a name that only planner_data has is reported, for somebody wanted to save it") {
  TemporaryFolder folder;
  write_without_entry(folder / "ckpt");
  CHECK(names_b(*opened(folder / "ckpt"), "planner-keys"));
}

TEST_CASE("a repair keeps the record and the name of an entry that is gone") {
  TemporaryFolder folder;
  write_without_entry(folder / "ckpt");
  auto broken = opened(folder / "ckpt");
  REQUIRE(broken->unclaimed_records().size() == 2);
  auto report = check(*broken, {});
  REQUIRE(report.has_value());
  auto plan = make_plan(*broken, *report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  auto repaired = apply_plan(*broken, *plan, {folder / "out"});
  if (!repaired) FAIL(repaired.error().message);
  auto result = opened(folder / "out");
  CHECK(values_of(*result, "w") == Values{1, 2, 3, 4, 5, 6, 7, 8});
  REQUIRE(result->unclaimed_records().size() == 1);
  CHECK(result->unclaimed_records()[0].fqn == "b");
  CHECK(result->unclaimed_records()[0].offsets == Extents{0});
  CHECK(names_b(*result, "planner-keys"));
  CHECK(names_b(*result, "storage-dangling"));
}

TEST_CASE("nothing is made of a checkpoint in silence about an entry whose record is left") {
  TemporaryFolder folder;
  write_without_entry(folder / "ckpt");
  TargetState all = target_state_of(opened(folder / "ckpt"));
  CHECK(all.nowhere.contains("b"));
  CHECK_FALSE(all.nowhere.contains("w"));
}
