#include "core/report/run_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/version.h"
#include "core/base/words.h"
#include "core/report/json.h"

namespace shw {
namespace {

constexpr std::size_t kColumns = 8;
using RunRow = std::array<std::string, kColumns>;
constexpr std::array<const char*, kColumns> kRunColumns{"step", "written", "norm",   "change",
                                                        "nan",  "inf",     "unread", "module"};
constexpr std::size_t kUnread = 6;

Json module_json(const RunModuleReport& module) {
  return {{"norm", module.norm},
          {"change", module.change ? Json(*module.change) : Json(nullptr)},
          {"elements", module.elements},
          {"nan", module.nan},
          {"inf", module.infinite},
          {"unread", module.unread}};
}

Json step_json(const RunStepReport& step) {
  Json out = {{"step", step.step}, {"path", step.path}, {"written", step.written}};
  out.update(module_json(step.all));
  Json modules = Json::object();
  auto& names = modules.get_ref<Json::object_t&>();
  // operator[] would search linearly.
  for (const RunModuleReport& module : step.modules)
    names.emplace_back(module.module, module_json(module));
  out["modules"] = std::move(modules);
  if (step.files_unread != 0) out["files_unread"] = step.files_unread;
  if (step.error) out["error"] = error_json(*step.error);
  return out;
}

std::string change_text(const std::optional<double>& change) {
  return change ? fmt::format("{:+.2f}%", *change * 100) : "-";
}

// "layers.5.mlp: 12 NaN", or the module whose norm changed most: "layers.5.mlp: +8.30%".
std::string leading_module(const RunStepReport& step) {
  auto rank = [](const RunModuleReport& m) {
    return std::array<double, 3>{static_cast<double>(m.nan), static_cast<double>(m.infinite),
                                 std::abs(m.change.value_or(0))};
  };
  auto first = std::ranges::max_element(step.modules, {}, rank);
  if (first == step.modules.end() || rank(*first) == std::array<double, 3>{}) return "";
  const std::string what = first->nan != 0        ? human_count(first->nan) + " NaN"
                           : first->infinite != 0 ? human_count(first->infinite) + " infinite"
                                                  : change_text(first->change);
  return printable(first->module) + ": " + what;
}

RunRow row_of(const RunStepReport& step) {
  RunRow row{printable(step.step), step.written};
  if (step.error) {
    for (std::size_t c = 2; c <= kUnread; ++c) row[c] = "-";
    row.back() = "not read: " + printable(step.error->message);
    return row;
  }
  row[2] = short_number(step.all.norm);
  row[3] = change_text(step.all.change);
  row[4] = human_count(step.all.nan);
  row[5] = human_count(step.all.infinite);
  row[kUnread] = human_count(step.all.unread);
  row.back() = leading_module(step);
  if (step.files_unread != 0)
    row.back() +=
        (row.back().empty() ? "" : "; ") + plural(step.files_unread, "file") + " not read";
  return row;
}

std::string line_of(const RunRow& row, const std::array<std::size_t, kColumns>& widths) {
  std::string line = padded(row[0], widths[0]) + "  " + padded(row[1], widths[1]);
  for (std::size_t c = 2; c <= kUnread; ++c) line += "  " + right_aligned(row[c], widths[c]);
  line += "  " + row.back();
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string run_to_json(const RunReport& run) {
  Json steps = Json::array();
  for (const RunStepReport& step : run.steps) steps.push_back(step_json(step));
  return pretty_json_line(
      {{"schema", kJsonSchema}, {"steps", std::move(steps)}, {"summary", run.summary}});
}

std::string run_to_text(const RunReport& run, const TextStyle& style) {
  RunRow titles;
  std::ranges::copy(kRunColumns, titles.begin());
  std::vector<RunRow> rows;
  for (const RunStepReport& step : run.steps) rows.push_back(row_of(step));
  std::array<std::size_t, kColumns> widths{};
  for (std::size_t c = 0; c < kColumns; ++c) {
    widths[c] = titles[c].size();
    for (const RunRow& row : rows) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text = inked(style, Ink::kQuiet, line_of(titles, widths)) + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunStepReport& step = run.steps[i];
    const Ink ink = !step.is_whole() || step.all.nan != 0 ? Ink::kRed
                    : step.all.infinite != 0              ? Ink::kGold
                                                          : Ink::kPlain;
    text += inked(style, ink, line_of(rows[i], widths)) + "\n";
  }
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  return text + wrapped(printable(run.summary), 0, width) + "\n";
}

}  // namespace shw
