#include <algorithm>

#include "app/cli/verbs.h"
#include "core/base/spelling.h"
#include "core/report/entry_report.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/verbs/names/filter.h"
#include "core/verbs/names/sort.h"
#include "core/verbs/values/quantised_parts.h"

namespace shw::cli {
namespace {

SortKey sort_key_of(const std::string& word) {
  if (word == "bytes") return SortKey::kBytes;
  if (word == "tiles") return SortKey::kChunks;
  if (word == "shape") return SortKey::kShape;
  if (word == "dtype") return SortKey::kDtype;
  return word == "recorded" ? SortKey::kRecorded : SortKey::kName;
}

// Filters by the given words; finding:RULE needs a check first.
Result<std::vector<std::uint32_t>> tensors_matching_filter(Context& context,
                                                           const verbs::Opened& opened) {
  const Checkpoint& checkpoint = *opened.checkpoint;
  const std::string& words = context.options.subject;
  SHW_CHECK(check_filter(checkpoint, words));
  std::optional<CheckReport> report;
  if (words.find("finding:") != words.npos) {
    SHW_TRY(report, check_opened(context, opened));
  }
  const CheckReport* findings = report ? &*report : nullptr;
  SHW_TRY(auto order, filter_tensors(checkpoint, findings, words, &context.progress));
  sort_tensors(checkpoint, findings, SortKey::kName, false, order);
  const SortKey key = sort_key_of(context.options.sort);
  sort_tensors(checkpoint, findings, key, false, order);
  if (context.options.reverse) std::reverse(order.begin(), order.end());
  return order;
}

// Parses "tensor,bytes": the columns in this order.
Result<std::vector<std::size_t>> columns_of(const std::string& text) {
  std::vector<std::size_t> columns;
  std::vector<std::string_view> known(list_titles().begin(), list_titles().end());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      std::string advice = did_you_mean_text(did_you_mean(name, known));
      if (advice.empty())
        advice = "The columns are tensor, shape, dtype, tiles, bytes, writers, quantised.";
      return fail(ErrorKind::kUsage, "ls has no column \"" + std::string(name) + "\"", {}, advice);
    }
    columns.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return columns;
}

std::string no_match_text(const Checkpoint& checkpoint, const std::string& words) {
  if (checkpoint.tensor_count() == 0) return "There is no tensor in this checkpoint.";
  return "No tensor matches \"" + printable(words) + "\": of " +
         plural(checkpoint.tensor_count(), "tensor") + ", none contains all of it.";
}

}  // namespace

int run_list(Context& context) {
  auto columns = columns_of(context.options.columns);
  if (!columns) return fail_with(context, columns.error());
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto order = tensors_matching_filter(context, *opened);
  if (!order) return fail_with(context, order.error());
  const Checkpoint& checkpoint = *opened->checkpoint;
  const auto quantised = verbs::quantised_weights(checkpoint);
  const auto objects = filter_objects(checkpoint, context.options.subject);
  const bool has_words = !context.options.subject.empty();
  if (context.options.json) {
    print_answer(context, list_to_json(checkpoint, *order, objects, quantised));
    if (!objects.empty()) return kClean;
  } else if (!order->empty() || objects.empty() || !has_words) {
    context.terminal.out(list_to_text(checkpoint, *order, style_of(context), *columns, quantised));
  }
  if (!context.options.json && has_words && !objects.empty()) {
    context.terminal.out(entry_list_to_text(checkpoint, objects, style_of(context)));
    return kClean;
  }
  if (!context.options.json && !objects.empty())
    context.terminal.say("Not tensors: " + plural(objects.size(), "entry") +
                         ". Words of their names, or --json, list them.");
  if (!order->empty()) return kClean;
  context.terminal.say(no_match_text(checkpoint, context.options.subject));
  // Like grep: 1 if nothing was found.
  return context.options.subject.empty() ? kClean : kFindings;
}

}  // namespace shw::cli
