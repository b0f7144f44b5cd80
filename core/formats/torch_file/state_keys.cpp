#include "core/formats/torch_file/state_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace shw {

std::optional<std::string> key_text(const PickleTree& tree, NodeId key) {
  switch (tree.kind(key)) {
    case NodeKind::kString:
      return std::string(*tree.text(key));
    case NodeKind::kInt:
      return std::to_string(*tree.integer(key));
    case NodeKind::kBool:
      return *tree.integer(key) != 0 ? "True" : "False";
    case NodeKind::kNone:
      return "None";
    default:
      return std::nullopt;
  }
}

namespace {

// repr() of a float; nullopt for NaN, because two NaNs are different keys.
std::optional<std::string> float_text(double value) {
  if (std::isnan(value)) return std::nullopt;
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // "inf" has an n
  return text;
}

std::optional<std::string> tuple_text(const PickleTree& tree, NodeId tuple);

// repr() of an item of a tuple; text only if it needs no escapes.
std::optional<std::string> repr_text(const PickleTree& tree, NodeId value) {
  if (tree.kind(value) == NodeKind::kFloat) return float_text(*tree.real(value));
  if (tree.kind(value) == NodeKind::kTuple) return tuple_text(tree, value);
  auto text = key_text(tree, value);
  if (!text || tree.kind(value) != NodeKind::kString) return text;
  const bool is_plain = std::all_of(text->begin(), text->end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '\'' && c != '\\';
  });
  return is_plain ? std::optional("'" + *text + "'") : std::nullopt;
}

// repr() of a tuple key; nested tuples are not supported.
std::optional<std::string> tuple_text(const PickleTree& tree, NodeId tuple) {
  constexpr std::size_t kLongestKey = 64;
  const auto items = tree.items(tuple);
  if (items.size() > kLongestKey) return std::nullopt;
  std::string out = "(";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (tree.kind(items[i]) == NodeKind::kTuple) return std::nullopt;
    auto text = repr_text(tree, items[i]);
    if (!text) return std::nullopt;
    out += (i == 0 ? "" : ", ") + *text;
  }
  return out + (items.size() == 1 ? ",)" : ")");
}

}  // namespace

bool is_float_or_tuple_key(const PickleTree& tree, NodeId key) {
  return tree.kind(key) == NodeKind::kFloat || tree.kind(key) == NodeKind::kTuple;
}
std::optional<std::string> root_key_text(const PickleTree& tree, NodeId key) {
  return is_float_or_tuple_key(tree, key) ? repr_text(tree, key) : key_text(tree, key);
}

// Sorts places instead of building a table: a mapping may have millions of keys.
void flag_repeated_keys(std::vector<MappingKey>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(keys[a].text, keys[a].kind, a) < std::tie(keys[b].text, keys[b].kind, b);
  });
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && keys[order[end]].text == keys[order[begin]].text) ++end;
    const bool is_ambiguous = keys[order[begin]].kind != keys[order[end - 1]].kind;
    for (std::size_t i = begin; i < end; ++i) {
      MappingKey& key = keys[order[i]];
      key.is_ambiguous = is_ambiguous;
      key.is_superseded = i + 1 < end && keys[order[i + 1]].kind == key.kind;
    }
  }
}

}  // namespace shw
