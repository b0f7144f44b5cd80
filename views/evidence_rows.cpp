#include "views/evidence_rows.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "core/model/evidence.h"
#include "views/text.h"

namespace shw {
namespace {

// Finds tensors and files that the texts of a finding name.
class Names {
 public:
  explicit Names(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const FileRow& file : checkpoint.files()) files_.insert(file.path);
  }
  EvidencePlace place_of(std::string_view name) const {
    if (checkpoint_.find(name)) return {std::string(name), {}, 0};
    if (files_.contains(name)) return {{}, std::string(name), 0};
    return {};
  }
  // "NAME: detail" or "FILE detail"; without a known name the text up to the first ": ".
  EvidenceRow row_of(std::string_view text) const {
    if (auto place = place_of(text); !place.is_none()) return {std::string(text), {}, place, {}};
    for (std::string_view between : {": ", " "}) {
      for (std::size_t at = text.find(between); at != text.npos; at = text.find(between, at + 1)) {
        auto place = place_of(text.substr(0, at));
        if (place.is_none()) continue;
        const std::string_view detail = text.substr(at + between.size());
        return {std::string(text.substr(0, at)), std::string(detail), std::move(place),
                place_in(detail)};
      }
    }
    const std::size_t colon = text.find(": ");
    if (colon == text.npos) return {std::string(text), {}, {}, {}};
    const std::string_view detail = text.substr(colon + 2);
    return {std::string(text.substr(0, colon)), std::string(detail), {}, place_in(detail)};
  }

 private:
  // The place of "FILE [12808, 14385)".
  EvidencePlace place_in(std::string_view detail) const {
    const std::size_t at = detail.rfind(" [");
    if (at == detail.npos || !files_.contains(detail.substr(0, at))) return {};
    EvidencePlace place{{}, std::string(detail.substr(0, at)), 0};
    const std::string_view digits = detail.substr(at + 2);
    std::from_chars(digits.data(), digits.data() + digits.size(), place.offset);
    return place;
  }

  const Checkpoint& checkpoint_;
  std::unordered_set<std::string_view> files_;
};

bool have_same_names(const std::vector<EvidenceRow>& a, const std::vector<EvidenceRow>& b) {
  return std::ranges::equal(a, b, {}, &EvidenceRow::name, &EvidenceRow::name);
}

bool has_details(const EvidenceRow& row) {
  return !row.detail.empty();
}

// Appends the details of `rows` to those of the table.
void merge(EvidenceTable& table, std::string_view label, std::vector<EvidenceRow> rows) {
  // The list of bare names has the label that fits all: "tensors".
  if (!table.has_plain_label && std::ranges::none_of(rows, has_details)) {
    table.label = label;
    table.has_plain_label = true;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EvidenceRow& row = table.rows[i];
    if (!row.detail.empty() && !rows[i].detail.empty()) row.detail += ", ";
    row.detail += rows[i].detail;
    if (row.detail_place.is_none()) row.detail_place = std::move(rows[i].detail_place);
  }
  table.lists.emplace_back(label);
}

// Adds the evidence list "boxes", whose entries belong to the names in "boxes_in".
void add_boxes(const Finding& finding, EvidenceTable& table) {
  for (const auto& [label, value] : finding.evidence) {
    const auto* boxes = std::get_if<std::vector<Box>>(&value);
    if (boxes == nullptr || boxes->size() != table.rows.size() ||
        std::ranges::find(table.lists, label + "_in") == table.lists.end())
      continue;
    for (std::size_t i = 0; i < boxes->size(); ++i) {
      EvidenceRow& row = table.rows[i];
      row.detail += (row.detail.empty() ? "" : ", ") + to_text((*boxes)[i]);
    }
    table.lists.emplace_back(label);
  }
}

}  // namespace

std::vector<EvidenceTable> evidence_tables(const Checkpoint& checkpoint, const Finding& finding) {
  std::vector<EvidenceTable> tables;
  const Names names(checkpoint);
  for (const auto& [label, value] : finding.evidence) {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr || list->empty()) continue;
    std::vector<EvidenceRow> rows;
    for (const std::string& text : *list) rows.push_back(names.row_of(text));
    const auto leads = [](const EvidenceRow& row) {
      return !row.place.is_none() || !row.detail_place.is_none();
    };
    // Short lists without a place, such as ranks, are in one line.
    if (std::ranges::none_of(rows, leads)) continue;
    auto same = std::ranges::find_if(
        tables, [&](const EvidenceTable& table) { return have_same_names(table.rows, rows); });
    if (same != tables.end())
      merge(*same, label, std::move(rows));
    else
      tables.push_back({label, {label}, std::move(rows), false});
  }
  for (EvidenceTable& table : tables) add_boxes(finding, table);
  return tables;
}

}  // namespace shw
