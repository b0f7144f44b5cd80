// Describes the operations of a map's row as text with shapes.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/report/text_words.h"
#include "core/verbs/names/paired_names.h"

namespace shw::verbs {
namespace {

using OpKind = MapOp::Kind;

std::string listed(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return out;
}
std::string listed(const Extents& numbers) {
  std::vector<std::string> texts;
  for (std::int64_t number : numbers) texts.push_back(std::to_string(number));
  return listed(texts);
}

// Text for parts that are joined whole or in pieces.
std::string pieces_text(const BoundOp& op, std::string_view what) {
  return fmt::format(
      "{} are split into {} parts each along dim {}: part 1 of each, part 2 of each, and so on",
      what, op.pieces, op.dim);
}

std::string join_text(const BoundOp& op) {
  if (op.pieces <= 1)
    return fmt::format("Join along dim {}, one after the other: {} rows.", op.dim,
                       listed(op.parts));
  return pieces_text(op, fmt::format("Join: the {} rows", listed(op.parts))) + ".";
}

std::string split_text(const BoundOp& op) {
  if (op.pieces <= 1)
    return fmt::format("Split along dim {} into {} rows.", op.dim, listed(op.parts));
  return fmt::format(
      "Split along dim {}: of {} groups, each gives its rows to {} tensors of {} rows.", op.dim,
      op.pieces, op.parts.size(), listed(op.parts));
}

std::string pad_text(const BoundOp& op) {
  if (op.size == op.to) return {};
  return fmt::format("Pad dim {} from {} to {} rows with {}.", op.dim, op.size, op.to, op.value);
}

std::string op_text(const BoundOp& op) {
  switch (op.kind) {
    case OpKind::kJoin:
      return join_text(op);
    case OpKind::kSplit:
      return split_text(op);
    case OpKind::kRegroup:
      return pieces_text(op, fmt::format("Regroup: the parts of {} rows", listed(op.parts))) + ".";
    case OpKind::kUngroup:
      return fmt::format("Ungroup dim {}: rows of {} groups go back into parts of {} rows.", op.dim,
                         op.pieces, listed(op.parts));
    case OpKind::kPermute:
      return fmt::format("Permute dim {}: seen as {}, its axes come in the order {}.", op.dim,
                         shw::to_text(ExtentsView(op.view)), shw::to_text(ExtentsView(op.order)));
    case OpKind::kReorder:
      return fmt::format("Reorder dim {}: its parts of {} rows come in the order {}.", op.dim,
                         listed(op.parts), shw::to_text(ExtentsView(op.order)));
    case OpKind::kTranspose:
      return fmt::format("Transpose: the dims come in the order {}.",
                         shw::to_text(ExtentsView(op.order)));
    case OpKind::kCast:
      return fmt::format("Cast from {} to {}.", name(op.from_dtype), name(op.dtype));
    case OpKind::kAdd:
      return fmt::format("Add {} to every element in float32, rounded to its dtype.", op.value);
    case OpKind::kPad:
      return pad_text(op);
  }
  return {};
}

// "Stack 4 tensors over {l} along a new dim 0: [4, 64, 64]."
std::string stack_text(const ModelMap& map, const BoundRow& row) {
  std::vector<std::string> counters;
  for (const std::string& counter : counters_in(map.rows[row.row].from.front())) {
    if (!map.rows[row.row].to.front().has(counter)) counters.push_back("{" + counter + "}");
  }
  Extents shape = row.lead;
  if (!row.to_shapes.empty())
    shape.insert(shape.end(), row.to_shapes.front().begin(), row.to_shapes.front().end());
  return fmt::format(
      "Stack {} over {} along {}: {}.", plural(row.from.size(), "tensor"),
      counters.empty() ? "its counters" : listed(counters),
      row.lead.size() == 1 ? "a new dim 0" : fmt::format("{} new dims", row.lead.size()),
      shw::to_text(ExtentsView(shape)));
}

}  // namespace

std::vector<std::string> row_words(const ModelMap& map, const BoundRow& row) {
  std::vector<std::string> words;
  for (const BoundOp& op : row.ops) {
    std::string text = op_text(op);
    if (!text.empty()) words.push_back(std::move(text));
  }
  if (!row.lead.empty()) words.push_back(stack_text(map, row));
  return words;
}

}  // namespace shw::verbs
