#include "core/rules/rules.h"

namespace shw {

const Rule kHowRead = {
    .id = "how-read",
    .depth = Depth::kMetadata,
    .title = "How the files were read",
    .teaches =
        "Not a defect: where a folder leaves a choice, this says what was chosen and what was left "
        "aside. A run's folder opens its newest or named step, a model next to other models opens "
        "the one that loaders take, and files that do not say how the ranks cut a tensor are "
        "joined by the rule of the library that wrote them.",
    .lesson = {.drawing = R"(
  run/latest_checkpointed_iteration.txt    100
  run/iter_0000090                         left aside
  run/iter_0000100                         opened
)",
               .remedy = "Nothing. A path to what was left aside opens that."},
};

}  // namespace shw
