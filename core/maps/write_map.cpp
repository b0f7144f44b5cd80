#include "core/maps/write_map.h"

#include <algorithm>
#include <charconv>

#include "core/base/json.h"

namespace shw {
namespace {

using MapText = nlohmann::ordered_json;

std::string text_of(const MapText& json) {
  return json.dump(-1, ' ', false, MapText::error_handler_t::replace);
}

// A JSON number if the expression is one, otherwise a string.
MapText size_to_json(const std::string& expression) {
  std::uint64_t number = 0;
  const char* end = expression.data() + expression.size();
  const auto read = std::from_chars(expression.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end ? MapText(number) : MapText(expression);
}
MapText sizes_to_json(const std::vector<std::string>& expressions) {
  MapText out = MapText::array();
  for (const std::string& one : expressions) out.push_back(size_to_json(one));
  return out;
}
// A string for a single name, otherwise a list.
MapText texts_to_json(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? MapText(texts.front()) : MapText(texts);
}
MapText patterns_to_json(const std::vector<CounterPattern>& patterns) {
  std::vector<std::string> texts;
  for (const CounterPattern& pattern : patterns) texts.push_back(pattern.text);
  return texts_to_json(texts);
}

MapText op_to_json(const MapOp& op) {
  MapText out{{"op", name(op.kind)}};
  if (op.kind == MapOp::Kind::kCast) {
    out["from_dtype"] = name(op.from_dtype);
    out["dtype"] = name(op.dtype);
    return out;
  }
  if (op.kind == MapOp::Kind::kAdd) {
    out["value"] = op.value;
    return out;
  }
  if (op.kind != MapOp::Kind::kTranspose) out["dim"] = op.dim;
  if (op.pieces != "1") out["pieces"] = size_to_json(op.pieces);
  if (!op.parts.empty()) out["parts"] = sizes_to_json(op.parts);
  if (!op.view.empty()) out["view"] = sizes_to_json(op.view);
  if (!op.order.empty()) out["order"] = std::vector<std::int64_t>(op.order.begin(), op.order.end());
  if (op.kind == MapOp::Kind::kPad) {
    out["size"] = size_to_json(op.size);
    out["to"] = size_to_json(op.to);
    if (op.value != 0) out["value"] = op.value;
  }
  return out;
}

MapText row_to_json(const MapRow& row) {
  MapText out{{"from", patterns_to_json(row.from)}, {"to", patterns_to_json(row.to)}};
  if (!row.ops.empty()) {
    out["do"] = MapText::array();
    for (const MapOp& op : row.ops) out["do"].push_back(op_to_json(op));
  }
  if (!row.from_with.empty()) out["from_with"] = patterns_to_json(row.from_with);
  if (!row.from_without.empty()) out["from_without"] = patterns_to_json(row.from_without);
  if (!row.to_with.empty()) out["to_with"] = patterns_to_json(row.to_with);
  if (!row.forms.empty()) out["form"] = row.forms;
  if (!row.models.empty()) out["models"] = row.models;
  if (!row.only_models.empty()) out["only_models"] = row.only_models;
  return out;
}

MapText copies_to_json(const std::vector<MapCopy>& copies) {
  MapText out = MapText::array();
  for (const MapCopy& copy : copies) {
    MapText one{{"tensor", copy.tensor.text}, {"of", copy.of.text}};
    if (copy.where != "1") one["where"] = size_to_json(copy.where);
    if (!copy.count.empty()) one["count"] = size_to_json(copy.count);
    if (!copy.with.text.empty()) one["with"] = copy.with.text;
    out.push_back(std::move(one));
  }
  return out;
}

MapText states_to_json(const MapStates& states) {
  MapText out = MapText::object();
  if (states.name.empty()) return out;
  out["name"] = states.name;
  if (!states.masters.empty()) out["masters"] = states.masters;
  for (const auto& [form, word] : states.masters_of_form) out["masters_of_form"][form] = word;
  if (states.needs_masters) out["needs_masters"] = true;
  if (!states.step.empty()) out["step"] = states.step;
  for (const auto& [form, entry] : states.entry_of_form) out["entry_of_form"][form] = entry;
  if (!states.settings.empty()) out["settings"] = states.settings;
  if (states.megatron_groups) out["megatron_groups"] = true;
  for (const MapRow& row : states.parameters) out["parameters"].push_back(row_to_json(row));
  return out;
}

template <class Side>
MapText sides_to_json(const Side& from, const Side& to) {
  MapText out = MapText::object();
  if (!from.empty()) out["from"] = from;
  if (!to.empty()) out["to"] = to;
  return out;
}

MapText head_to_json(const ModelMap& map) {
  MapText out{{"schema", "shardwright-map/1"}, {"name", map.name}};
  if (map.title != map.name) out["title"] = map.title;
  out["from"] = map.from;
  out["to"] = map.to;
  for (const auto& [key, expressions] : map.values) out["values"][key] = expressions;
  for (const auto& [counter, value] : map.below) out["below"][counter] = value;
  for (const MapForms& forms : map.forms) {
    MapText one{{"choices", forms.choices}};
    if (!forms.second_where.empty()) one["second_where"] = forms.second_where;
    out["forms"].push_back(std::move(one));
  }
  MapText prefixes = sides_to_json(map.from_prefixes, map.to_prefixes);
  if (!map.written_prefix.empty()) prefixes["write"] = map.written_prefix;
  if (!prefixes.empty()) out["prefixes"] = std::move(prefixes);
  MapText left_out = sides_to_json(map.from_left_out, map.to_left_out);
  if (!left_out.empty()) out["leave_out"] = std::move(left_out);
  MapText copies = sides_to_json(copies_to_json(map.from_copies), copies_to_json(map.to_copies));
  if (!copies.empty()) out["copies"] = std::move(copies);
  MapText states = sides_to_json(states_to_json(map.from_states), states_to_json(map.to_states));
  if (!states.empty()) out["states"] = std::move(states);
  return out;
}

}  // namespace

std::string map_to_json(const ModelMap& map) {
  std::string out = "{\n";
  const MapText head = head_to_json(map);
  for (const auto& [key, value] : head.items())
    out += " " + text_of(MapText(key)) + ": " + text_of(value) + ",\n";
  out += " \"rows\": [";
  for (std::size_t i = 0; i < map.rows.size(); ++i)
    out += (i == 0 ? "\n  " : ",\n  ") + text_of(row_to_json(map.rows[i]));
  return out + "\n ]\n}\n";
}

}  // namespace shw
