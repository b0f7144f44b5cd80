// Accepted JSON (assets/spec.schema.json):
//   spec  = { fqn: entry, ... }
//   entry = { "shape": [int, ...], "dtype": text | null, "mesh": {axis: int, ...} | null,
//             "placements": [text, ...] | null, "role": text | null, other keys: kept unchanged }
// The keys "$schema", "_comment" and "//" may have any value except an object. The order of a
// mesh's axes matters, but JSON libraries do not keep it: it is recorded while parsing.
#include "core/spec/spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/destroy_in_background.h"
#include "core/base/json.h"
#include "core/io/read_whole.h"
#include "core/spec/spec_key_names.h"

namespace shw {
namespace {

using Json = nlohmann::json;

constexpr int kMaxNesting = 32;  // a spec needs 3; unknown keys may be nested
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;

struct Reader {
  std::string_view text;
  std::string source;
  const Progress* progress = nullptr;
  std::unordered_map<std::string, std::vector<std::string>> axes = {};  // by FQN, in file order
  std::string twice = {};                                               // a duplicate FQN
  std::pair<std::string, std::string> field_twice = {};                 // FQN and a duplicate field
  bool too_deep = false;

  // Byte offset of an entry: the first occurrence of its quoted name.
  std::optional<std::uint64_t> byte_of(const std::string& fqn) const {
    std::size_t at = text.find(Json(fqn).dump());
    return at == std::string_view::npos ? std::nullopt : std::optional<std::uint64_t>(at);
  }
  tl::unexpected<Error> refuse(const std::string& fqn, const std::string& what) const {
    return fail(ErrorKind::kDamaged, what, Place{source, byte_of(fqn), fqn},
                "the format is described by assets/spec.schema.json; assets/export_spec.py writes "
                "it");
  }
};

tl::unexpected<Error> invalid_spec_json_error(const Reader& reader,
                                              const ParsedJson<Json>& parsed) {
  if (parsed.byte && is_cancelled(reader.progress)) return cancelled_error();
  return fail(ErrorKind::kDamaged, json_error_text(parsed),
              Place{reader.source, json_error_offset(parsed)});
}

// Parses the document and records the order of mesh axes.
Result<Json> parse(Reader& reader) {
  std::string fqn, field;
  std::unordered_map<std::string, bool> seen;
  std::set<std::string> fields;  // of the current entry
  auto take_down = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxNesting) reader.too_deep = true;
    if (event != Json::parse_event_t::key) return !reader.too_deep;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1) {
      fqn = key;
      fields.clear();
      if (!seen.try_emplace(key, true).second) reader.twice = key;
    } else if (depth == 2) {
      field = key;
      if (!fields.insert(key).second) reader.field_twice = {fqn, key};
    } else if (depth == 3 && field == "mesh") {
      reader.axes[fqn].push_back(key);
    }
    return true;
  };
  auto parsed = parse_json<Json>(reader.text, take_down, reader.progress);
  if (!parsed.problem.empty()) return invalid_spec_json_error(reader, parsed);
  if (reader.too_deep)
    return fail(ErrorKind::kDamaged,
                fmt::format("nested more than {} deep, which no spec is", kMaxNesting),
                Place{reader.source});
  return std::move(parsed.tree);
}

std::optional<std::int64_t> integer(const Json& value) {
  if (value.is_number_unsigned()) return narrow<std::int64_t>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

Result<Extents> read_shape(const Reader& reader, const std::string& fqn, const Json& value) {
  if (!value.is_array() || value.size() > kMaxDims)
    return reader.refuse(fqn, "\"shape\" must be a list of at most 64 numbers");
  Extents shape;
  for (const Json& extent : value) {
    auto number = integer(extent);
    if (!number || *number < 0)
      return reader.refuse(fqn, "\"shape\" holds " + extent.dump().substr(0, 40) +
                                    " where a whole number from 0 is expected");
    shape.push_back(*number);
  }
  return shape;
}

Result<Mesh> read_mesh(const Reader& reader, const std::string& fqn, const Json& value) {
  if (!value.is_object()) return reader.refuse(fqn, "\"mesh\" must be an object of axis: size");
  Mesh mesh;
  std::int64_t ranks = 1;
  auto order = reader.axes.find(fqn);
  for (const std::string& axis :
       order == reader.axes.end() ? std::vector<std::string>{} : order->second) {
    auto size = integer(value.at(axis));
    auto product = size ? checked_mul(ranks, *size) : std::nullopt;
    if (!size || *size < 1 || !product || mesh.axes.size() == kMaxDims)
      return reader.refuse(
          fqn, "\"mesh\" gives axis " + axis + " the size " + value.at(axis).dump().substr(0, 40));
    ranks = *product;
    mesh.axes.push_back({axis, *size});
  }
  if (mesh.axes.size() != value.size()) return reader.refuse(fqn, "\"mesh\" names an axis twice");
  return mesh;
}

Result<std::vector<Placement>> read_placements(const Reader& reader, const std::string& fqn,
                                               const Json& value) {
  if (!value.is_array()) return reader.refuse(fqn, "\"placements\" must be a list of texts");
  std::vector<Placement> placements;
  for (const Json& text : value) {
    auto placement = text.is_string() ? parse_placement(text.get_ref<const std::string&>())
                                      : std::optional<Placement>{};
    if (!placement)
      return reader.refuse(fqn, "\"placements\" holds " + text.dump().substr(0, 60) +
                                    ", expected Replicate, Shard(dim), StridedShard(dim,sf=n) or "
                                    "Partial(op)");
    placements.push_back(*placement);
  }
  return placements;
}

Result<SpecEntry> read_entry(const Reader& reader, const std::string& fqn, const Json& value) {
  if (!value.is_object() || !value.contains("shape")) {
    std::string meant;
    for (const auto& [key, field] : value.items()) {
      if (value.is_object() && nearest_spec_key(key) == "shape")
        meant = "; \"" + key.substr(0, 40) + "\" is not known, did you mean \"shape\"?";
    }
    return reader.refuse(fqn, "each entry must be an object with at least a \"shape\"" + meant);
  }
  SpecEntry entry;
  Json extra = Json::object();
  for (const auto& [key, field] : value.items()) {
    bool absent = field.is_null();
    if (key == "shape") {
      SHW_TRY(entry.shape, read_shape(reader, fqn, field));
    } else if (key == "dtype") {
      if (absent) continue;
      if (field.is_string())
        entry.dtype = dtype_from_user_text(field.get_ref<const std::string&>());
      if (!entry.dtype)
        return reader.refuse(
            fqn, "\"dtype\" is " + field.dump().substr(0, 60) + ", which torch 2.15 does not have");
    } else if (key == "mesh") {
      if (absent) continue;
      SHW_TRY(entry.mesh, read_mesh(reader, fqn, field));
    } else if (key == "placements") {
      if (absent) continue;
      SHW_TRY(entry.placements, read_placements(reader, fqn, field));
    } else if (key == "role") {
      if (!absent && !field.is_string()) return reader.refuse(fqn, "\"role\" must be a text");
      if (!absent) entry.role = field.get<std::string>();
    } else {
      extra[key] = field;
    }
  }
  if (!extra.empty()) entry.extra = extra.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (entry.mesh && !entry.placements.empty() && entry.placements.size() != entry.mesh->axes.size())
    return reader.refuse(fqn, fmt::format("{} placements for a mesh of {} axes",
                                          entry.placements.size(), entry.mesh->axes.size()));
  for (const Placement& placement : entry.placements) {
    auto ndim = static_cast<std::int64_t>(entry.shape.size());
    bool shards = placement.kind == Placement::Kind::kShard ||
                  placement.kind == Placement::Kind::kStridedShard;
    if (shards && (placement.dim >= ndim || placement.dim < -ndim))
      return reader.refuse(
          fqn, to_text(placement) + " of a tensor of shape " + to_text(ExtentsView(entry.shape)));
  }
  return entry;
}

// Comments and schema references that people and editors add.
bool is_remark(std::string_view key, const Json& value) {
  return !value.is_object() &&
         (key.starts_with('$') || key.starts_with("_comment") || key.starts_with("//"));
}

}  // namespace

Result<Spec> parse_spec(std::string_view json, const std::string& source,
                        const Progress* progress) {
  Reader reader{json, source, progress};
  SHW_TRY(Json document, parse(reader));
  if (!document.is_object())
    return fail(ErrorKind::kDamaged, "a spec is one JSON object, from tensor name to entry",
                Place{source, 0});
  if (const auto& [fqn, field] = reader.field_twice; !field.empty())
    return reader.refuse(fqn, "its \"" + field + "\" occurs twice");
  if (!reader.twice.empty()) return reader.refuse(reader.twice, "this tensor occurs twice");
  Spec spec;
  spec.source = source;
  for (const auto& [fqn, value] : document.items()) {
    if (is_cancelled(progress)) {
      destroy_in_background(std::pair(std::move(document), std::move(spec)));
      return cancelled_error();
    }
    if (is_remark(fqn, value)) continue;
    SHW_TRY(SpecEntry entry, read_entry(reader, fqn, value));
    spec.entries.emplace_hint(spec.entries.end(), fqn, std::move(entry));
  }
  return spec;
}

std::vector<Mesh> named_meshes(const Spec* spec) {
  std::vector<Mesh> meshes;
  if (spec == nullptr) return meshes;
  for (const auto& [fqn, entry] : spec->entries) {
    if (!entry.mesh || std::find(meshes.begin(), meshes.end(), *entry.mesh) != meshes.end())
      continue;
    meshes.push_back(*entry.mesh);
    if (meshes.size() == 8) break;
  }
  return meshes;
}

Result<Spec> load_spec(const std::string& path, const Progress* progress) {
  SHW_TRY(const std::string text, read_whole_text(path, kMaxFile));
  return parse_spec(text, path, progress);
}

}  // namespace shw
