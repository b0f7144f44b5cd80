#include "core/repair/run/estimate_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/rules/unreadable.h"

namespace shw {

std::string decoded_items_text(const Forecast& forecast) {
  return fmt::format("{} decoded there temporarily, at most {} at a time",
                     plural(forecast.decoded_items, "item"), human_bytes(forecast.decoded_on_disk));
}

std::string left_out_entries_text(const std::vector<std::string>& of_other_ranks) {
  if (of_other_ranks.empty()) return {};
  return "Other ranks' values of " + short_list_text(of_other_ranks) + " are left out.";
}

std::string summary_text_of(const Plan& plan) {
  std::uint64_t moved = 0, tiles = 0;
  std::int64_t lost = 0;
  for (const Operation& operation : plan.operations) {
    moved += operation.bytes_moved;
    tiles += static_cast<std::uint64_t>(std::max<std::int64_t>(operation.tiles, 0));
    lost += operation.elements_lost;
  }
  std::string text = plural(plan.operations.size(), "step") + " for " +
                     plural(plan.tensors.size(), "tensor") + ", " + plural(tiles, "chunk") + ". ";
  const std::string left = left_out_entries_text(plan.of_other_ranks);
  if (lost > 0)
    text += plural(static_cast<std::uint64_t>(lost), "element") + (lost == 1 ? " is" : " are") +
            " lost; the certificate names every one. ";
  else if (!plan.lossless && left.empty())
    text += "Lost data stays lost. ";
  else if (left.empty())
    text += plan.undecided.empty() ? "Nothing is lost. " : "These steps lose nothing. ";
  if (const std::string gone = unreadable_text(unreadable_in(plan.undecided)); !gone.empty())
    text += gone + ". ";
  if (!plan.undecided.empty())
    text += plural(plan.undecided.size(), "finding") +
            (plan.undecided.size() == 1 ? " stays" : " stay") + " as before. ";
  text += left.empty() ? "" : left + " ";
  return text + (moved == 0 ? "No tensor byte moves." : human_bytes(moved) + " are rewritten.");
}

std::vector<std::pair<std::string, std::string>> estimate_rows(const RepairEstimate& outlook) {
  constexpr const char* kNames[kStages] = {"reading", "making", "writing", "reading back"};
  std::string stages;
  for (std::size_t i = 0; i < kStages; ++i)
    stages += fmt::format("{}{} {}", i == 0 ? "" : ", ", kNames[i],
                          human_seconds(outlook.forecast.seconds[i]));
  std::vector<std::pair<std::string, std::string>> rows = {
      {"reads", human_bytes(outlook.bytes_read)},
      {"writes", human_bytes(outlook.bytes_written)},
      {"files", fmt::format("{} copied, {} made", human_count(outlook.files_copied),
                            human_count(outlook.files_made))},
      {"tiles", fmt::format("{} made, {} kept as they are", human_count(outlook.tiles_made),
                            human_count(outlook.tiles_kept))},
      {"memory", "at most " + human_bytes(outlook.forecast.memory)},
      {"predicted", "about " + human_seconds(outlook.forecast.total)},
      {"by stage", stages}};
  if (outlook.forecast.decoded_items != 0)
    rows.push_back({"on the disk", decoded_items_text(outlook.forecast)});
  return rows;
}

}  // namespace shw
