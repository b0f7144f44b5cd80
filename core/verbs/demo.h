// The demo reproduces NeMo AutoModel #1691: a mixture-of-experts checkpoint saved
// by 64 ranks, with expert weights recorded under placements from before a
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

// Creates checkpoint and spec in `folder`, which is created if missing. Replaces an old demo,
// refuses anything else of that name (kUsage). Sparse files, about 60 MB of disk; deterministic
// bytes.
Result<Demo> make_demo(const std::string& folder, Progress* progress = nullptr);

}  // namespace shw
