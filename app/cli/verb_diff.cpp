#include <fmt/core.h>

#include "app/cli/verbs.h"
#include "core/compare/prefixed_names.h"
#include "core/report/difference_report.h"
#include "core/verbs/diff.h"

namespace shw::cli {

namespace {

// Names that differ by a prefix alone are the commonest reason why no tensor is in both.
void print_prefix_note(Context& context, const verbs::ComparedCheckpoints& compared) {
  auto note = [&](const Checkpoint& shorter, const Checkpoint& longer, const char* a, const char* b,
                  const std::string& path) {
    const auto found = match_names_with_one_prefix(shorter, longer);
    if (!found) return;
    context.terminal.say(fmt::format(
        "{} of {} names of {} are in {} behind \"{}\". To compare them, remove the prefix first:\n "
        " shardwright convert {} --to safetensors --weights-only --strip {}",
        found->count, shorter.tensor_count(), a, b, printable(found->prefix), shell_word(path),
        shell_word(found->prefix)));
  };
  note(*compared.a, *compared.b, "A", "B", context.options.against);
  note(*compared.b, *compared.a, "B", "A", context.options.checkpoint);
}

}  // namespace

int run_diff(Context& context) {
  const Options& options = context.options;
  verbs::DiffOptions asked;
  asked.only = options.subject;
  asked.mapping = options.mapping;
  CompareOptions& compared = asked.compare;
  const bool is_near = options.absolute || options.relative;
  if (is_near) compared.tolerance = {options.absolute.value_or(0), options.relative.value_or(0)};
  compared.data = options.depth == Depth::kData || is_near;
  compared.memory = options.memory;
  auto told = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::diff(options.checkpoint, options.against, asked, &context.progress);
  }();
  if (!told) return fail_with(context, told.error());
  if (told->is_empty) {
    const std::string said = "no tensor name of either matches \"" + options.subject + "\"";
    if (options.json)
      return fail_with_code(context, {ErrorKind::kNotFound, said, {options.checkpoint}}, kFindings);
    context.terminal.say("No tensor name of either matches \"" + printable(options.subject) +
                         "\".");
    return kFindings;
  }
  const CheckpointDifference& difference = told->difference;
  if (difference.in_both == 0 && !options.json) print_prefix_note(context, *told);
  const ComparedPaths paths{options.checkpoint, options.against};
  if (options.json)
    print_answer(context, difference_to_json(difference, paths));
  else
    context.terminal.out(
        difference_to_text(difference, *told->a, *told->b, paths, style_of(context)));
  if (difference.verdict == EqualityVerdict::kSame) return kClean;
  return difference.verdict == EqualityVerdict::kDifferent ? kFindings : kUndecided;
}

}  // namespace shw::cli
