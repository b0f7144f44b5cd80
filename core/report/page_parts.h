// What the Markdown and the HTML report have in common: the words, the caps, and which tilings are
// drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/report.h"
#include "core/tiles/slice.h"

namespace shw {

// A page stays readable, and below 5 MB for 92,000 tensors, because lists end here and say so.
inline constexpr std::size_t kMostFindings = 50;
inline constexpr std::size_t kMostSubjects = 40;
inline constexpr std::size_t kMostRows = 1'000;      // of the list of tensors
inline constexpr std::size_t kMostPictured = 4;      // findings with pictures
inline constexpr std::size_t kMostLetters = 400;     // of a name or a value
inline constexpr std::size_t kMostDrawnTiles = 600;  // in one picture

// "Will not load: 1 cause, 3 tensors"
std::string verdict_sentence(const ReportInput& input);
std::string_view word_of(Severity severity);  // "error", "warning", "note"
// "3 tensors", "1 file"
std::string subjects_counted(const Checkpoint& checkpoint, const Finding& finding);
std::string label_of(std::string_view key);  // "tile count" for "tile_count"
std::string evidence_text(const EvidenceValue& value);
// ", known before" where the baseline has it.
std::string known_words(const ReportInput& input, const Finding& finding);
// A line about the baseline and one a policy; empty where nothing was asked.
std::string asked_text(const ReportInput& input);
// What stands where elements of a planned tensor are lost: "zeros", "the cast of ...", "... of
// CHECKPOINT".
std::string fill_text(const PlannedTensor& tensor);
// At most kMostLetters of it, cut at a whole UTF-8 letter, and then "...".
std::string clipped(std::string_view text);
// " and 160 more", or nothing.
std::string and_more(std::size_t count, std::size_t shown);

// The tensor whose picture explains a finding: its first subject that the checkpoint has.
std::optional<TensorId> pictured(const Checkpoint& checkpoint, const Finding& finding);

struct TensorPictures {
  TensorId tensor{};
  LaidTensor saved;
  std::optional<LaidTensor> expected, after;
  std::vector<LaidTile> lost;  // boxes of `after` whose bytes are gone
  Slice slice;
  std::optional<Slice> overview;
};
TensorPictures pictures_of(const ReportInput& input, TensorId tensor);

// Tensors with findings first, then the others as recorded; at most kMostRows.
std::vector<TensorId> listed_tensors(const ReportInput& input);

struct PlanSum {
  std::uint64_t bytes_moved = 0;
  std::int64_t elements_lost = 0;
};
PlanSum sum_of(const Plan& plan);
// It may still leave behind what other ranks had under the name of an entry.
bool loses_no_element(const Plan& plan);

}  // namespace shw
