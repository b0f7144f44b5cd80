#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/json.h"
#include "core/maps/model_map.h"
#include "core/maps/size_expression.h"
#include "core/model/state_names.h"
#include "core/tensor/cast.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using MapJson = nlohmann::ordered_json;

constexpr std::size_t kMaxMapBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxRows = 10'000, kMaxListed = 256, kLongestName = 1024;
constexpr const char* kMapSchema = "shardwright-map/1";

constexpr std::array<std::pair<std::string_view, MapOp::Kind>, 10> kOps{{
    {"join", MapOp::Kind::kJoin},
    {"split", MapOp::Kind::kSplit},
    {"regroup", MapOp::Kind::kRegroup},
    {"ungroup", MapOp::Kind::kUngroup},
    {"permute", MapOp::Kind::kPermute},
    {"transpose", MapOp::Kind::kTranspose},
    {"pad", MapOp::Kind::kPad},
    {"reorder", MapOp::Kind::kReorder},
    {"cast", MapOp::Kind::kCast},
    {"add", MapOp::Kind::kAdd},
}};

// A size: a whole number, or an expression.
std::string read_size(EditedJson& in, const MapJson& value, const char* key) {
  std::string text;
  if (value.is_number_unsigned())
    text = std::to_string(value.get<std::uint64_t>());
  else if (value.is_string())
    text = value.get<std::string>();
  if (text.empty() || !is_size_expression(text))
    in.complain(fmt::format("\"{}\" is neither a size nor an expression of sizes", key));
  return text;
}

std::vector<std::string> read_sizes(EditedJson& in, const MapJson& json, const char* key) {
  std::vector<std::string> out;
  if (!EditedJson::has(json, key)) return out;
  const MapJson& values = in.list(json, key);
  if (values.size() > kMaxListed) in.complain(fmt::format("\"{}\" has too many sizes", key));
  for (const MapJson& value : values) {
    if (!in.ok()) break;
    out.push_back(read_size(in, value, key));
  }
  return out;
}

// A text or a list of texts.
std::vector<std::string> read_texts(EditedJson& in, const MapJson& json, const char* key) {
  if (!EditedJson::has(json, key)) return {};
  const MapJson& value = *json.find(key);
  if (value.is_string()) return {value.get<std::string>()};
  if (in.list(json, key).size() > kMaxListed)
    in.complain(fmt::format("\"{}\" has more than {} entries", key, kMaxListed));
  return in.ok() ? in.texts(json, key) : std::vector<std::string>();
}

Dtype read_dtype(EditedJson& in, const MapJson& json, const char* key) {
  const std::string word = in.text(json, key);
  const Dtype dtype = dtype_from_user_text(word).value_or(Dtype::kUnknown);
  if (in.ok() && !is_plain_float(dtype))
    in.complain("\"" + word + "\" is not a dtype that elements are cast to");
  return dtype;
}

bool is_float32(double value) {
  return std::isfinite(value) && std::fabs(value) <= std::numeric_limits<float>::max() &&
         static_cast<double>(static_cast<float>(value)) == value;
}

MapOp read_op(EditedJson& in, const MapJson& json) {
  in.allow_only_keys(json, {"op", "dim", "pieces", "parts", "view", "order", "size", "to", "value",
                            "dtype", "from_dtype"});
  MapOp op;
  const std::string word = in.text(json, "op");
  auto found =
      std::find_if(kOps.begin(), kOps.end(), [&](const auto& one) { return one.first == word; });
  if (found == kOps.end())
    in.complain("there is no operation \"" + word + "\"");
  else
    op.kind = found->second;
  if (EditedJson::has(json, "dim")) op.dim = in.number<std::int64_t>(json, "dim");
  if (EditedJson::has(json, "pieces"))
    op.pieces = read_size(in, in.member(json, "pieces"), "pieces");
  op.parts = read_sizes(in, json, "parts");
  op.view = read_sizes(in, json, "view");
  if (EditedJson::has(json, "order")) op.order = in.extents(json, "order");
  if (op.kind == MapOp::Kind::kPad) {
    op.size = read_size(in, in.member(json, "size"), "size");
    op.to = read_size(in, in.member(json, "to"), "to");
  }
  if (op.kind == MapOp::Kind::kCast) {
    op.dtype = read_dtype(in, json, "dtype");
    op.from_dtype = read_dtype(in, json, "from_dtype");
  }
  op.value = in.real(json, "value", 0);
  if (op.kind == MapOp::Kind::kAdd && (op.value == 0 || !is_float32(op.value)))
    in.complain("\"value\" is not a number other than 0 that float32 holds exactly");
  const bool needs_parts = op.kind == MapOp::Kind::kRegroup || op.kind == MapOp::Kind::kUngroup;
  if (needs_parts && op.parts.empty()) in.complain("\"parts\" is missing");
  if (op.kind == MapOp::Kind::kPermute && op.view.size() != op.order.size())
    in.complain("\"view\" and \"order\" are not of one length");
  if (op.kind == MapOp::Kind::kReorder && !op.parts.empty() && op.parts.size() != op.order.size())
    in.complain("\"parts\" and \"order\" are not of one length");
  if (op.dim < 0 || op.dim >= static_cast<std::int64_t>(kMaxDims)) in.complain("\"dim\" is none");
  return op;
}

// A map row as written in JSON. Text in brackets in `to` is still there; it makes two rows, one
// with the text and one without.
struct RowText {
  std::vector<std::string> from, to, from_with, from_without, to_with;
};

// The text with or without its bracketed part.
std::string without_brackets(std::string_view text, bool keeps) {
  std::string out;
  bool inside = false;
  for (char c : text) {
    if (c == '[' || c == ']')
      inside = c == '[';
    else if (keeps || !inside)
      out += c;
  }
  return out;
}

std::vector<CounterPattern> patterns_of(EditedJson& in, const std::vector<std::string>& texts,
                                        bool keeps) {
  std::vector<CounterPattern> out;
  for (const std::string& text : texts) {
    auto pattern = parse_counter_pattern(without_brackets(text, keeps));
    if (!pattern) {
      in.complain(pattern.error().message);
      break;
    }
    out.push_back(std::move(*pattern));
  }
  return out;
}

bool has_brackets(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return text.find('[') != std::string::npos; });
}

// Number of tensors after the operations; 0 if an operation does not fit.
std::size_t tensors_after(const MapRow& row) {
  std::size_t count = row.from.size();
  for (const MapOp& op : row.ops) {
    const bool joins = op.kind == MapOp::Kind::kJoin, splits = op.kind == MapOp::Kind::kSplit;
    // Before a join a permute changes the first tensor alone.
    const bool fits = joins ? op.parts.empty() || op.parts.size() == count
                            : count == 1 || op.kind == MapOp::Kind::kPermute;
    if (!fits) return 0;
    if (joins) count = 1;
    if (splits) count = op.parts.empty() ? row.to.size() : op.parts.size();
  }
  return count;
}

// Forms of layers for the row with or without its bracketed text; false if its "form" excludes
// them.
bool restrict_forms_of_layers(bool keeps, std::vector<std::string>& forms) {
  auto is_of_layers = [](const std::string& form) {
    return form == "stacked" || form == "numbered" || form == "singleton";
  };
  const bool says_layers = std::any_of(forms.begin(), forms.end(), is_of_layers);
  std::vector<std::string> out;
  for (const char* form : {"stacked", "numbered", "singleton"}) {
    const bool is_said = !says_layers || std::find(forms.begin(), forms.end(), form) != forms.end();
    if (is_said && (std::string_view(form) != "stacked") == keeps) out.emplace_back(form);
  }
  if (out.empty()) return false;
  std::erase_if(forms, is_of_layers);
  forms.insert(forms.end(), out.begin(), out.end());
  return true;
}

void add_rows(EditedJson& in, const MapJson& json, std::vector<MapRow>& rows) {
  in.allow_only_keys(json, {"from", "to", "do", "from_with", "from_without", "to_with", "form",
                            "models", "only_models", "note"});
  const RowText text{read_texts(in, json, "from"), read_texts(in, json, "to"),
                     read_texts(in, json, "from_with"), read_texts(in, json, "from_without"),
                     read_texts(in, json, "to_with")};
  MapRow row;
  row.forms = read_texts(in, json, "form");
  row.models = read_texts(in, json, "models");
  row.only_models = read_texts(in, json, "only_models");
  if (EditedJson::has(json, "do")) {
    for (const MapJson& op : in.list(json, "do")) {
      if (!in.ok() || row.ops.size() == 16) break;
      row.ops.push_back(read_op(in, op));
    }
  }
  if (text.from.empty() || text.to.empty()) in.complain("\"from\" and \"to\" name tensors");
  const bool has_both = has_brackets(text.to);
  for (const bool keeps : {true, false}) {
    if (!in.ok() || (!keeps && !has_both)) break;
    MapRow one = row;
    one.from = patterns_of(in, text.from, keeps);
    one.to = patterns_of(in, text.to, keeps);
    one.from_with = patterns_of(in, text.from_with, keeps);
    one.from_without = patterns_of(in, text.from_without, keeps);
    one.to_with = patterns_of(in, text.to_with, keeps);
    if (has_both && !restrict_forms_of_layers(keeps, one.forms)) continue;
    if (in.ok() && tensors_after(one) != one.to.size())
      in.complain("\"do\" does not make as many tensors as \"to\" names");
    rows.push_back(std::move(one));
  }
}

void read_row_list(EditedJson& in, const MapJson& json, const char* key,
                   std::vector<MapRow>& rows) {
  const MapJson& list = in.list(json, key);
  if (list.size() > kMaxRows) in.complain(fmt::format("\"{}\" has more than 10,000 rows", key));
  for (std::size_t i = 0; i < list.size() && in.ok(); ++i) {
    in.at(fmt::format("{} {}: ", std::string_view(key) == "rows" ? "row" : key, i + 1));
    add_rows(in, list[i], rows);
  }
  in.at("");
}

void read_values(EditedJson& in, const MapJson& json, ModelMap& map) {
  if (!EditedJson::has(json, "values")) return;
  const MapJson& values = in.member(json, "values");
  if (!values.is_object()) return in.complain("\"values\" is not an object");
  for (const auto& [key, value] : values.items()) {
    in.at(fmt::format("value \"{}\": ", key.substr(0, 40)));
    const MapJson holder{{"is", value}};
    map.values[key] = read_texts(in, holder, "is");
    for (const std::string& text : map.values[key]) {
      if (!is_size_expression(text)) in.complain("\"" + text + "\" is not an expression of sizes");
    }
  }
  in.at("");
}

void read_forms(EditedJson& in, const MapJson& json, ModelMap& map) {
  if (!EditedJson::has(json, "forms")) return;
  for (const MapJson& one : in.list(json, "forms")) {
    in.allow_only_keys(one, {"choices", "second_where"});
    if (!in.ok()) return;
    map.forms.push_back({read_texts(in, one, "choices"), read_texts(in, one, "second_where")});
    if (map.forms.back().choices.empty()) in.complain("\"choices\" is empty");
  }
}

void read_sides(EditedJson& in, const MapJson& sides, std::vector<std::string>& from,
                std::vector<std::string>& to) {
  if (!in.ok()) return;
  from = read_texts(in, sides, "from");
  to = read_texts(in, sides, "to");
}

CounterPattern read_pattern(EditedJson& in, const MapJson& json, const char* key) {
  auto pattern = parse_counter_pattern(in.text(json, key));
  if (!pattern) in.complain(pattern.error().message);
  return pattern.value_or(CounterPattern{});
}

std::vector<MapCopy> read_copies(EditedJson& in, const MapJson& sides, const char* side) {
  std::vector<MapCopy> out;
  if (!EditedJson::has(sides, side)) return out;
  for (const MapJson& one : in.list(sides, side)) {
    in.allow_only_keys(one, {"tensor", "of", "where", "count", "with"});
    if (!in.ok() || out.size() == kMaxListed) break;
    MapCopy copy{read_pattern(in, one, "tensor"), read_pattern(in, one, "of")};
    if (EditedJson::has(one, "where")) copy.where = read_size(in, in.member(one, "where"), "where");
    if (EditedJson::has(one, "count")) copy.count = read_size(in, in.member(one, "count"), "count");
    if (EditedJson::has(one, "with")) copy.with = read_pattern(in, one, "with");
    if (counters_in(copy.tensor).size() != (copy.count.empty() ? 0U : 1U))
      in.complain("\"count\" is where \"tensor\" has one counter");
    out.push_back(std::move(copy));
  }
  return out;
}

void read_all_copies(EditedJson& in, const MapJson& json, ModelMap& map) {
  if (!EditedJson::has(json, "copies")) return;
  in.at("copies: ");
  const MapJson& sides = in.member(json, "copies");
  in.allow_only_keys(sides, {"from", "to"});
  if (in.ok()) map.from_copies = read_copies(in, sides, "from");
  if (in.ok()) map.to_copies = read_copies(in, sides, "to");
  in.at("");
}

// Complains unless the pattern holds each mark once.
void check_placeholders(EditedJson& in, std::string_view key, const std::string& pattern,
                        std::initializer_list<std::string_view> marks) {
  if (pattern.size() > kLongestName)
    in.complain(fmt::format("\"{}\" is longer than 1,024 bytes", key));
  for (const std::string_view mark : marks) {
    const std::size_t at = pattern.find(mark);
    if (at == std::string::npos || pattern.find(mark, at + 1) != std::string::npos)
      in.complain(fmt::format("\"{}\" does not hold {} once", key, mark));
  }
}

std::map<std::string, std::string, std::less<>> read_texts_of_forms(EditedJson& in,
                                                                    const MapJson& json,
                                                                    const char* key) {
  std::map<std::string, std::string, std::less<>> out;
  if (!in.ok() || !EditedJson::has(json, key)) return out;
  const MapJson& forms = in.member(json, key);
  if (!forms.is_object()) in.complain(fmt::format("\"{}\" is not an object", key));
  for (const auto& [form, text] : forms.items()) {
    if (!in.ok() || out.size() == kMaxListed) break;
    out[form] = in.text(forms, form.c_str());
  }
  return out;
}

void check_masters(EditedJson& in, const std::string& word) {
  if (role_of_kind(word) != StateRole::kMaster && !word.empty())
    in.complain("\"masters\" is not a name of master weights: param, fp32_param, master_param");
}

MapStates read_states(EditedJson& in, const MapJson& sides, const char* side) {
  MapStates out;
  if (!in.ok() || !EditedJson::has(sides, side)) return out;
  const MapJson& json = in.member(sides, side);
  in.allow_only_keys(json, {"name", "masters", "masters_of_form", "needs_masters", "step",
                            "entry_of_form", "settings", "megatron_groups", "parameters"});
  if (!in.ok()) return out;
  out.name = in.text(json, "name");
  check_placeholders(in, "name", out.name, {"{state}", "{name}"});
  if (EditedJson::has(json, "step")) {
    out.step = in.text(json, "step");
    check_placeholders(in, "step", out.step, {"{name}"});
  }
  if (EditedJson::has(json, "settings")) {
    out.settings = in.text(json, "settings");
    check_placeholders(in, "settings", out.settings, {"{name}", "{setting}"});
  }
  out.megatron_groups = in.boolean(json, "megatron_groups", false);
  if (EditedJson::has(json, "masters")) out.masters = in.text(json, "masters");
  if (EditedJson::has(json, "needs_masters")) out.needs_masters = in.boolean(json, "needs_masters");
  check_masters(in, out.masters);
  out.masters_of_form = read_texts_of_forms(in, json, "masters_of_form");
  for (const auto& [form, word] : out.masters_of_form) check_masters(in, word);
  out.entry_of_form = read_texts_of_forms(in, json, "entry_of_form");
  if (out.needs_masters && out.masters.empty()) in.complain("\"masters\" is missing");
  if (EditedJson::has(json, "parameters")) {
    read_row_list(in, json, "parameters", out.parameters);
    if (out.needs_masters) in.complain("\"parameters\" are not joined where masters are made");
  }
  return out;
}

void read_all_states(EditedJson& in, const MapJson& json, ModelMap& map) {
  if (!in.ok() || !EditedJson::has(json, "states")) return;
  in.at("states: ");
  const MapJson& sides = in.member(json, "states");
  in.allow_only_keys(sides, {"from", "to"});
  map.from_states = read_states(in, sides, "from");
  map.to_states = read_states(in, sides, "to");
  if (!map.written_prefix.empty() && !map.to_states.parameters.empty())
    in.complain("\"parameters\" are not joined where \"write\" adds a prefix");
  in.at("");
}

ModelMap read_map(EditedJson& in, const MapJson& json) {
  in.allow_only_keys(json, {"$schema", "schema", "name", "title", "from", "to", "values", "below",
                            "forms", "prefixes", "leave_out", "copies", "states", "rows"});
  ModelMap map;
  if (in.ok() && in.text(json, "schema") != kMapSchema)
    in.complain(fmt::format("\"schema\" is not \"{}\"", kMapSchema));
  if (!in.ok()) return map;
  map.name = in.text(json, "name");
  map.title = EditedJson::has(json, "title") ? in.text(json, "title") : map.name;
  map.from = in.text(json, "from");
  map.to = in.text(json, "to");
  if (EditedJson::has(json, "below")) {
    const MapJson& below = in.member(json, "below");
    if (!below.is_object()) in.complain("\"below\" is not an object");
    for (const auto& [key, value] : below.items()) {
      if (in.ok()) map.below[key] = in.text(below, key.c_str());
    }
  }
  if (in.ok()) read_values(in, json, map);
  if (in.ok()) read_forms(in, json, map);
  if (EditedJson::has(json, "prefixes")) {
    const MapJson& sides = json["prefixes"];
    in.allow_only_keys(sides, {"from", "to", "write"});
    read_sides(in, sides, map.from_prefixes, map.to_prefixes);
    if (EditedJson::has(sides, "write")) map.written_prefix = in.text(sides, "write");
  }
  if (EditedJson::has(json, "leave_out")) {
    in.allow_only_keys(json["leave_out"], {"from", "to"});
    read_sides(in, json["leave_out"], map.from_left_out, map.to_left_out);
  }
  if (in.ok()) read_all_copies(in, json, map);
  read_all_states(in, json, map);
  if (in.ok()) read_row_list(in, json, "rows", map.rows);
  return map;
}

}  // namespace

std::string_view name(MapOp::Kind kind) {
  for (const auto& [word, one] : kOps) {
    if (one == kind) return word;
  }
  return "";
}

Result<ModelMap> model_map_from_json(std::string_view json, const std::string& source) {
  if (json.size() > kMaxMapBytes)
    return fail(ErrorKind::kDamaged, "is larger than 16 MiB: it is not a map", {source});
  auto parsed = parse_json<MapJson>(json);
  if (!parsed.problem.empty())
    return fail(ErrorKind::kDamaged, "is " + json_error_text(parsed),
                {source, json_error_offset(parsed)});
  EditedJson in;
  ModelMap map = read_map(in, parsed.tree);
  if (in.ok()) return map;
  return fail(ErrorKind::kDamaged, "is not a map that can be used: " + in.error(), {source});
}

}  // namespace shw
