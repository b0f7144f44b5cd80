// Finds the tensors and files that each finding affects. Every count, mark, list and filter uses
// this, so that none is more optimistic than the findings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "core/rules/check.h"
#include "core/rules/unreadable.h"

namespace shw {

// Finds the tensors and files of findings; contents of files are indexed at the first finding that
// names a file.
class FindingPlaces {
 public:
  explicit FindingPlaces(const Checkpoint& checkpoint);
  // The finding's subjects that are tensors. For a file: the tensors whose items there cannot be
  // read; for an error in a readable file, all tensors in it. Sorted, each once.
  std::vector<TensorId> tensors(const Finding& finding);
  // The finding's subjects that are files, and the files of unreadable items of subject tensors.
  // Sorted, each once.
  std::vector<FileId> files(const Finding& finding);

 private:
  void index_contents();

  const Checkpoint& checkpoint_;
  std::map<std::string_view, FileId, std::less<>> by_path_;
  bool is_indexed_ = false;
  std::vector<std::vector<TensorId>> in_file_;         // with an item in each file
  std::vector<std::vector<TensorId>> unreadable_in_;   // with an unreadable item in it
  std::vector<std::vector<FileId>> unreadable_files_;  // by tensor: files of unreadable items
};

// Worst severity + 1 by TensorId and by FileId; 0: no finding.
struct DamageMarks {
  std::vector<std::uint8_t> tensors, files;
};
DamageMarks damage_marks(const Checkpoint& checkpoint, const std::vector<Finding>& findings);

// Distinct tensors, files and other entries that findings above info are about.
struct AffectedCounts {
  std::size_t causes = 0, tensors = 0, files = 0, objects = 0;
};
AffectedCounts count_affected_by_findings(const Checkpoint& checkpoint,
                                          const std::vector<Finding>& findings);
// "2 causes, 110 tensors, 1 file"; empty if nothing is above info.
std::string affected_counts_text(const AffectedCounts& counts);

// "Will not load: 2 causes, 110 tensors, 1 file": the verdict as every face and list shows it.
std::string check_headline(const Checkpoint& checkpoint, const CheckReport& report,
                           const AffectedCounts& counts);

// Like unreadable_in(findings), with each tensor counted once.
Unreadable unreadable_in(const Checkpoint& checkpoint, const std::vector<Finding>& findings);

}  // namespace shw
