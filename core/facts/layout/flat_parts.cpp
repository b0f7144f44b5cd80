#include "core/facts/layout/flat_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "core/base/checked.h"
#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::size_t kMaxAbsent = 64;           // absent tensors that are tried one by one
constexpr std::int64_t kMinElementsPerPart = 8;  // least elements per rank and part
constexpr std::int64_t kMostRanks = 1 << 20;

using Shapes = std::vector<const MismatchedShape*>;

std::int64_t elements(const Extents& shape) {
  return volume(shape).value_or(std::numeric_limits<std::int64_t>::max() / 4);
}

bool is_flat(const MismatchedShape& shape) {
  return shape.saved.size() == 1;
}

// Formats "64 x 16".
std::string dims_product_text(const Extents& shape) {
  std::string text;
  for (std::int64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

// The number of ranks if each tensor is one rank's part of the model's: ceil(expected / ranks)
// elements.
std::optional<std::int64_t> infer_ranks_of_separate_parts(const Shapes& shapes) {
  std::int64_t least = 2, most = kMostRanks;
  for (const MismatchedShape* shape : shapes) {
    const std::int64_t part = shape->saved[0], whole = elements(shape->expected);
    if (part == 0 || whole == 0) return std::nullopt;
    least = std::max(least, ceil_divide(whole, part));
    if (part > 1) most = std::min(most, (whole - 1) / (part - 1));
  }
  return least <= most ? std::optional(least) : std::nullopt;
}

// The number of ranks if several tensors are concatenated and split into equal, padded parts.
std::optional<std::int64_t> infer_ranks_of_flat_part(std::int64_t whole, std::int64_t part) {
  const std::int64_t ranks = ceil_divide(whole, part);
  const bool is_sure = ranks >= 2 && ranks <= part / kMinElementsPerPart;
  return is_sure && ceil_divide(whole, ranks) == part ? std::optional(ranks) : std::nullopt;
}

// Candidates for the flat parameter: the empty tensors together with all, none, one, or all but one
// (a tied one) of the absent tensors.
std::vector<Shapes> possible_parameter_sets(const Shapes& sure, const Shapes& absent) {
  std::vector<Shapes> rows;
  auto add = [&](auto takes) {
    Shapes row = sure;
    for (const MismatchedShape* shape : absent) {
      if (takes(shape)) row.push_back(shape);
    }
    rows.push_back(std::move(row));
  };
  add([](const MismatchedShape*) { return true; });
  if (!absent.empty()) add([](const MismatchedShape*) { return false; });
  if (absent.size() < 2 || absent.size() > kMaxAbsent) return rows;
  for (const MismatchedShape* one : absent) {
    add([&](const MismatchedShape* shape) { return shape == one; });
    if (absent.size() > 2) add([&](const MismatchedShape* shape) { return shape != one; });
  }
  return rows;
}

std::string concatenation_text(const MismatchedShape& holder, const Shapes& row,
                               std::int64_t ranks) {
  std::string sum;
  std::vector<std::string> names;
  std::int64_t whole = 0;
  for (const MismatchedShape* shape : row) {
    if (names.size() < 4) sum += (sum.empty() ? "" : " + ") + dims_product_text(shape->expected);
    whole += elements(shape->expected);
    names.push_back(shape->fqn);
  }
  if (names.size() > 4) sum += fmt::format(" + {} more", names.size() - 4);
  const std::int64_t padding = ranks * holder.saved[0] - whole;
  if (padding != 0) sum += fmt::format(" + {} of padding", padding);
  return fmt::format(
      " {} x {} = {}: {} holds one rank's part of a flat parameter of {} ranks that FSDP made of "
      "{}. The other ranks' shards are missing.",
      ranks, holder.saved[0], sum, holder.fqn, ranks, short_list_text(names));
}

std::string flat_parameter_text(const Shapes& flat, const Shapes& absent) {
  Shapes sure;
  const MismatchedShape* holder = nullptr;
  for (const MismatchedShape* shape : flat) {
    if (shape->saved[0] == 0) continue;
    if (holder != nullptr) return "";
    holder = shape;
    sure.push_back(shape);
  }
  if (holder == nullptr) return "";
  for (const MismatchedShape* shape : flat) {
    if (shape != holder) sure.push_back(shape);
  }
  std::string found;
  for (const Shapes& row : possible_parameter_sets(sure, absent)) {
    std::int64_t whole = 0;
    for (const MismatchedShape* shape : row) whole += elements(shape->expected);
    const auto ranks = infer_ranks_of_flat_part(whole, holder->saved[0]);
    if (!ranks) continue;
    const bool is_exact = *ranks * holder->saved[0] == whole;
    if (is_exact) return concatenation_text(*holder, row, *ranks);
    if (found.empty()) found = concatenation_text(*holder, row, *ranks);
  }
  return found;
}

}  // namespace

std::string flat_part_text(std::span<const MismatchedShape> shapes) {
  Shapes flat, absent;
  bool any_matrix = false, any_element = false;
  for (const MismatchedShape& shape : shapes) {
    if (!shape.is_here) {
      absent.push_back(&shape);
      continue;
    }
    if (!is_flat(shape)) return "";
    any_matrix = any_matrix || shape.expected.size() > 1;
    any_element = any_element || shape.saved[0] != 0;
    flat.push_back(&shape);
  }
  if (!any_matrix) return "";
  if (!any_element)
    return fmt::format(
        " {} saved without an element: DeepSpeed ZeRO-3 leaves that of a parameter in a state dict "
        "that was not gathered, and FSDP on a rank that owns no part of it. The values are not in "
        "this checkpoint.",
        flat.size() == 1 ? "It was" : "All of them were");
  if (auto ranks = infer_ranks_of_separate_parts(flat))
    return fmt::format(
        " {} flat, with 1/{} of the elements: one of {} ranks saved its own part (FSDP, DeepSpeed "
        "ZeRO-3) as if it were the whole. The other ranks' shards are missing.",
        flat.size() == 1 ? "It is" : "Each of them is", *ranks, *ranks);
  Shapes held;  // shapes that the rank holds
  std::copy_if(flat.begin(), flat.end(), std::back_inserter(held),
               [](const MismatchedShape* shape) { return shape->saved[0] != 0; });
  const std::int64_t ranks =
      held.size() == flat.size() ? 0 : infer_ranks_of_separate_parts(held).value_or(0);
  std::string found = flat_parameter_text(flat, absent);
  if (!found.empty() || ranks == 0) return found;
  return fmt::format(
      " {} of them {} flat, with 1/{} of the elements, and {} empty: one of {} ranks saved its own "
      "flat part (FSDP, DeepSpeed ZeRO-3) as if it were the whole. The other ranks' shards are "
      "missing.",
      held.size(), held.size() == 1 ? "is" : "are", ranks,
      flat.size() - held.size() == 1 ? std::string("one is")
                                     : fmt::format("{} are", flat.size() - held.size()),
      ranks);
}

}  // namespace shw
