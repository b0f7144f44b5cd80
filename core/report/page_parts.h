// Texts and limits shared by the Markdown and HTML reports, and the choice of tilings to
// draw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/report.h"
#include "core/tiles/slice.h"

namespace shw {

// Limits keep pages readable, and below 5 MB for 92,000 tensors; truncated lists say so.
inline constexpr std::size_t kMaxFindings = 50;
inline constexpr std::size_t kMaxSubjects = 40;
inline constexpr std::size_t kMaxRows = 1'000;      // of the tensor list
inline constexpr std::size_t kMaxPictured = 4;      // findings with pictures
inline constexpr std::size_t kMaxViews = 20;        // that were saved
inline constexpr std::size_t kMaxLetters = 400;     // of a name or a value
inline constexpr std::size_t kMaxDrawnTiles = 600;  // in one picture

// "Will not load: 1 cause, 3 tensors"
std::string verdict_sentence(const ReportInput& input);
std::string_view word_of(Severity severity);  // "error", "warning", "note"
// "3 tensors", "1 file"
std::string subjects_counted(const Checkpoint& checkpoint, const Finding& finding);
std::string label_of(std::string_view key);  // "tile count" for "tile_count"
std::string evidence_text(const EvidenceValue& value);
// ", known before" if in the baseline.
std::string baseline_mark_text(const ReportInput& input, const Finding& finding);
// One line for the baseline and one per policy; empty if none are given.
std::string requested_text(const ReportInput& input);
// Replacement of lost elements of a planned tensor: "zeros", "the cast of ...", "... of
// CHECKPOINT".
std::string fill_text(const PlannedTensor& tensor);
// At most kMaxLetters, cut at a UTF-8 character and ended with "...".
std::string clipped(std::string_view text);
// " and 160 more", or empty.
std::string and_more(std::size_t count, std::size_t shown);

// The first subject of a finding that is a tensor of the checkpoint, for its picture.
std::optional<TensorId> first_tensor_subject(const Checkpoint& checkpoint, const Finding& finding);

struct TensorPictures {
  TensorId tensor{};
  TiledTensor saved;
  std::optional<TiledTensor> expected, after;
  std::vector<RankTile> lost;  // boxes of `after` that are lost
  Slice slice;
  std::optional<Slice> overview;
};
TensorPictures pictures_of(const ReportInput& input, TensorId tensor);

// Tensors with findings, then others in recorded order; at most kMaxRows.
std::vector<TensorId> listed_tensors(const ReportInput& input);

struct PlanSum {
  std::uint64_t bytes_moved = 0;
  std::int64_t elements_lost = 0;
};
PlanSum sum_of(const Plan& plan);
// True if no element is lost. Entries of other ranks may still be left out.
bool loses_no_element(const Plan& plan);

}  // namespace shw
