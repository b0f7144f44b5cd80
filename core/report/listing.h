// What verbs other than `check` print for people. Names come from files: nothing of them reaches a
// terminal unescaped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/formats/items.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/report/text_words.h"

namespace shw {

struct TextStyle {
  bool colour = false;
  bool utf8 = true;
  int width = 100;        // columns
  bool millions = false;  // of colours; else 256
  bool must_fit = false;  // a person reads it: tables are no wider than that
};

enum class Ink : std::uint8_t { kPlain, kQuiet, kBold, kRed, kGreen, kGold };
// The text in that ink; as it is where colour is off.
std::string inked(const TextStyle& style, Ink ink, std::string_view text);

// "0-63", "0, 4-7, 12"; "none". Ranks need not be sorted.
std::string ranks_to_text(std::vector<std::uint32_t> ranks);

std::string info_to_text(const Checkpoint& checkpoint, const TextStyle& style);
// The columns of a list of tensors, by their titles: "tensor", "shape", "dtype", "tiles", "bytes",
// "writers".
inline constexpr std::size_t kListColumns = 6;
std::span<const char* const, kListColumns> list_titles();
// One line per tensor, then a line with the sum. `columns`: those that are shown, in their order;
// empty: all. Without a head where no person reads it.
std::string list_to_text(const Checkpoint& checkpoint, std::span<const std::uint32_t> order,
                         const TextStyle& style, std::span<const std::size_t> columns = {});
// `values` may be null; `limit` of them are shown, all for 0.
std::string tensor_to_text(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, const TextStyle& style);
// One line with what an earlier repair filled in it, and where; empty where nothing is.
std::string filled_to_text(const Checkpoint& checkpoint, TensorId tensor, const TextStyle& style);
std::string plan_to_text(const Plan& plan, const TextStyle& style);
// One line a tensor: how many of how many elements, which boxes, and what stands there instead.
// Empty where nothing is lost.
std::string lost_to_text(const Checkpoint& checkpoint, const Plan& plan);
// One line a tensor that was cast to what cannot say all of it. Empty where there is none.
std::string out_of_range_to_text(const RepairResult& result);
// Of what came along damaged, a line an entry.
std::string damage_to_text(const RepairResult& result);
// Of which entries only the lowest rank's came along. Empty where there are none.
std::string other_ranks_to_text(const RepairResult& result);
// Of a folder that was made. What is said beside the elements may be lost where none of them is.
std::string loss_in_words(const RepairResult& result);
std::string left_out_to_text(const RepairResult& result);
std::string verify_to_text(const VerifyReport& report, const std::string& checkpoint,
                           const TextStyle& style);

// How the elements of a tensor lie in its files, where that is not the format's usual way: the name
// of a codec, as "GGUF Q4_K". Else empty.
std::string_view stored_as(const Checkpoint& checkpoint, TensorId tensor);
// Ranks that wrote at least one tile, sorted.
std::vector<std::uint32_t> writers_of(const Checkpoint& checkpoint, TensorId tensor);
// Bytes of a tensor as recorded; 0 where the shape is damaged.
std::uint64_t bytes_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
