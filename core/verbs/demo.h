// The checkpoint that the project was born from (NeMo AutoModel #1691), made anew: a mixture of
// experts that 64 ranks saved, its expert weights recorded with the placements from before a
// transpose.
#pragma once

#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace shw {

struct Demo {
  std::string checkpoint;  // DIR/step_9000
  std::string spec;        // DIR/spec.json
};

// Makes both in `folder`, which is made where it is missing; a demo that lies there is replaced,
// anything else of that name is refused (kUsage). Files are sparse: about 60 MB of disk. The same
// bytes every time.
Result<Demo> make_demo(const std::string& folder, Progress* progress = nullptr);

}  // namespace shw
