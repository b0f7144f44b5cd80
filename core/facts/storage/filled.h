// What a repair gave up for good and put something else in its place. It is said three times: in
// lost.json and certificate.json beside the checkpoint, and inside it (an attribute of .metadata,
// an entry of a safetensors file's __metadata__), where it stays when a folder is copied without
// the first two.
//
//   {"schema": "shardwright/1", "total", "kept", "lost",
//    "tensors": {fqn: {"shape", "total", "kept", "lost", "fill", "fill_from", "fill_checkpoint",
//                      "lost_boxes": [{"offsets", "sizes"}], "more_boxes": true}},
//    "entries": [{"fqn", "from"}]}
//
// Only tensors that lose something; kept + lost = total everywhere. Without "fill" it is a hole
// that was there before and that nothing mends. A certificate reads as the same and more.
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
  bool all_boxes = true;        // false: there were more than were kept
  // "zero", "constant", "cast", "from", "side" (a side file), "mixed"; empty: not known, or a hole.
  // `fill_from` names the tensor, `fill_checkpoint` where that lies ("from").
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
  std::int64_t total() const { return volume(shape).value_or(0); }
  bool operator==(const FilledTensor&) const = default;
};

// An entry that is no tensor and says now what another one said.
struct FilledEntry {
  std::string fqn, from;
  bool operator==(const FilledEntry&) const = default;
};

struct FilledRecord {
  std::vector<FilledTensor> tensors;  // of a certificate those that lose nothing too
  std::vector<FilledEntry> entries = {};
  std::optional<bool> lossless = {};  // of a certificate
  bool empty() const { return tensors.empty() && entries.empty(); }
  // What it says of these tensors, and of no other entry.
  FilledRecord of_tensors(const std::vector<std::string>& fqns) const;
};

// A trainer masks by lost.json, which has every box; what travels inside a checkpoint has at most
// so many a tensor.
inline constexpr std::size_t kMaxFilledBoxes = 4096;
std::string filled_to_json(const FilledRecord& record, std::size_t most_boxes = SIZE_MAX);
// Hostile text: bounded, and nothing is believed that does not fit together. Nothing where it is
// no JSON of ours.
std::optional<FilledRecord> filled_from_json(std::string_view text,
                                             const Progress* progress = nullptr);

// All that is said about this checkpoint, put together: where two places differ the greater loss
// counts.
struct FilledReport {
  std::vector<FilledTensor> tensors;        // lost > 0, in the checkpoint's order
  std::vector<FilledEntry> entries;         // those whose own value is gone
  std::vector<std::string> sources;         // "lost.json": what says so
  std::vector<std::string> disagreements;   // sentences
  std::vector<std::string> foreign;         // files that speak of another checkpoint
  std::vector<std::string> unreadable;      // ours by their beginning, and damaged
  std::vector<std::uint32_t> by_name = {};  // indices of tensors, in the order of their names
  const FilledTensor* find(std::string_view fqn) const;
};
FilledReport filled_in(const Checkpoint& checkpoint, const Progress* progress = nullptr);

// The records that stand inside the checkpoint, as JSON. `damaged`: one stands there that is no
// text.
struct FilledText {
  std::string place;  // ".metadata", "__metadata__"
  std::vector<std::string> texts;
  bool damaged = false;
};
FilledText filled_inside(const Checkpoint& checkpoint);

// Adds `box` to boxes that are disjoint and stay so. False where `looks` ran out: then it is not
// added whole.
bool add_disjoint(std::vector<Box>& boxes, const Box& box, std::size_t& looks);
// The same of many, which may meet; those that do not meet take no looks.
bool add_all_disjoint(std::vector<Box>& boxes, std::span<const Box> more, std::size_t& looks);

// What stands in lost elements of two origins. `first`: there were none before.
template <class Into, class From>
void join_fill(Into& into, const From& from, bool first) {
  bool alike = into.fill == from.fill && into.fill_from == from.fill_from &&
               into.fill_checkpoint == from.fill_checkpoint;
  if (alike) return;
  into.fill = first ? from.fill : "mixed";
  into.fill_from = first ? from.fill_from : "";
  into.fill_checkpoint = first ? from.fill_checkpoint : "";
}

// "zeros", "the cast of model.norm.weight": what stands there now.
std::string fill_words(const FilledTensor& tensor);
// "24 of 32 elements are not its own: filled with zeros".
std::string filled_words(const FilledTensor& tensor);

}  // namespace shw
