// One rank's file from another step: reported if enough steps are in it and their parameters in
// other files.
#include <doctest/doctest.h>

#include "core/rules/values/optimizer_groups_support.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

// Moments cut over `ranks` files, and the step of parameter i in that of rank i % ranks.
MadeModel cut_over_ranks(int parameters, int ranks) {
  MadeModel model = grown(parameters, 20);
  int next = 0;
  for (MadeContent& tensor : model.tensors) {
    if (tensor.shape.empty()) {
      tensor.tiles = {{{}, {}, static_cast<std::uint32_t>(next++ % ranks)}};
      continue;
    }
    const std::int64_t rows = tensor.shape[0] / ranks;
    for (int rank = 0; rank < ranks; ++rank)
      tensor.tiles.push_back({{rank * rows, 0}, {rows, 8}, static_cast<std::uint32_t>(rank)});
  }
  return model;
}

void set_steps_of(MadeModel& model, int parameters, int ranks, int rank, double step) {
  for (int i = rank; i < parameters; i += ranks)
    set_step(model, "l" + std::to_string(i) + ".weight", step);
}

std::vector<std::string> stale_files(const Checkpoint& checkpoint) {
  std::vector<std::string> files;
  for (const Finding& finding : found_in(checkpoint, "optimizer-groups", Depth::kHeaders)) {
    if (finding.subjects.empty() || !finding.subjects[0].ends_with(".distcp")) continue;
    CHECK(finding.severity == Severity::kWarning);
    files.insert(files.end(), finding.subjects.begin(), finding.subjects.end());
  }
  return files;
}

}  // namespace

TEST_CASE("a file whose steps are those of another step of the run is a warning") {
  TemporaryFolder scratch;
  using Stale = std::vector<std::string>;
  MadeModel model = cut_over_ranks(12, 4);
  CHECK(stale_files(*made(scratch / "healthy", model)) == Stale{});
  set_steps_of(model, 12, 4, 2, 19);
  CHECK(stale_files(*made(scratch / "stale", model)) == Stale{"__2_0.distcp"});
  set_step(model, "l0.weight", 19);  // a parameter that lags wherever it is
  CHECK(stale_files(*made(scratch / "mixed", model)) == Stale{});

  MadeModel few = cut_over_ranks(8, 4);
  set_steps_of(few, 8, 4, 1, 19);
  CHECK(stale_files(*made(scratch / "few", few)) == Stale{});

  MadeModel fresh = cut_over_ranks(12, 4);
  set_steps_of(fresh, 12, 4, 1, 0);
  CHECK(stale_files(*made(scratch / "fresh", fresh)) == Stale{});
}

TEST_CASE("a stage whose parameters were added later has steps of its own") {
  TemporaryFolder scratch;
  MadeModel model = grown(8, 20);
  for (MadeContent& tensor : model.tensors) {
    const bool is_second = tensor.fqn.find(".l4.") != std::string::npos ||
                           tensor.fqn.find(".l5.") != std::string::npos ||
                           tensor.fqn.find(".l6.") != std::string::npos ||
                           tensor.fqn.find(".l7.") != std::string::npos;
    tensor.tiles = {{Extents(tensor.shape.size(), 0), tensor.shape, is_second ? 1u : 0u}};
  }
  for (int i = 4; i < 8; ++i) set_step(model, "l" + std::to_string(i) + ".weight", 12);
  CHECK(stale_files(*made(scratch / "stages", model)).empty());
}
