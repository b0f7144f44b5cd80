// Makes optimizers as trainers save them.
#pragma once

#include "core/rules/make_contents.h"

namespace shw::test {

inline MadeModel grown(int count, int steps, bool with_steps = true) {
  MadeModel model;
  for (int i = 0; i < count; ++i) {
    std::string key = "l" + std::to_string(i) + ".weight";
    Moments moments = trained(64, steps, 0.9, 0.95, static_cast<std::uint64_t>(i) + 5);
    model.pair(key, {8, 8}, moments.mean, moments.square);
    if (with_steps) model.step(key, steps);
  }
  return model;
}

inline void set_step(MadeModel& model, const std::string& key, double step) {
  for (MadeContent& tensor : model.tensors) {
    if (tensor.fqn == "optimizer.state." + key + ".step") tensor.values = {step};
  }
}

// One entry per value, as torch flattens a group.
inline void group(MadeModel& model, int number, const std::vector<std::string>& params,
                  double weight_decay, const std::string& step = "") {
  std::string before = "optimizer.param_groups." + std::to_string(number) + ".";
  std::vector<std::string> names;
  for (const std::string& name : params) names.push_back(pickled_text(name));
  model.entries.push_back({before + "params", pickled_list(names)});
  model.entries.push_back({before + "betas", pickled_pair(0.9, 0.95)});
  model.entries.push_back({before + "weight_decay", pickled_real(weight_decay)});
  if (!step.empty()) model.entries.push_back({before + "step", step});
}

}  // namespace shw::test
