// Tensors and files that each finding affects: its subjects, and for a file the tensors in it.
#include "core/rules/damage.h"

#include <doctest/doctest.h>

#include "core/model/builder.h"

using namespace shw;

namespace {

Finding about_subject(const char* subject, Severity severity) {
  Finding finding;
  finding.rule = "missing-file";
  finding.severity = severity;
  finding.subjects = {subject};
  return finding;
}

// "a" in a file of 8 bytes, "b" in a missing file, "c" in both.
std::shared_ptr<const Checkpoint> three_tensors() {
  CheckpointBuilder builder;
  builder.set_directory(memory_directory("m", {{"there", Bytes(8)}}));
  const FileId there = builder.file("there"), gone = builder.file("gone");
  builder.add_tensor("a", Dtype::kUint8, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, {there, 0, 4});
  builder.add_tensor("b", Dtype::kUint8, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, {gone, 0, 4});
  builder.add_tensor("c", Dtype::kUint8, Extents{8});
  builder.add_chunk(Extents{0}, Extents{4}, {there, 4, 4});
  builder.add_chunk(Extents{4}, Extents{4}, {gone, 4, 4});
  return builder.finish();
}

}  // namespace

TEST_CASE("damage: a finding about a missing file marks the tensors that have items in it") {
  auto checkpoint = three_tensors();
  const std::vector<Finding> findings = {about_subject("gone", Severity::kError)};
  const DamageMarks marks = damage_marks(*checkpoint, findings);
  CHECK(marks.tensors == std::vector<std::uint8_t>{0, 3, 3});
  const AffectedCounts counts = count_affected_by_findings(*checkpoint, findings);
  CHECK(counts.tensors == 2);
  CHECK(counts.files == 1);
  CHECK(affected_counts_text(counts) == "1 cause, 2 tensors, 1 file");
}

TEST_CASE("damage: an error in a file that can be read marks all tensors in it, a warning none") {
  auto checkpoint = three_tensors();
  CHECK(damage_marks(*checkpoint, {about_subject("there", Severity::kError)}).tensors ==
        std::vector<std::uint8_t>{3, 0, 3});
  CHECK(damage_marks(*checkpoint, {about_subject("there", Severity::kWarning)}).tensors ==
        std::vector<std::uint8_t>{0, 0, 0});
}

TEST_CASE("damage: a tensor in two findings counts once") {
  auto checkpoint = three_tensors();
  Finding gone = about_subject("gone", Severity::kError),
          gap = about_subject("c", Severity::kError);
  write_unreadable(8, 2, gone);
  write_unreadable(2, 1, gap);
  const Unreadable unreadable = unreadable_in(*checkpoint, {gone, gap});
  CHECK(unreadable.elements == 10);
  CHECK(unreadable.tensors == 2);
}
