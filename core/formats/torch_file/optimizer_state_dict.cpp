#include "core/formats/torch_file/optimizer_state_dict.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/parse_text.h"

namespace shw {
namespace {

constexpr std::string_view kStateEntries = "state", kGroupEntries = "param_groups";
constexpr std::size_t kMaxDigits = 9;

struct IndexAndRest {
  std::string_view index, rest;
};

// The parts of "TOP.INDEX.REST".
std::optional<IndexAndRest> name_below(std::string_view top, std::string_view fqn) {
  if (!fqn.starts_with(top) || fqn.size() <= top.size() || fqn[top.size()] != '.')
    return std::nullopt;
  fqn.remove_prefix(top.size() + 1);
  const std::size_t dot = fqn.find('.');
  if (dot == std::string_view::npos || dot + 1 == fqn.size()) return std::nullopt;
  const IndexAndRest name{fqn.substr(0, dot), fqn.substr(dot + 1)};
  const bool is_index = is_all_digits(name.index) && name.index.size() <= kMaxDigits &&
                        (name.index == "0" || name.index.front() != '0');
  return is_index ? std::optional(name) : std::nullopt;
}

template <class Output>
bool are_all_below(const std::vector<Output>& outputs, std::string_view top) {
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [&](const Output& one) {
    return one.path.size() < 2 && name_below(top, one.fqn);
  });
}

}  // namespace

bool is_optimizer_state_dict(const Outputs& outputs) {
  return are_all_below(outputs.tensors, kStateEntries) &&
         are_all_below(outputs.objects, kGroupEntries);
}

Outputs nested_as_optimizer(Outputs outputs) {
  for (OutputTensor& tensor : outputs.tensors) {
    const auto name = name_below(kStateEntries, tensor.fqn);
    tensor.path = {std::string(kStateEntries), std::string(name->index), std::string(name->rest)};
  }
  for (OutputObject& object : outputs.objects) {
    const auto name = name_below(kGroupEntries, object.fqn);
    object.path = {std::string(kGroupEntries), parse_number<std::int64_t>(name->index).value_or(0),
                   std::string(name->rest)};
  }
  return outputs;
}

}  // namespace shw
