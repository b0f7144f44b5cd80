#include "core/maps/moved_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/letter_case.h"
#include "core/maps/order_text.h"

namespace shw {
namespace {

// A number in a name with the word before it: "layers", 3.
struct NumberInName {
  std::string word;
  std::int64_t value = 0;
};

// Finds the numbers in a name; `around` gets the rest.
std::vector<NumberInName> numbers_in(const std::string& name, std::string& around) {
  std::vector<NumberInName> out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) {
      around += name[i];
      continue;
    }
    if (i == 0 || !is_digit(name[i - 1])) {
      const bool is_expert = std::string_view(name).substr(0, i).ends_with("experts.");
      out.push_back({is_expert || !out.empty() ? "expert" : "layer"});
    }
    if (out.back().value < 1'000'000) out.back().value = out.back().value * 10 + (name[i] - '0');
  }
  return out;
}

// A counter with its saved and its expected number.
struct CounterStep {
  std::string word;
  std::int64_t is = 0, was = 0;
};

std::optional<CounterStep> step_of(const MovedTensor& moved) {
  std::string here, there;
  const auto is = numbers_in(moved.fqn, here), was = numbers_in(moved.of, there);
  if (here != there || is.size() != was.size()) return std::nullopt;
  std::optional<CounterStep> out;
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (is[i].value == was[i].value) continue;
    if (out) return std::nullopt;
    out = CounterStep{is[i].word, is[i].value, was[i].value};
  }
  return out;
}

// All moves along one counter.
struct CounterMoves {
  std::map<std::int64_t, std::set<std::int64_t>> moves;  // key: the saved number

  bool has(std::int64_t is, std::int64_t was) const {
    const auto found = moves.find(is);
    return found != moves.end() && found->second.contains(was);
  }
  // True if all moved by `shift`, except at most one that wraps around.
  bool is_constant_shift(std::int64_t shift) const {
    std::size_t count = 0, others = 0;
    for (const auto& [is, was] : moves) {
      for (const std::int64_t of : was) ++(of - is == shift ? count : others);
    }
    return count > 1 && others <= 1;
  }
};

// "gate_proj and up_proj are exchanged" of two names that differ in one word alone, so that all
// layers say one thing; empty for others.
std::string exchanged_text(const std::string& a, const std::string& b) {
  std::size_t begin = 0, length = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (begin < shorter && a[begin] == b[begin]) ++begin;
  while (begin > 0 && a[begin - 1] != '.') --begin;
  while (length < shorter - begin && a[a.size() - 1 - length] == b[b.size() - 1 - length]) ++length;
  while (length > 0 && a[a.size() - length] != '.') --length;
  std::string one = a.substr(begin, a.size() - length - begin);
  std::string two = b.substr(begin, b.size() - length - begin);
  if (one.empty() || two.empty() || one.find('.') != std::string::npos ||
      two.find('.') != std::string::npos)
    return {};
  if (two < one) std::swap(one, two);
  if (one == "weight_v" && two == "weight_w") return exchanged_text("gate", "up");
  return fmt::format("{} and {} are exchanged: each holds what belongs to the other", one, two);
}

Mistake moved_tensor_mistake(const MovedTensor& moved, const std::optional<CounterStep>& step,
                             const std::map<std::string, CounterMoves>& all,
                             const std::string& exchanged) {
  if (!step && moved.is_copy)
    return fmt::format(
        "it is a copy of {}{}, and its own data is missing", moved.of,
        moved.of.find("embed") != std::string::npos ? ", as if the two were tied" : "");
  if (!step && !exchanged.empty()) return exchanged;
  if (!step) return "it holds what belongs to " + moved.of;
  const CounterMoves& moves = all.at(step->word);
  if (moved.is_copy) return copied_layer_text(step->word, step->is, step->was);
  for (const std::int64_t shift : {std::int64_t{1}, std::int64_t{-1}}) {
    if (moves.is_constant_shift(shift)) return off_by_one_text(step->word, shift > 0);
  }
  const std::string example =
      fmt::format("{0} {1} holds what belongs to {0} {2}", step->word, step->is, step->was);
  if (!moves.has(step->was, step->is))
    return {fmt::format("{}s are in another order: {}", step->word, example),
            Mistake::Kind::kOrder};
  // Sorted, so that both tensors of a swap get equal text.
  const std::int64_t low = std::min(step->is, step->was), high = std::max(step->is, step->was);
  return fmt::format(
      "{0}s {1} and {2} are swapped: {0} {1} holds what belongs to {0} {2}, and the reverse",
      step->word, low, high);
}

}  // namespace

std::map<std::size_t, Mistake> moved_tensor_mistakes(const std::vector<MovedTensor>& moved) {
  std::map<std::string, CounterMoves> all;
  std::vector<std::optional<CounterStep>> steps;
  for (const MovedTensor& one : moved) {
    steps.push_back(step_of(one));
    if (steps.back() && !one.is_copy)
      all[steps.back()->word].moves[steps.back()->is].insert(steps.back()->was);
    else if (steps.back())
      all.try_emplace(steps.back()->word);
  }
  std::map<std::string, std::string> of;
  for (const MovedTensor& one : moved) of.emplace(one.fqn, one.of);
  std::map<std::size_t, Mistake> out;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const auto back = of.find(moved[i].of);
    const bool is_mutual = back != of.end() && back->second == moved[i].fqn;
    out.emplace(moved[i].difference,
                moved_tensor_mistake(
                    moved[i], steps[i], all,
                    is_mutual ? exchanged_text(moved[i].fqn, moved[i].of) : std::string()));
  }
  return out;
}

}  // namespace shw
