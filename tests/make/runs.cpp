#include "make/snapshots.h"

namespace shw::make {
namespace {

verbs::RunStep run_step(std::size_t number) {
  verbs::RunStep step;
  step.name = "step_" + std::to_string(number * 100);
  step.path = "/runs/7/" + step.name;
  step.is_known = step.is_compared = true;
  step.verdict = Verdict::kClean;
  step.headline = "No finding: 26 tensors";
  step.stamp = number;
  step.files = 4;
  step.bytes = 1'000'000'000;
  step.time = "2026-11-27 05:31";
  return step;
}

// Norms drift; NaN begins at step 3 in layer 5 and is everywhere from step 5 on.
verbs::ModuleNumbers module_numbers(std::size_t step, std::size_t module, std::size_t layer) {
  verbs::ModuleNumbers numbers;
  numbers.tensors = 2;
  numbers.elements = 4096;
  const double norm = 10 + static_cast<double>(module % 7) * 3.5;
  const double drift = (module % 3 == 0 ? -0.002 : 0.0004) * static_cast<double>(step * module);
  numbers.squares = norm * norm * (1 + drift) * (1 + drift);
  const bool is_first = step == 3 && layer == 5 && module % 2 == 1;
  if (is_first || step >= 5) numbers.nan = is_first ? 12 : 4096;
  return numbers;
}

}  // namespace

std::shared_ptr<Snapshot> run_of_steps(std::size_t steps, std::size_t layers, bool counted) {
  auto snapshot = std::make_shared<Snapshot>();
  auto run = std::make_shared<verbs::RunSteps>();
  run->path = run->asked = snapshot->options.checkpoint = "/runs/7";
  for (std::size_t s = steps; s-- > 0;) run->steps.push_back(run_step(s + 1));
  snapshot->run = run;
  if (!counted) return snapshot;
  auto numbers = std::make_shared<verbs::RunNumbers>();
  auto modules = std::make_shared<std::vector<verbs::RunModule>>();
  numbers->path = run->path;
  for (std::size_t l = 0; l < layers; ++l) {
    for (const char* part : {"self_attn", "mlp"}) {
      const std::string name = "model.layers." + std::to_string(l) + "." + part;
      modules->push_back({name, name + ".weight"});
    }
  }
  for (const verbs::RunStep& step : run->steps) {
    auto of_step = std::make_shared<verbs::StepNumbers>();
    of_step->stamp = step.stamp;
    for (std::size_t m = 0; m < modules->size(); ++m) {
      of_step->modules.push_back(module_numbers(step.stamp, m, m / 2));
      of_step->all += of_step->modules.back();
      if (of_step->modules.back().nan != 0)
        of_step->odd_tensors.emplace(static_cast<std::uint32_t>(m),
                                     (*modules)[m].name + ".down_proj.weight");
    }
    numbers->steps.emplace(step.name, std::move(of_step));
  }
  numbers->modules = std::move(modules);
  snapshot->run_numbers = std::move(numbers);
  return snapshot;
}

}  // namespace shw::make
