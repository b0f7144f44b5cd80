#include "core/verbs/trainer_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/open.h"
#include "core/formats/plain_value.h"
#include "core/io/read_whole.h"
#include "core/model/state_names.h"

namespace shw::verbs {
namespace {

constexpr std::uint64_t kMaxOrderBytes = std::uint64_t{64} << 20;  // bytes of a list of names
constexpr std::string_view kGroupsPart = "param_groups.", kParamsEnding = ".params";

// Says how the order is written, for errors.
constexpr const char* kOrderAdvice =
    "Load the model, write its parameter names, and give the file: python -c "
    "'print(*dict(model.named_parameters()), sep=\"\\n\")' > names.txt";

bool keeps_order(const Checkpoint& checkpoint) {
  constexpr std::array<std::string_view, 2> kFormats = {"dcp", "torch"};
  return is_one_of(checkpoint.format().name, kFormats);
}

// The rank that saved the first chunk of each weight, if it is the same for all: torch deals
// tensors that several ranks have to all of them, and lists those of rank 0 first.
bool has_one_list(const Checkpoint& checkpoint) {
  std::optional<std::uint32_t> writer;
  for (const TensorId tensor : checkpoint.tensors()) {
    if (parse_state_fqn(checkpoint.fqn(tensor))) continue;
    for (const ChunkId chunk : checkpoint.chunks(tensor)) {
      const auto offsets = checkpoint.offsets(chunk);
      if (std::any_of(offsets.begin(), offsets.end(), [](auto at) { return at != 0; })) continue;
      const auto own = checkpoint.writer(chunk);
      if (writer && own && *own != *writer) return false;
      if (own) writer = own;
    }
  }
  return true;
}

bool is_float_dtype(Dtype dtype) {
  return name(dtype).starts_with("float") || dtype == Dtype::kBfloat16;
}

std::optional<ParameterNames> read_text_list(const Checkpoint& checkpoint, std::size_t object) {
  const auto value = read_plain_value(checkpoint, object, kMaxOrderBytes);
  if (!value || value->kind != PlainValue::Kind::kList) return std::nullopt;
  ParameterNames names;
  for (const PlainValue& item : value->items) {
    if (item.kind != PlainValue::Kind::kText) return std::nullopt;
    names.push_back(item.text);
  }
  return names;
}

Result<ParameterOrder> order_in_text(const std::string& path) {
  SHW_TRY(const std::string text, read_whole_text(path, kMaxOrderBytes));
  ParameterOrder order;
  order.groups.emplace_back();
  for (const std::string_view line : split_at(text, '\n')) {
    if (const std::string_view name = trim(line); !name.empty())
      order.groups.front().emplace_back(name);
  }
  if (!order.groups.front().empty()) return order;
  return fail(ErrorKind::kUsage, "holds no name", {path}, kOrderAdvice);
}

// True where transformers' pattern (^|\.)norm(\.|$) or _norm(\.|$) fits a name.
bool has_norm_part(std::string_view name) {
  for (const std::string_view part : split_at(name, '.')) {
    if (part == "norm" || part.ends_with("_norm")) return true;
  }
  return false;
}

bool is_named_as_not_decaying(const std::string& fqn) {
  constexpr std::array<std::string_view, 3> kWords = {"bias", "layernorm", "rmsnorm"};
  const std::string name = lowered(fqn);
  return contains_any(name, kWords) || has_norm_part(name);
}

}  // namespace

std::optional<NamedGroups> named_groups(const Checkpoint& checkpoint) {
  NamedGroups out;
  std::map<std::size_t, ParameterNames> groups;
  const auto objects = checkpoint.objects();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string_view fqn = objects[i].fqn;
    const std::size_t at = fqn.find(kGroupsPart);
    if (at == std::string_view::npos || !fqn.ends_with(kParamsEnding)) continue;
    const std::size_t first = at + kGroupsPart.size(), last = fqn.size() - kParamsEnding.size();
    if (last <= first) continue;
    const auto group = parse_number<std::size_t>(fqn.substr(first, last - first));
    auto names = group ? read_text_list(checkpoint, i) : std::nullopt;
    const std::string prefix(fqn.substr(0, first));
    if (!names || (!groups.empty() && prefix != out.prefix)) return std::nullopt;
    out.prefix = prefix;
    groups.emplace(*group, std::move(*names));
  }
  if (groups.empty() || groups.rbegin()->first + 1 != groups.size()) return std::nullopt;
  for (auto& [group, names] : groups) out.groups.push_back(std::move(names));
  return out;
}

Result<ParameterOrder> parameter_order_of(const Checkpoint& checkpoint) {
  ParameterOrder order;
  if (auto groups = named_groups(checkpoint)) {
    order.groups = std::move(groups->groups);
    order.are_groups = true;
    return order;
  }
  if (!keeps_order(checkpoint))
    return fail(
        ErrorKind::kUsage,
        fmt::format("no file records the order of the model's parameters: {} does not store it",
                    checkpoint.format().title),
        {}, kOrderAdvice);
  if (!has_one_list(checkpoint))
    return fail(ErrorKind::kUsage,
                "no file records the order of the model's parameters: several ranks saved whole "
                "tensors, and each wrote a separate list",
                {}, kOrderAdvice);
  order.groups.emplace_back();
  order.is_state_dict = true;
  for (const TensorId tensor : checkpoint.tensors()) {
    if (!parse_state_fqn(checkpoint.fqn(tensor)) && is_float_dtype(checkpoint.dtype(tensor)))
      order.groups.front().emplace_back(checkpoint.fqn(tensor));
  }
  return order;
}

Result<ParameterOrder> read_parameter_order(const std::string& path, Progress* progress) {
  if (path.ends_with(".txt")) return order_in_text(path);
  SHW_TRY(const auto checkpoint, open_checkpoint(path, progress));
  return parameter_order_of(*checkpoint);
}

Result<std::vector<ParameterNames>> group_as_trainer(std::span<const MapTensor> parameters) {
  std::vector<ParameterNames> groups(2);
  ParameterNames unknown;
  for (const MapTensor& parameter : parameters) {
    const bool is_apart = is_named_as_not_decaying(parameter.fqn);
    const bool is_vector = parameter.shape.size() == 1 && parameter.fqn.ends_with("weight");
    if (!is_apart && is_vector) unknown.push_back(parameter.fqn);
    groups[is_apart ? 1 : 0].push_back(parameter.fqn);
  }
  if (unknown.empty()) return groups;
  return fail(ErrorKind::kUsage,
              fmt::format("the names of {} do not show whether weight decay applies: {}. Trainer "
                          "decides it by whether their modules are torch.nn.LayerNorm",
                          plural(unknown.size(), "vector"), short_list_text(unknown)),
              {},
              "With --order give a checkpoint whose optimizer groups have names, such as one saved "
              "by Trainer with FSDP.");
}

}  // namespace shw::verbs
