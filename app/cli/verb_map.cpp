#include "app/cli/verbs.h"
#include "core/report/map_text.h"
#include "core/spec/expected_tiling.h"
#include "core/verbs/names/choose_tensors.h"

namespace shw::cli {

int run_map(Context& context) {
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  const Checkpoint& checkpoint = *opened->checkpoint;
  auto tensor = find_one_tensor(checkpoint, context.options.subject);
  if (!tensor) return fail_with(context, tensor.error());

  TiledTensor saved = saved_tiling(checkpoint, *tensor);
  std::optional<TiledTensor> expected;
  const SpecEntry* entry = nullptr;
  if (opened->spec != nullptr) {
    entry = opened->spec->find(context.options.subject);
    if (entry != nullptr)
      expected = expected_tiling(*entry);
    else
      context.terminal.say("the spec does not list this tensor");
  }
  const TiledTensor* beside = expected ? &*expected : nullptr;
  FilledReport filled = filled_report_of(checkpoint);
  const FilledTensor* lost = filled.find(context.options.subject);
  if (context.options.json) {
    print_answer(context, tensor_map_to_json(context.options.subject, saved, beside, lost));
    return kClean;
  }
  const Mesh* mesh = entry != nullptr && entry->mesh ? &*entry->mesh : nullptr;
  Palette palette = palette_of(checkpoint, mesh);
  context.terminal.out_line(
      map_to_text(context.options.subject, saved, beside, style_of(context), &palette));
  context.terminal.out(filled_to_text(checkpoint, *tensor, style_of(context)));
  return kClean;
}

}  // namespace shw::cli
