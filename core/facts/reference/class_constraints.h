// Constraints of one model class of transformers, from the table of sizes_of_class(). A key that
// the class does not read constrains nothing.
#pragma once

#include <memory>
#include <vector>

#include "core/facts/names/class_sizes.h"
#include "core/facts/reference/config_constraints.h"
#include "core/facts/reference/model_config.h"

namespace shw {

class ClassConstraints {
 public:
  // nullptr unless config.json names one class, which is in the table for this model type and has
  // no code of its own.
  static std::unique_ptr<ClassConstraints> of(const ModelConfig& config);

  ClassConstraints(const ClassConstraints&) = delete;
  ClassConstraints& operator=(const ClassConstraints&) = delete;

  // The returned part points into this object. Its config contains the keys of all config parts,
  // such as "text_config.hidden_size".
  ModelPart part() const { return {&keys_, &constraints_, {""}, {}}; }

 private:
  ClassConstraints(const ModelConfig& config, ClassSizes table);

  ClassSizes table_;
  ConfigPart keys_;
  std::vector<SizeConstraint> sizes_;
  std::vector<StackConstraint> stacks_;
  ModelConstraints constraints_;
};

}  // namespace shw
