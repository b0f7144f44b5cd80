#include "app/cli/verbs.h"
#include "core/report/entry_report.h"
#include "core/report/report.h"
#include "core/verbs/names/choose_tensors.h"
#include "core/verbs/values/quantised_parts.h"

namespace shw::cli {

namespace {

// The non-tensor entry of that name.
std::optional<std::size_t> find_entry(const Checkpoint& checkpoint, const std::string& fqn) {
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn == fqn) return i;
  }
  return std::nullopt;
}

int show_entry(Context& context, const Checkpoint& checkpoint, std::size_t object) {
  if (context.options.json)
    print_answer(context, entry_to_json(checkpoint, object));
  else
    context.terminal.out(entry_to_text(checkpoint, object, style_of(context)));
  return kClean;
}

// "one 8-bit weight of 2 tensors: model.layers.0.mlp.up_proj", and a line for each tensor.
std::string quantised_text(const Checkpoint& checkpoint, TensorId tensor) {
  const auto parts = verbs::quantised_parts_of(checkpoint, tensor);
  if (!parts) return "";
  std::string text = "one " + parts->scheme + " weight of " +
                     plural(parts->tensors.size(), "tensor") + ": " + printable(parts->name) + "\n";
  for (TensorId part : parts->tensors)
    text += "  " + printable(checkpoint.fqn(part)) + "  " + to_text(checkpoint.shape(part)) + " " +
            std::string(name(checkpoint.dtype(part))) + "\n";
  return text;
}

}  // namespace

int run_show(Context& context) {
  const Options& options = context.options;
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  if (auto entry = find_entry(**checkpoint, options.subject);
      entry && !(*checkpoint)->find(options.subject))
    return show_entry(context, **checkpoint, *entry);
  auto tensor = find_one_tensor(**checkpoint, options.subject);
  if (!tensor) return fail_with(context, tensor.error());
  std::optional<TensorValues> values;
  if (options.values) {
    auto read = read_first_elements(**checkpoint, *tensor, options.limit);
    if (!read) return fail_with(context, read.error());
    values = std::move(*read);
  }
  const TensorValues* shown = values ? &*values : nullptr;
  if (options.json) {
    const auto quantised = verbs::quantised_parts_of(**checkpoint, *tensor);
    print_answer(context, tensor_to_json(**checkpoint, *tensor, shown, options.limit,
                                         options.places, quantised ? &*quantised : nullptr));
    return kClean;
  }
  context.terminal.out(
      tensor_to_text(**checkpoint, *tensor, shown, options.limit, style_of(context)));
  context.terminal.out(quantised_text(**checkpoint, *tensor));
  if (shown != nullptr && shown->uncovered > 0) {
    context.terminal.say(plural(static_cast<std::uint64_t>(shown->uncovered), "element") +
                         " of this tensor are in no chunk; they are shown as 0");
  }
  return kClean;
}

}  // namespace shw::cli
