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

}  // namespace

int run_explain(Context& context) {
  const std::string& id = context.options.subject;
  if (id.empty() && context.options.json) {
    context.terminal.out_line(rules_to_json());
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
    context.terminal.out_line(rule_to_json(*rule));
    return kClean;
  }
  context.terminal.out_line(rule_to_text(*rule, text_options(context)));
  return kClean;
}

}  // namespace shw::cli
