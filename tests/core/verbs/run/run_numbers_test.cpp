// Norms and NaN of a run by module and step.
#include "core/verbs/run/run_numbers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/verbs/safetensors_steps.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

constexpr float kRunNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kRunInfinity = std::numeric_limits<float>::infinity();

verbs::RunNumbers count_all(const verbs::RunSteps& run, verbs::RunNumbers numbers = {}) {
  while (verbs::count_uncounted_steps(run, &numbers) != 0) {
    auto counted = verbs::count_next_step(run, std::move(numbers), nullptr);
    REQUIRE(counted);
    numbers = std::move(*counted);
  }
  return numbers;
}

const verbs::ModuleNumbers& module_at(const verbs::RunNumbers& numbers, const std::string& step,
                                      const std::string& module) {
  static const verbs::ModuleNumbers kNone;
  auto found = numbers.steps.find(step);
  REQUIRE(found != numbers.steps.end());
  for (std::size_t m = 0; m < numbers.modules->size(); ++m) {
    const bool is_there = m < found->second->modules.size();
    if ((*numbers.modules)[m].name == module && is_there) return found->second->modules[m];
  }
  return kNone;
}

}  // namespace

TEST_CASE("run numbers: a module's norm is that of the elements of its tensors together") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1", {{"layers.0.mlp.up.weight", {3, 0}},
                                         {"layers.0.mlp.down.weight", {0, -4}},
                                         {"layers.1.mlp.up.weight", {0.5f}}});
  const auto numbers = count_all(verbs::list_run(folder.path()));
  CHECK(module_at(numbers, "step_1", "layers.0.mlp").norm() == doctest::Approx(5));
  CHECK(module_at(numbers, "step_1", "layers.0.mlp").elements == 4);
  CHECK(module_at(numbers, "step_1", "layers.0.mlp").tensors == 2);
  CHECK(module_at(numbers, "step_1", "layers.1.mlp").norm() == doctest::Approx(0.5));
  CHECK(numbers.steps.at("step_1")->all.norm() == doctest::Approx(std::sqrt(25.25)));
  CHECK(numbers.steps.at("step_1")->is_whole());
}

TEST_CASE("run numbers: NaN and infinite elements are counted with their tensor, not in the norm") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1",
                     {{"layers.0.mlp.up.weight", {1, 1}},
                      {"layers.0.mlp.down.weight", {kRunNan, 2, kRunInfinity, kRunNan}}});
  const auto numbers = count_all(verbs::list_run(folder.path()));
  const verbs::ModuleNumbers& module = module_at(numbers, "step_1", "layers.0.mlp");
  CHECK(module.nan == 2);
  CHECK(module.infinite == 1);
  CHECK(module.norm() == doctest::Approx(std::sqrt(6.0)));
  REQUIRE(numbers.steps.at("step_1")->odd_tensors.size() == 1);
  CHECK(numbers.steps.at("step_1")->odd_tensors.begin()->second == "layers.0.mlp.down.weight");
}

TEST_CASE("run numbers: a new step is counted alone, and a step that was written again too") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1", {{"layers.0.mlp.up.weight", {1}}});
  put_step_of_values(folder / "step_2", {{"layers.0.mlp.up.weight", {2}}});
  auto numbers = count_all(verbs::list_run(folder.path()));
  const auto first = numbers.steps.at("step_1");
  put_step_of_values(folder / "step_3", {{"layers.9.mlp.up.weight", {3, 3}}});
  put_step_of_values(folder / "step_2", {{"layers.0.mlp.up.weight", {20, 20}}});
  const auto run = verbs::list_run(folder.path());
  CHECK(verbs::count_uncounted_steps(run, &numbers) == 2);
  numbers = count_all(run, std::move(numbers));
  CHECK(numbers.steps.at("step_1") == first);
  CHECK(module_at(numbers, "step_2", "layers.0.mlp").elements == 2);
  CHECK(module_at(numbers, "step_3", "layers.9.mlp").elements == 2);
  CHECK(module_at(numbers, "step_3", "layers.0.mlp").tensors == 0);
}

TEST_CASE("run numbers: a step that cannot be opened keeps its error, and the others are counted") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1", {{"layers.0.mlp.up.weight", {1}}});
  put_step_of_values(folder / "step_2", {{"layers.0.mlp.up.weight", {2}}});
  put(folder / "step_2/model.safetensors", "no header");
  const auto numbers = count_all(verbs::list_run(folder.path()));
  CHECK_FALSE(numbers.steps.at("step_2")->is_whole());
  CHECK(module_at(numbers, "step_1", "layers.0.mlp").norm() == doctest::Approx(1));
}

TEST_CASE("run numbers: elements of a file that is cut off are not read, and the step says so") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1", {{"layers.0.mlp.up.weight", {1, 1, 1, 1}},
                                         {"layers.1.mlp.up.weight", {1, 1, 1, 1}}});
  const std::string file = folder / "step_1/model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 8);
  const auto numbers = count_all(verbs::list_run(folder.path()));
  CHECK_FALSE(numbers.steps.at("step_1")->is_whole());
  CHECK(module_at(numbers, "step_1", "layers.0.mlp").unread == 0);
  CHECK(module_at(numbers, "step_1", "layers.1.mlp").unread > 0);
}

TEST_CASE("run numbers: a cancelled count fails as cancelled") {
  TemporaryFolder folder;
  put_step_of_values(folder / "step_1", {{"layers.0.mlp.up.weight", {1}}});
  Progress progress;
  progress.cancel();
  auto counted = verbs::count_next_step(verbs::list_run(folder.path()), {}, &progress);
  REQUIRE_FALSE(counted);
  CHECK(counted.error().kind == ErrorKind::kCancelled);
}
