#include "core/maps/row_layout.h"

#include <fmt/core.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/maps/joined_rows.h"
#include "core/maps/map_values.h"
#include "core/maps/read_tensors.h"

namespace shw {
namespace {

std::string counter_display_word(const std::string& counter) {
  if (counter == "l") return "layer";
  if (counter == "e") return "expert";
  return counter;
}

// Module name: "q_proj" from "model.layers.{l}.self_attn.q_proj.weight".
std::string module_word(const std::string& pattern) {
  const std::size_t dot = pattern.rfind('.');
  if (dot == std::string::npos || dot == 0) return pattern;
  const std::size_t before = pattern.rfind('.', dot - 1);
  return pattern.substr(before == std::string::npos ? 0 : before + 1,
                        dot - (before == std::string::npos ? 0 : before + 1));
}

bool names(const MapRow& row, std::string_view word) {
  return row.from.front().text.find(word) != std::string::npos;
}

void add_joined_parts(const MapRow& row, const BoundRow& bound, RowLayout& layout) {
  for (const BoundOp& op : bound.ops) {
    if (op.kind == MapOp::Kind::kPad && op.dim == 0) layout.padding_from = op.size;
    const bool joins = op.kind == MapOp::Kind::kJoin || op.kind == MapOp::Kind::kRegroup;
    if (!joins && op.kind != MapOp::Kind::kUngroup) continue;
    layout.dim = op.dim;
    layout.parts = op.parts;
    layout.pieces = op.kind == MapOp::Kind::kUngroup ? 1 : op.pieces;
    layout.part_names.clear();
    const bool is_qkv = op.parts.size() == 3 && names(row, "qkv");
    const bool is_gate_up = op.parts.size() == 2 && names(row, "gate_up");
    for (std::size_t i = 0; i < op.parts.size(); ++i) {
      if (op.kind == MapOp::Kind::kJoin)
        layout.part_names.push_back(module_word(row.from[i].text));
      else if (is_qkv || is_gate_up)
        layout.part_names.emplace_back(is_qkv ? std::array{"q", "k", "v"}[i]
                                              : std::array{"gate", "up"}[i]);
      else
        layout.part_names.push_back(fmt::format("part {}", i + 1));
    }
  }
}

// Parts inside one tensor that the map keeps together: the halves of a gated projection, and rows
// of heads in latent attention.
void add_kept_parts(const MapRow& row, std::int64_t rows, const HeadSizes& heads,
                    RowLayout& layout) {
  layout.parts = {rows};
  layout.part_names = {module_word(row.from.front().text)};
  const std::int64_t latent = heads.nope + heads.rope;
  if (names(row, "gate_up_proj") && rows % 2 == 0) {
    layout.parts = {rows / 2, rows / 2};
    layout.part_names = {"gate", "up"};
  } else if (names(row, "kv_a_proj") && heads.rope > 0 && rows > heads.rope) {
    layout.head_dim = rows;
    layout.rotary_begin = rows - heads.rope;
    layout.rotary_rows = heads.rope;
  } else if (names(row, "kv_b_proj")) {
    const std::int64_t head = heads.nope + heads.value;
    if (heads.nope <= 0 || heads.value <= 0 || rows % head != 0) return;
    layout.pieces = rows / head;
    layout.parts = {layout.pieces * heads.nope, layout.pieces * heads.value};
    layout.part_names = {"keys", "values"};
  } else if ((names(row, "q_b_proj") || names(row, "self_attn.q_proj")) && heads.rope > 0 &&
             heads.nope > 0 && rows % latent == 0) {
    layout.head_dim = latent;
    layout.rotary_begin = heads.nope;
    layout.rotary_rows = heads.rope;
  }
}

}  // namespace

HeadSizes head_sizes(const ModelMap& map, const ModelFacts& facts,
                     std::span<const MapTensor> tensors) {
  const ReadTensors read = read_tensors(tensors, {});
  MapValues values(map, facts, read.tensors, read.names);
  const auto first = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const auto value = values.size(name)) return *value;
    }
    return std::int64_t{0};
  };
  return {first({"head_dim"}), first({"config.qk_nope_head_dim", "args.qk_head_dim"}),
          first({"config.qk_rope_head_dim", "args.qk_pos_emb_head_dim"}),
          first({"config.v_head_dim", "args.v_head_dim"})};
}

RowLayout layout_of(const ModelMap& map, const BoundRow& bound, const HeadSizes& heads) {
  const MapRow& row = map.rows[bound.row];
  RowLayout layout;
  layout.lead = bound.lead.size();
  layout.head_dim = heads.head_dim;
  for (const std::string& counter : counters_in(row.from.front())) {
    if (!row.to.front().has(counter)) layout.counters.push_back(counter_display_word(counter));
  }
  add_joined_parts(row, bound, layout);
  if (bound.to_shapes.size() != 1 || bound.to_shapes.front().empty()) return layout;
  const Extents& shape = bound.to_shapes.front();
  // True if both sides stack experts in one tensor.
  const bool has_experts = row.to.front().text.find(".experts.") != std::string::npos &&
                           !row.from.front().has("e") && !row.to.front().has("e") &&
                           shape.size() > 1 && (layout.parts.empty() || layout.dim > 0);
  if (has_experts) {
    ++layout.lead;
    layout.counters.emplace_back("expert");
    if (layout.dim > 0) --layout.dim;
  }
  if (layout.parts.empty()) add_kept_parts(row, shape[has_experts ? 1 : 0], heads, layout);
  return layout;
}

std::set<CellPart> differing_parts(const LoadedTensor& is, const LoadedTensor& was,
                                   std::size_t stacked, const RowLayout& layout) {
  std::set<CellPart> out;
  if (is.bytes.size() != was.bytes.size() || is.shape != was.shape || stacked > is.shape.size())
    return out;
  const auto count =
      static_cast<std::size_t>(volume(ExtentsView(is.shape).first(stacked)).value_or(0));
  const std::size_t length = count == 0 ? 0 : is.bytes.size() / count;
  std::vector<std::size_t> part_of;
  if (layout.lead == stacked && layout.dim == 0) part_of = parts_of_rows(layout);
  if (part_of.empty() || length % part_of.size() != 0) part_of = {0};
  const std::size_t row = length / part_of.size();
  for (std::size_t cell = 0; cell < count; ++cell) {
    for (std::size_t i = 0; i < part_of.size(); ++i) {
      const std::size_t at = cell * length + i * row;
      if (std::memcmp(is.bytes.data() + at, was.bytes.data() + at, row) != 0)
        out.emplace(cell, part_of[i]);
    }
  }
  return out;
}

}  // namespace shw
