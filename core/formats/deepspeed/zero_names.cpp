#include "core/formats/deepspeed/zero_names.h"

#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::string_view kZeroRank = "zero_pp_rank_";

bool consume_zero_prefix(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool consume_zero_number(std::string_view& text, std::uint32_t& out) {
  auto number = consume_number(text);
  if (!number) return false;
  out = *number;
  return true;
}

std::string_view zero_file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<ZeroName> parse_zero_rank(std::string_view name) {
  ZeroName out;
  if (!consume_zero_prefix(name, "bf16_")) (void)consume_zero_prefix(name, "fp16_");
  if (!consume_zero_prefix(name, kZeroRank) || !consume_zero_number(name, out.rank) ||
      !consume_zero_prefix(name, "_mp_rank_") || !consume_zero_number(name, out.mp_rank))
    return std::nullopt;
  if (name == "_optim_states.pt" || name == "optim_states.pt") {
    out.kind = ZeroFileKind::kOptimizer;
  } else if (name == "_model_states.pt") {
    out.kind = ZeroFileKind::kRankModel;
  } else {
    return std::nullopt;
  }
  return out;
}

// "layer_03-model_states.pt" of a pipeline, "layer_03-model_01-model_states.pt" if tensors are
// split too, "layer_0_expert_2_mp_rank_00_model_states.pt".
std::optional<ZeroName> parse_zero_layer(std::string_view name) {
  ZeroName out{.kind = ZeroFileKind::kPart};
  std::uint32_t number = 0;
  const std::string_view all = name;
  if (!consume_zero_prefix(name, "layer_") || !consume_zero_number(name, number))
    return std::nullopt;
  if (consume_zero_prefix(name, "_expert_")) {
    const bool is = consume_zero_number(name, number) && consume_zero_prefix(name, "_mp_rank_") &&
                    consume_zero_number(name, out.mp_rank) && name == "_model_states.pt";
    return is ? std::optional(out) : std::nullopt;
  }
  out.prefix = std::string(all.substr(0, all.size() - name.size())) + ".";
  out.is_layer = true;
  constexpr std::string_view kEnd = "-model_states.pt";
  if (name != kEnd &&
      (!consume_zero_prefix(name, "-model_") || !consume_zero_number(name, out.mp_rank)))
    return std::nullopt;
  return name == kEnd ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<ZeroName> parse_zero_name(std::string_view name) {
  if (auto rank = parse_zero_rank(name)) return rank;
  if (auto layer = parse_zero_layer(name)) return layer;
  ZeroName out;
  std::string_view rest = name;
  if (consume_zero_prefix(rest, "expp_rank_") && consume_zero_number(rest, out.rank) &&
      consume_zero_prefix(rest, "_mp_rank_") && consume_zero_number(rest, out.mp_rank) &&
      rest == "_optim_states.pt")
    return out;
  rest = name;
  out = {.kind = ZeroFileKind::kModel};
  const bool is_model = consume_zero_prefix(rest, "mp_rank_") &&
                        consume_zero_number(rest, out.mp_rank) && rest == "_model_states.pt";
  return is_model ? std::optional(out) : std::nullopt;
}

std::string zero_name_of_rank(std::string_view name, std::uint32_t rank) {
  const std::size_t at = name.find(kZeroRank);
  if (at == std::string_view::npos) return std::string(name);
  std::string_view rest = name.substr(at + kZeroRank.size());
  const std::string before(name.substr(0, at + kZeroRank.size()));
  (void)consume_number(rest);
  return before + std::to_string(rank) + std::string(rest);
}

std::optional<std::uint32_t> rank_of_zero_file(std::string_view path) {
  auto name = parse_zero_name(zero_file_name(path));
  const bool has_rank =
      name && (name->kind == ZeroFileKind::kOptimizer || name->kind == ZeroFileKind::kRankModel);
  return has_rank ? std::optional(name->rank) : std::nullopt;
}

}  // namespace shw
