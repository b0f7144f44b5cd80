// Steps that create entries.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/formats/pickle/pickled_values.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/transform/named_entries.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOpcodes = std::size_t{1} << 24;

struct ValueText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return '"' + value + '"'; }
  std::string operator()(const std::vector<double>& values) const {
    return fmt::format("({})", fmt::join(values, ", "));
  }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string out;
    for (const std::string& value : values) out += (out.empty() ? "\"" : ", \"") + value + '"';
    return "[" + out + "]";
  }
};

struct ValueOpcodes {
  std::string operator()(std::monostate) const { return "N"; }
  std::string operator()(bool value) const { return pickled_bool(value); }
  std::string operator()(std::int64_t value) const { return pickled_int(value); }
  std::string operator()(double value) const { return pickled_real(value); }
  std::string operator()(const std::string& value) const { return pickled_key(value); }
  std::string operator()(const std::vector<double>& values) const {
    std::string out = "(";
    for (const double value : values) out += pickled_real(value);
    return out + "t";
  }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    std::string out = "](";
    for (const std::int64_t value : values) out += pickled_int(value);
    return out + "e";
  }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string out = "](";
    for (const std::string& value : values) out += pickled_key(value);
    return out + "e";
  }
};

// A name that occurs twice is refused after the step, like one that an entry has.
Status check_named(const std::vector<std::string>& names) {
  if (names.empty()) return fail(ErrorKind::kUsage, "no entry is named");
  return {};
}

}  // namespace

std::string to_text(const EntryValue& value) {
  return std::visit(ValueText{}, value);
}

Result<std::string> opcodes_of(const EntryValue& value) {
  const std::string pickle = "\x80\x02" + std::visit(ValueOpcodes{}, value) + ".";
  SHW_TRY(const PickleTree tree, decode_pickle(std::as_bytes(std::span(pickle)), "a step's value"));
  auto plain = plain_pickle(tree, tree.root(), kMaxOpcodes);
  if (!plain) return fail(ErrorKind::kUsage, "\"value\" is too long");
  return std::move(*plain);
}

Status apply(TargetState& all, const CreateTensorsStep& step) {
  SHW_CHECK(check_named(step.tensors));
  bool is_shape = volume(step.shape).has_value();
  for (const std::int64_t size : step.shape) is_shape = is_shape && size >= 0;
  if (!is_shape) return fail(ErrorKind::kUsage, to_text(step.shape) + " is not a shape");
  SHW_TRY(const FromConstant constant, constant_of(step.dtype, step.value));
  for (const std::string& fqn : step.tensors) {
    TargetTensor tensor;
    tensor.fqn = fqn;
    tensor.dtype = step.dtype;
    tensor.shape = step.shape;
    tensor.tiles.push_back({whole(step.shape), 0});
    if (!is_empty(whole(step.shape)))
      tensor.parts.push_back({whole(step.shape), constant, {}, {}, step.dtype});
    add_entry(all, std::move(tensor));
  }
  return {};
}

Status apply(TargetState& all, const CreateEntriesStep& step) {
  SHW_CHECK(check_named(step.entries));
  SHW_TRY(std::string opcodes, opcodes_of(step.value));
  const auto created = std::make_shared<const std::string>(std::move(opcodes));
  for (const std::string& fqn : step.entries) {
    TargetNonTensorEntry object;
    object.fqn = fqn;
    object.created = created;
    add_object(all, std::move(object));
  }
  return {};
}

}  // namespace shw
