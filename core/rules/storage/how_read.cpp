#include "core/rules/rules.h"

namespace shw {

const Rule kHowRead = {
    .id = "how-read",
    .depth = Depth::kMetadata,
    .title = "How the files were read",
    .teaches =
        "Not a defect: when a folder can be read in several ways, this reports what was opened and "
        "what was skipped. A run's folder opens its newest or named step. A folder with several "
        "models opens the one that loaders use. Files that do not record how ranks sharded a "
        "tensor are joined by the rule of the library that wrote them.",
    .lesson = {.drawing = R"(
  run/latest_checkpointed_iteration.txt    100
  run/iter_0000090                         left aside
  run/iter_0000100                         opened
)",
               .remedy = "Nothing to do. To open what was skipped, pass its path."},
};

}  // namespace shw
