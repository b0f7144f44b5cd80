// Text output of verbs other than `check`. Names come from files and are always escaped for the
// terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/facts/names/quantised_weight.h"
#include "core/formats/items/items.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/report/text_words.h"

namespace shw {

struct TextStyle {
  bool colour = false;
  bool utf8 = true;
  int width = 100;        // columns
  bool millions = false;  // 24-bit colours; else 256
  bool must_fit = false;  // tables for people are limited to the width
};

enum class Ink : std::uint8_t { kPlain, kQuiet, kBold, kRed, kGreen, kGold };
// The text coloured, if colours are enabled.
std::string inked(const TextStyle& style, Ink ink, std::string_view text);

// "0-63", "0, 4-7, 12", or "none". Ranks need not be sorted.
std::string ranks_to_text(std::vector<std::uint32_t> ranks);

std::string info_to_text(const Checkpoint& checkpoint, const TextStyle& style);
// Titles of the columns of tensor lists: "tensor", "shape", "dtype", "tiles", "bytes",
// "writers", "quantised".
inline constexpr std::size_t kListColumns = 7;
std::span<const char* const, kListColumns> list_titles();
// One line per tensor and a line with the sum. `columns`: titles to show, in order; empty: all, and
// "quantised" if a listed tensor belongs to a quantised weight. The header line is written only for
// a terminal (TextStyle::must_fit).
std::string list_to_text(const Checkpoint& checkpoint, std::span<const std::uint32_t> order,
                         const TextStyle& style, std::span<const std::size_t> columns = {},
                         std::span<const QuantisedWeight> quantised = {});
// `values` may be null; the first `limit` are shown, or all for 0.
std::string tensor_to_text(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, const TextStyle& style);
// One line on elements filled by an earlier repair; empty if there are none.
std::string filled_to_text(const Checkpoint& checkpoint, TensorId tensor, const TextStyle& style);
std::string plan_to_text(const Plan& plan, const TextStyle& style);
// One line per tensor: numbers of lost and all elements, boxes, and replacement values. Empty if
// nothing is lost.
std::string lost_to_text(const Checkpoint& checkpoint, const Plan& plan);
// One line per tensor with values outside its new dtype's range; may be empty.
std::string out_of_range_to_text(const RepairResult& result);
// One line per damaged entry that was copied.
std::string damage_to_text(const RepairResult& result);
// Entries of which only the lowest rank's were copied; may be empty.
std::string other_ranks_to_text(const RepairResult& result);
// Losses in a created folder. Attributes may be lost even if no elements are.
std::string result_loss_text(const RepairResult& result);
std::string left_out_to_text(const RepairResult& result);
std::string verify_to_text(const VerifyReport& report, const std::string& checkpoint,
                           const TextStyle& style);

// The codec of a tensor's elements if it is not the format's usual one: "GGUF Q4_K"; otherwise
// empty.
std::string_view stored_as(const Checkpoint& checkpoint, TensorId tensor);
// Sorted ranks that wrote at least one tile.
std::vector<std::uint32_t> writers_of(const Checkpoint& checkpoint, TensorId tensor);
// Bytes of a tensor as recorded; 0 if its shape is invalid.
std::uint64_t bytes_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
