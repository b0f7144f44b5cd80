#include "core/report/learn_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/version.h"
#include "core/base/words.h"
#include "core/maps/write_map.h"
#include "core/report/json.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

constexpr std::size_t kMaxUnexplainedShown = 20;

Json learned_row_json(const ExplainedRow& row, const MapRow& of_map) {
  std::vector<std::string> from, to, ops;
  for (const CounterPattern& pattern : of_map.from) from.push_back(pattern.text);
  for (const CounterPattern& pattern : of_map.to) to.push_back(pattern.text);
  for (const MapOp& op : of_map.ops) ops.emplace_back(name(op.kind));
  return {{"from", from},
          {"to", to},
          {"operations", ops},
          {"tensors", row.tensors},
          {"by_name", row.is_by_name},
          {"cast", row.is_cast},
          {"padding_unexplained", row.leaves_padding}};
}

std::string learned_rows_text(const LearnedMap& learned, bool ExplainedRow::*is_so) {
  std::vector<std::string> names;
  for (const ExplainedRow& row : learned.rows) {
    if (!(row.*is_so)) continue;
    const MapRow& of_map = learned.map.rows[row.row];
    names.push_back(
        printable((learned.way == MapDirection::kForward ? of_map.to : of_map.from).front().text));
  }
  return short_list_text(names);
}

std::string learned_verdict_text(const LearnedMap& learned) {
  if (learned.rows.empty())
    return "No tensor of B is made of A: no row or column of B makes up a tensor of A, or of its "
           "parts.\n";
  return fmt::format("{} of {} of B are made of A by {}. Every element of them was compared.\n",
                     human_count(learned.proved), plural(learned.tensors, "tensor"),
                     plural(learned.map.rows.size(), "row"));
}

std::string learned_notes_text(const LearnedMap& learned) {
  std::string out;
  if (const std::string rows = learned_rows_text(learned, &ExplainedRow::is_by_name); !rows.empty())
    out += fmt::format(
        "Ambiguous: {}. The elements of each tensor are all one value, which others have too: "
        "names decided.\n",
        rows);
  if (const std::string rows = learned_rows_text(learned, &ExplainedRow::is_cast); !rows.empty())
    out += fmt::format("Cast: {}. The dtypes of A and B differ, and the map casts to B's.\n", rows);
  if (const std::string rows = learned_rows_text(learned, &ExplainedRow::leaves_padding);
      !rows.empty())
    out += fmt::format(
        "Padding: {}. The rows that pad it hold values that A does not have; a conversion writes "
        "zeros there.\n",
        rows);
  return out;
}

// " --to dcp", if names alone do not determine the direction.
std::string to_option(const LearnedMap& learned) {
  if (!learned.needs_direction) return {};
  return " --to " + (learned.way == MapDirection::kForward ? learned.map.to : learned.map.from);
}

std::string unexplained_text(const LearnedMap& learned) {
  std::string out;
  if (!learned.unexplained.empty())
    out += fmt::format("Not explained: {} of B.\n", plural(learned.unexplained.size(), "tensor"));
  if (learned.rows.empty()) return out;
  const std::size_t shown = std::min(learned.unexplained.size(), kMaxUnexplainedShown);
  for (std::size_t i = 0; i < shown; ++i)
    out += fmt::format("  {}: {}\n", printable(learned.unexplained[i].fqn),
                       printable(learned.unexplained[i].why));
  if (shown < learned.unexplained.size())
    out += fmt::format("  and {} more; --json lists all\n",
                       human_count(learned.unexplained.size() - shown));
  if (learned.unused.empty()) return out;
  std::vector<std::string> names;
  for (const std::string& name : learned.unused) names.push_back(printable(name));
  return out + fmt::format("Of A, {} {} in no tensor of B: {}.\n", plural(names.size(), "tensor"),
                           names.size() == 1 ? "is" : "are", short_list_text(names));
}

}  // namespace

std::string learned_to_json(const LearnedMap& learned, const LearnedPaths& paths) {
  Json rows = Json::array(), unexplained = Json::array();
  for (const ExplainedRow& row : learned.rows)
    rows.push_back(learned_row_json(row, learned.map.rows[row.row]));
  for (const UnexplainedTensor& one : learned.unexplained)
    unexplained.push_back({{"fqn", one.fqn}, {"why", one.why}});
  Json out = {{"schema", kJsonSchema},
              {"verdict", learned.is_all_explained() ? "explained" : "unexplained"},
              {"a", paths.a},
              {"b", paths.b},
              {"tensors", learned.tensors},
              {"proved", learned.proved},
              {"rows", std::move(rows)},
              {"unexplained", std::move(unexplained)},
              {"unused", learned.unused}};
  if (!learned.rows.empty()) out["map"] = Json::parse(map_to_json(learned.map), nullptr, false);
  if (!paths.out.empty()) out["output"] = paths.out;
  return pretty_json_line(out);
}

std::string learned_to_text(const LearnedMap& learned, const LearnedPaths& paths) {
  std::string out =
      learned_verdict_text(learned) + learned_notes_text(learned) + unexplained_text(learned);
  if (!paths.out.empty())
    out += fmt::format(
        "The map is {}. To make B of A: shardwright convert {} --map {}{} --out DIR\n",
        printable(paths.out), printable(paths.a), printable(paths.out), to_option(learned));
  return out;
}

}  // namespace shw
