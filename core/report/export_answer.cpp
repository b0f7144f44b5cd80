#include "core/report/export_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/version.h"
#include "core/base/words.h"
#include "core/report/json.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

constexpr std::size_t kNamesShown = 3, kNotesShown = 8;

// Tensors omitted for one reason, whose text may contain a place that differs per tensor.
std::string left_out_lines(const Exported& exported, const TextStyle& style) {
  std::map<std::string, std::vector<std::string>> by_reason;
  bool any_to_copy = false, any_in_part = false;
  for (const UnexportedTensor& left : exported.left_out) {
    by_reason[left.why].push_back(printable(left.fqn));
    any_to_copy = any_to_copy || left.can_be_copied;
    any_in_part = any_in_part || left.is_in_part;
  }
  std::string text;
  for (const auto& [why, names] : by_reason)
    text += fmt::format("{}  {}\n    {}\n", inked(style, Ink::kGold, "left out"),
                        short_list_text(names, kNamesShown), printable(why));
  if (any_in_part)
    text +=
        "  What is there of them is listed under /partial; the rest is NaN, or the extreme value "
        "of whole numbers.\n";
  if (any_to_copy) text += "  --copy takes what cannot be mapped in place along as a copy.\n";
  return text;
}

}  // namespace

std::string exported_to_json(const Exported& exported, Hdf5Paths paths) {
  Json left = Json::array(), reasons = Json::array(), partial = Json::array();
  for (const UnexportedTensor& one : exported.left_out) {
    left.push_back(one.fqn);
    if (one.is_in_part) partial.push_back(one.fqn);
    Json reason = {{"fqn", one.fqn}, {"why", one.why}, {"damaged", one.is_damaged}};
    if (one.missing != 0) reason["missing"] = one.missing;
    reasons.push_back(std::move(reason));
  }
  const bool relative = paths == Hdf5Paths::kRelative;
  Json answer = {{"schema", kJsonSchema},         {"output", exported.output},
                 {"tensors", exported.tensors},   {"left_out", std::move(left)},
                 {"copied", exported.copied},     {"partial", std::move(partial)},
                 {"reasons", std::move(reasons)}, {"notes", exported.notes},
                 {"bytes", exported.bytes},       {"paths", relative ? "relative" : "absolute"}};
  if (relative) answer["hint"] = std::string(kRelativeHint);
  return pretty_json_line(answer);
}

std::string exported_to_text(const Exported& exported, Hdf5Paths paths, const TextStyle& style) {
  std::string text = fmt::format(
      "{}: {} in place{}, {}\n", printable(exported.output),
      plural(exported.tensors - exported.copied.size(), "tensor"),
      exported.copied.empty() ? std::string() : fmt::format(", {} copied", exported.copied.size()),
      human_bytes(exported.bytes));
  text += left_out_lines(exported, style);
  for (std::size_t i = 0; i < std::min(exported.notes.size(), kNotesShown); ++i)
    text += inked(style, Ink::kGold, "note") + "  " + printable(exported.notes[i]) + "\n";
  if (exported.notes.size() > kNotesShown)
    text += fmt::format("  and {} more notes\n", exported.notes.size() - kNotesShown);
  if (paths == Hdf5Paths::kRelative)
    text += fmt::format("  Set {} before it is opened: paths are relative to it.\n", kRelativeHint);
  return text;
}

}  // namespace shw
