#include <algorithm>

#include "app/cli/verbs.h"
#include "core/base/spelling.h"
#include "core/report/answers.h"

namespace shw::cli {
namespace {

std::vector<std::string_view> rule_ids() {
  std::vector<std::string_view> ids;
  for (const Rule& rule : all_rules()) ids.push_back(rule.id);
  return ids;
}

int list_rules(Context& context) {
  TextStyle style = style_of(context);
  std::size_t width = 0;
  for (const Rule& rule : all_rules()) width = std::max(width, rule.id.size());
  std::string text;
  for (const Rule& rule : all_rules()) {
    text += inked(style, Ink::kBold, rule.id) + std::string(width - rule.id.size() + 2, ' ') +
            std::string(rule.title) + "\n";
  }
  context.terminal.out(text);
  return kClean;
}

// Breaks at blanks, so that no line is longer than the terminal is wide.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (column > 0 && column + 1 + end > width) {
      result += '\n';
      column = 0;
    }
    if (column > 0) result += ' ', ++column;
    result += text.substr(0, end);
    column += end;
    bool newline = end < text.size() && text[end] == '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    if (newline) {
      result += '\n';
      column = 0;
    }
  }
  return result;
}

}  // namespace

int run_explain(Context& context) {
  const std::string& id = context.options.subject;
  if (id.empty() && context.options.json) {
    context.terminal.out(rules_to_json() + "\n");
    return kClean;
  }
  if (id.empty()) return list_rules(context);
  const Rule* rule = find_rule(id);
  if (rule == nullptr) {
    std::string advice = did_you_mean_text(did_you_mean(id, rule_ids()));
    if (advice.empty()) advice = "`shardwright explain` lists the rules.";
    return fail_with(context, {ErrorKind::kUsage, "there is no rule \"" + id + "\"", {}, advice});
  }
  if (context.options.json) {
    context.terminal.out(rule_to_json(*rule) + "\n");
    return kClean;
  }
  TextStyle style = style_of(context);
  auto width = static_cast<std::size_t>(std::min(style.width, 88));
  context.terminal.out(
      inked(style, Ink::kBold, rule->title) + "\n" +
      inked(style, Ink::kQuiet,
            std::string(rule->id) + ", seen at depth " + std::string(name(rule->depth))) +
      "\n\n" + wrapped(rule->teaches, width) + "\n");
  return kClean;
}

}  // namespace shw::cli
