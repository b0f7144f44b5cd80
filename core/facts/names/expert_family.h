// Relations within one mixture-of-experts layer: gate, up and down must be
// transposes of one another, and one of their dimensions is the model's hidden
// size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

struct ExpertFamily {
  std::optional<Extents> gate, up, down;  // 3-D shapes; unset: not saved
};

// Splits a name into family and member: the parts before and after "gate_proj", "up_proj",
// "down_proj" (or "w1", "w3", "w2").
struct FamilyName {
  enum class Member { kGate, kUp, kDown } member = Member::kGate;
  std::string key;
};
std::optional<FamilyName> family_name(std::string_view fqn);

using Families = std::map<std::string, ExpertFamily, std::less<>>;
Families families_of(const CheckInput& input);
Families families_of(const Spec& spec);

// The hidden size according to tensors that expert parallelism does not split, and their names.
struct HiddenSize {
  std::int64_t size = 0;
  std::string said_by;
};
std::optional<HiddenSize> hidden_size(const CheckInput& input);

struct FamilyJudgement {
  enum class State { kUnknown, kHasExpectedSizes, kMoved } state = State::kUnknown;
  std::int64_t factor = 1;  // for kMoved
  bool by_hidden = false;   // the hidden size agrees: three equations instead of two
};
FamilyJudgement judge(const ExpertFamily& family, std::optional<std::int64_t> hidden);

}  // namespace shw
