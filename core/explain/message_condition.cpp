#include "core/explain/message_condition.h"

#include <algorithm>

namespace shw {
namespace {

constexpr std::int64_t kMaxDevices = 1024;  // of JAX meshes; more is a number of elements
constexpr std::int64_t kClipTokens = 77;    // tokens that CLIP encodes per prompt

std::optional<std::int64_t> number_of(const ErrorMessage& message, std::string_view key) {
  for (const auto& [name, number] : message.numbers) {
    if (name == key) return number;
  }
  return std::nullopt;
}

bool has_scale_name(const ErrorMessage& message) {
  return is_scale_name(message.name);
}

bool is_whole_number(const ErrorMessage& message) {
  const std::string& name = message.name;
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

// As config.json spells "model_type".
bool is_identifier(const ErrorMessage& message) {
  return message.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") ==
         message.name.npos;
}

// "model.layers.0.mlp.down_proj.weight": at least two dots, not a file path.
bool is_tensor_name(const ErrorMessage& message) {
  const std::string& name = message.name;
  const std::size_t dot = name.find('.');
  return dot != name.npos && name.find_first_of("/( ") == name.npos &&
         name.find('.', dot + 1) != name.npos;
}

// "LOCAL_RANK": a variable of the environment.
bool is_in_capitals(const ErrorMessage& message) {
  return message.name.find('_') != std::string::npos &&
         message.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string::npos &&
         message.name.find_first_not_of("0123456789_") == 0;
}

bool has_two_shapes(const ErrorMessage& message) {
  return !message.saved.empty();
}

// Two 4-bit values share a byte: the last axis is half as long.
bool is_packed_in_file(const ErrorMessage& message) {
  const Extents &saved = message.saved, &current = message.current;
  return saved.size() == current.size() && !saved.empty() && current.back() % 2 == 0 &&
         saved.back() == current.back() / 2 &&
         std::equal(saved.begin(), saved.end() - 1, current.begin());
}

bool found_more_bytes(const ErrorMessage& message) {
  return number_of(message, "found_bytes") > number_of(message, "expected_bytes");
}

// FSDP pads a flat parameter to a multiple of the ranks: a part is the quotient rounded up.
bool is_rounded_part(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kMinOfFlat = 100'000;
  if (part < kMinOfFlat || whole < part || whole - part < part - 1) return false;
  const std::int64_t rest = whole % part;
  const std::int64_t parts = whole / part + (rest >= part - part / 2 ? 1 : 0);
  return (whole - 1) / parts + 1 == part;
}

// Neither size is a multiple of the other: they cannot be one rank's part and the whole.
bool are_not_multiples(const ErrorMessage& message) {
  const std::int64_t target = number_of(message, "target").value_or(0);
  const std::int64_t source = number_of(message, "source").value_or(0);
  if (target <= 0 || source <= 0) return false;
  if (is_rounded_part(target, source) || is_rounded_part(source, target)) return false;
  return target % source != 0 && source % target != 0;
}

bool has_empty_side(const ErrorMessage& message) {
  return number_of(message, "target") == 0 || number_of(message, "source") == 0;
}

bool has_thousands_value(const ErrorMessage& message) {
  return message.name.size() >= 4;
}

// Rows of many parameters, of which one is a part of the other.
bool are_flat_sizes(const ErrorMessage& message) {
  constexpr std::int64_t kMinOfFlat = 1'000'000;
  const std::int64_t target = number_of(message, "target").value_or(0);
  const std::int64_t source = number_of(message, "source").value_or(0);
  const std::int64_t small = std::min(target, source), large = std::max(target, source);
  return small >= kMinOfFlat && large != small && large % small == 0;
}

// Eight 4-bit values, or sixteen 2-bit ones, share a 32-bit number.
bool is_packed_ratio(const ErrorMessage& message) {
  const std::int64_t target = number_of(message, "target").value_or(0);
  const std::int64_t source = number_of(message, "source").value_or(0);
  if (target <= 0 || source <= 0) return false;
  const std::int64_t small = std::min(target, source), large = std::max(target, source);
  return large % small == 0 && (large / small == 8 || large / small == 16);
}

// Channels of latents or pictures: 4 against 16.
bool are_few_channels(const ErrorMessage& message) {
  constexpr std::int64_t kMaxChannels = 32;
  const std::int64_t target = number_of(message, "target").value_or(0);
  const std::int64_t source = number_of(message, "source").value_or(0);
  return number_of(message, "dim") == 1 && std::min(target, source) > 1 &&
         std::max(target, source) <= kMaxChannels;
}

bool has_clip_length(const ErrorMessage& message) {
  const std::int64_t rows = number_of(message, "rows1").value_or(0);
  return rows > 0 && rows % kClipTokens == 0;
}

// Of a shard, an expert or a layer: numbers of tokens are seldom below 1024 where one is too large.
bool is_small_index(const ErrorMessage& message) {
  constexpr std::int64_t kMaxParts = 1024;
  return number_of(message, "index").value_or(kMaxParts) < kMaxParts;
}

bool is_device_count(const ErrorMessage& message) {
  return number_of(message, "devices").value_or(0) <= kMaxDevices;
}

struct NamedTest {
  std::string_view name;
  bool (*passes)(const ErrorMessage&);
};
constexpr NamedTest kTests[] = {
    {"scale-name", has_scale_name},        {"tensor-name", is_tensor_name},
    {"whole-number", is_whole_number},     {"identifier", is_identifier},
    {"capitals", is_in_capitals},          {"two-shapes", has_two_shapes},
    {"packed-in-file", is_packed_in_file}, {"found-more-bytes", found_more_bytes},
    {"not-multiples", are_not_multiples},  {"one-empty", has_empty_side},
    {"clip-length", has_clip_length},      {"device-count", is_device_count},
    {"small-index", is_small_index},       {"packed-ratio", is_packed_ratio},
    {"flat-sizes", are_flat_sizes},        {"four-digits", has_thousands_value},
    {"few-channels", are_few_channels},
};

bool passes(const NameTest& test, std::string_view name) {
  auto any = [](const std::vector<std::string_view>& words, auto fits) {
    return std::any_of(words.begin(), words.end(), fits);
  };
  const bool fits =
      any(test.is, [&](std::string_view word) { return name == word; }) ||
      any(test.begins, [&](std::string_view word) { return name.starts_with(word); }) ||
      any(test.ends, [&](std::string_view word) { return name.ends_with(word); }) ||
      any(test.contains, [&](std::string_view word) { return name.find(word) != name.npos; });
  return fits != test.negated;
}

}  // namespace

bool is_satisfied(const MessageCondition& condition, const ErrorMessage& message) {
  auto has_number = [&](const auto& wanted) {
    const auto number = number_of(message, wanted.first);
    return number &&
           std::find(wanted.second.begin(), wanted.second.end(), *number) != wanted.second.end();
  };
  return std::all_of(condition.names.begin(), condition.names.end(),
                     [&](const NameTest& test) { return passes(test, message.name); }) &&
         std::all_of(
             condition.tests.begin(), condition.tests.end(),
             [&](const MessageTest& test) { return test.passes(message) != test.negated; }) &&
         std::all_of(condition.numbers.begin(), condition.numbers.end(), has_number);
}

std::optional<MessageTest> message_test(std::string_view name) {
  constexpr std::string_view kNot = "not ";
  const bool negated = name.starts_with(kNot);
  if (negated) name.remove_prefix(kNot.size());
  for (const NamedTest& test : kTests) {
    if (test.name == name) return MessageTest{test.passes, negated};
  }
  return std::nullopt;
}

std::vector<std::string_view> message_test_names() {
  std::vector<std::string_view> names;
  for (const NamedTest& test : kTests) names.push_back(test.name);
  return names;
}

bool is_scale_name(std::string_view name) {
  for (std::string_view end : {"scale", "scale_inv", "scales", "qweight", "qzeros", "g_idx",
                               "absmax", "quant_map", "SCB", "weight_scale_2", "zero_point",
                               "k_scale", "v_scale", "input_scale", "weight_packed", "_blocks"}) {
    if (name.ends_with(end)) return true;
  }
  return name.find("quant_state") != name.npos;
}

}  // namespace shw
