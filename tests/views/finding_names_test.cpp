// Findings by the tensors and files that they name, next to a search through all subjects.
#include "views/finding_names.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"

using namespace shw;

namespace {

bool has_subject(const Finding& finding, std::string_view name) {
  return std::ranges::find(finding.subjects, name) != finding.subjects.end();
}

}  // namespace

TEST_CASE("finding names: each tensor and file has exactly the findings with it as a subject") {
  for (const auto& snapshot : {make::damaged(), make::demo(), make::healthy()}) {
    const Checkpoint& c = *snapshot->checkpoint;
    std::vector<Finding> findings = snapshot->report->findings;
    Finding of_all;
    of_all.subjects.emplace_back("no such name");
    for (TensorId tensor : c.tensors()) of_all.subjects.emplace_back(c.fqn(tensor));
    if (c.file_count() > 0) of_all.subjects.push_back(c.file(FileId{0}).path);
    of_all.subjects.push_back(of_all.subjects.back());  // named twice
    findings.push_back(of_all);
    const FindingNames names(c, findings);
    for (TensorId tensor : c.tensors()) {
      std::vector<std::uint32_t> wanted;
      for (std::uint32_t f = 0; f < findings.size(); ++f) {
        const bool is_named = has_subject(findings[f], c.fqn(tensor));
        if (is_named) wanted.push_back(f);
        CHECK(names.names(tensor, f) == is_named);
      }
      CHECK(std::ranges::equal(names.of(tensor), wanted));
      // Those of its files come in the same order.
      std::vector<std::uint32_t> about = wanted;
      for (ChunkId chunk : c.chunks(tensor)) {
        const auto item = c.item(chunk);
        if (!item || item->file == FileId::kNone) continue;
        for (std::uint32_t f = 0; f < findings.size(); ++f) {
          if (has_subject(findings[f], c.file(item->file).path)) about.push_back(f);
        }
      }
      std::ranges::sort(about);
      about.erase(std::unique(about.begin(), about.end()), about.end());
      CHECK(names.about(c, tensor) == about);
    }
  }
  CHECK(FindingNames().of(TensorId{3}).empty());
  CHECK_FALSE(FindingNames().names(TensorId{3}, 0));
}
