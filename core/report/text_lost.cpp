// Text about elements that a plan loses, by tensor and box, shown before confirmation; and about
// values that a cast cannot represent.
#include "core/base/words.h"
#include "core/report/listing.h"
#include "core/report/page_parts.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

// Boxes per tensor shown in a terminal; lost.json has all.
constexpr std::size_t kShownBoxes = 8;

}  // namespace

std::string lost_to_text(const Checkpoint& checkpoint, const Plan& plan) {
  std::string text;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.lost_elements == 0) continue;
    text += "  " + printable(checkpoint.fqn(tensor.tensor)) + ": " +
            human_count(static_cast<std::uint64_t>(tensor.lost_elements)) + " of " +
            human_count(static_cast<std::uint64_t>(volume(tensor.shape).value_or(0))) +
            " elements,";
    for (std::size_t i = 0; i < tensor.lost.size() && i < kShownBoxes; ++i)
      text += " " + to_text(tensor.lost[i]);
    if (tensor.lost.size() > kShownBoxes)
      text += " and " + plural(tensor.lost.size() - kShownBoxes, "box") + " more";
    text += "; filled with " + printable(fill_text(tensor)) + "\n";
  }
  return text.empty() ? text : "\nlost for good:\n" + text;
}

std::string out_of_range_to_text(const RepairResult& result) {
  std::string text;
  for (const auto& [fqn, count] : result.out_of_range) {
    text +=
        "  " + printable(fqn) + ": " + plural(static_cast<std::uint64_t>(count), "element") +
        " out of range of what it was cast to: infinities, NaN or the largest number are there\n";
  }
  return text;
}

std::string damage_to_text(const RepairResult& result) {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [fqn, why] : result.damage) {
    if (shown++ == kShown) {
      text += "  and so in " + plural(result.damage.size() - kShown, "more entry") + "\n";
      break;
    }
    text += "  damaged before  " + printable(fqn) + ": " + printable(why) +
            ": it was copied unchanged\n";
  }
  return text;
}

std::string other_ranks_to_text(const RepairResult& result) {
  if (result.of_other_ranks.empty()) return {};
  return "  not kept     what other ranks had under the name of " +
         plural(result.of_other_ranks.size(), "entry") + " (" +
         printable(short_list_text(result.of_other_ranks)) + "): the lowest rank's came along\n";
}

std::string result_loss_text(const RepairResult& result) {
  if (result.rounded != 0)
    return plural(result.rounded, "tensor") + " rounded to the dtype, nothing else is lost";
  if (!result.lossless) return "what is not kept is in the certificate";
  return result.left_out.empty() ? "nothing is lost" : "no element is lost";
}

std::string left_out_to_text(const RepairResult& result) {
  if (result.left_out.empty()) return {};
  return "  left out     " + printable(short_list_text(result.left_out)) +
         ": next to the entries, and not carried over\n";
}

}  // namespace shw
