// Sizes of a model as a map writes them: "heads*head_dim", "dim(lm_head.weight, 0)".
//
//   sum     = product {("+" | "-") product}
//   product = factor {("*" | "/") factor}          a division that leaves a rest has no value
//   factor  = number | name | name "(" text ")" | "(" sum ")"
//
// A name is that of a value or of a source: config.vocab_size, args.kv_channels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace shw {

struct SizeNames {
  std::function<std::optional<std::int64_t>(std::string_view name)> value;
  // dim(NAME, K), has(NAME), count(PATTERN), first(PATTERN), up(SIZE, UNIT)
  std::function<std::optional<std::int64_t>(std::string_view function, std::string_view text)> call;
};

// nullopt if it is not an expression, a name has no value, or a result is negative or exceeds 64
// bits.
std::optional<std::int64_t> size_of_expression(std::string_view text, const SizeNames& names);
// True if the expression can be parsed.
bool is_size_expression(std::string_view text);

}  // namespace shw
