// Records of data that a repair could not restore and replaced: in lost.json and certificate.json
// next to the checkpoint, and inside it (an attribute of .metadata, an entry of a safetensors
// __metadata__), which survives a copy of the folder without the other two.
//
//   {"schema": "shardwright/2", "total", "kept", "lost",
//    "tensors": {fqn: {"shape", "total", "kept", "lost", "fill", "fill_from", "fill_checkpoint",
//                      "lost_boxes": [{"offsets", "sizes"}], "more_boxes": true}},
//    "entries": [{"fqn", "from"}]}
//
// Only tensors with losses are listed; kept + lost = total. Without "fill" the loss is an older
// hole that the repair left. A certificate has the same members and more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

inline constexpr const char* kCertificateFile = "certificate.json";
inline constexpr const char* kLostFile = "lost.json";

struct FilledTensor {
  std::string fqn;
  Extents shape;
  std::int64_t lost = 0;
  std::vector<Box> boxes = {};  // disjoint
  bool has_all_boxes = true;    // false: the list was truncated
  // "zero", "constant", "cast", "from", "side" (a side file), "mixed"; empty: unknown, or a hole.
  // `fill_from`: the tensor; `fill_checkpoint`: its checkpoint (for "from").
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
  std::int64_t total() const { return volume(shape).value_or(0); }
  bool operator==(const FilledTensor&) const = default;
};

// A non-tensor entry that holds the value of another one.
struct FilledEntry {
  std::string fqn, from;
  bool operator==(const FilledEntry&) const = default;
};

struct FilledRecord {
  std::vector<FilledTensor> tensors;  // a certificate also lists tensors without losses
  std::vector<FilledEntry> entries = {};
  std::optional<bool> lossless = {};  // set by certificates
  bool empty() const { return tensors.empty() && entries.empty(); }
  // The part of the record about these tensors, without other entries.
  FilledRecord of_tensors(const std::vector<std::string>& fqns) const;
};

// Limit of boxes per tensor in records inside a checkpoint. lost.json, which trainers use as a
// mask, has all boxes.
inline constexpr std::size_t kMaxFilledBoxes = 4096;
std::string filled_to_json(const FilledRecord& record, std::size_t most_boxes = SIZE_MAX);
// Parses untrusted text with limits; inconsistent entries are dropped. nullopt if it is not our
// JSON.
std::optional<FilledRecord> filled_from_json(std::string_view text,
                                             const Progress* progress = nullptr);

// The union of all records about this checkpoint; if two differ, the greater loss
// counts.
struct FilledReport {
  std::vector<FilledTensor> tensors;        // lost > 0, in checkpoint order
  std::vector<FilledEntry> entries;         // entries whose own value is lost
  std::vector<std::string> sources;         // sources of the records: "lost.json"
  std::vector<std::string> disagreements;   // sentences about contradictions
  std::vector<std::string> foreign;         // records of another checkpoint
  std::vector<std::string> unreadable;      // damaged records
  std::vector<std::uint32_t> by_name = {};  // indices of `tensors` sorted by name
  const FilledTensor* find(std::string_view fqn) const;
};
FilledReport filled_report_of(const Checkpoint& checkpoint, const Progress* progress = nullptr);

// The records inside the checkpoint, as JSON. `damaged`: a record exists that is not
// text.
struct FilledText {
  std::string place;  // ".metadata", "__metadata__"
  std::vector<std::string> texts;
  bool damaged = false;
};
FilledText read_filled_record_text(const Checkpoint& checkpoint);

// Adds `box` to disjoint boxes. Returns false if the budget `looks` is exhausted; then only a part
// is added.
bool add_uncovered_part_of_box(std::vector<Box>& boxes, const Box& box, std::size_t& looks);
// Adds many boxes, which may overlap; disjoint ones use no budget.
bool add_all_disjoint(std::vector<Box>& boxes, std::span<const Box> more, std::size_t& looks);

// Merges how lost elements were filled: "mixed" if two records disagree. `first`: `into` holds no
// record yet, so `from` is copied.
template <class Into, class From>
void merge_fill_source(Into& into, const From& from, bool first) {
  bool alike = into.fill == from.fill && into.fill_from == from.fill_from &&
               into.fill_checkpoint == from.fill_checkpoint;
  if (alike) return;
  into.fill = first ? from.fill : "mixed";
  into.fill_from = first ? from.fill_from : "";
  into.fill_checkpoint = first ? from.fill_checkpoint : "";
}

// "zeros", "the cast of model.norm.weight": what replaces the lost data.
std::string replacement_text(const FilledTensor& tensor);
// Formats as "24 of 32 elements are not its own: filled with zeros".
std::string filled_elements_text(const FilledTensor& tensor);

}  // namespace shw
