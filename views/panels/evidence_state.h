// Tables of a finding's evidence, and which of them are unfolded.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/rules/check.h"

namespace shw {

// The target of a click on evidence.
struct EvidencePlace {
  std::string tensor, file;  // one of them, or none
  std::uint64_t offset = 0;  // in the file
  bool is_none() const { return tensor.empty() && file.empty(); }
};

struct EvidenceRow {
  std::string name, detail;
  EvidencePlace place;         // of the name
  EvidencePlace detail_place;  // of the detail: "__0_0.distcp [12808, 14385)"
};

struct EvidenceTable {
  std::string label;
  std::vector<std::string> lists;  // labels of the evidence that the table shows
  std::vector<EvidenceRow> rows;
  bool has_plain_label = false;  // of a list of names alone: "tensors"
};

struct EvidenceState {
  std::weak_ptr<const CheckReport> report;  // of the finding that was shown last
  std::size_t finding = 0;
  std::set<std::size_t> unfolded;  // tables that list more rows
};

}  // namespace shw
