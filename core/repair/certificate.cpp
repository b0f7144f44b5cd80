// certificate.json, and back. The keys of design 5.1 come first; more are added after them:
//
//   {"schema": "shardwright/1", "lossless",
//    "tensors": {fqn: {"kept", "lost", "lost_boxes": [{"offsets", "sizes"}],
//                      "items_before": [hash], "items_after": [hash], "shape", "layout",
//                      "renamed_from", where it had another name,
//                      "fill": "zero" | "cast" | "from", "fill_from": fqn, "fill_checkpoint",
//                      "inverse": [{"sizes", "hash", "parts": [{"at", "from", "sizes",
//                      "order"}]}]}},
//    "objects": {fqn: {"item"}}, "files": {path: {"bytes", "rest"}},
//    "entries": [{"fqn", "from", "item"}], only where some changed,
//    "steps": [text], "dropped": [fqn], "trimmed", of what was made by steps; "cast" in a tensor
//    whose values were rounded,
//    "version", "source", "hash": "XXH3-128", "operations": [{"kind", "rule", "text", ...}],
//    "content_hash"}
//
// content_hash is the XXH3-128 of all the rest in canonical form: JSON without spaces, the keys of
// every object sorted by their bytes. It guards against a slip of the hand, not against a forger.
#include "core/repair/certificate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/repair/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;
using In = nlohmann::json;  // sorted: one ordered by insertion looks every key up linearly

Json json_of(const TensorCertificate& tensor) {
  Json boxes = Json::array();
  for (const Box& box : tensor.lost_boxes)
    boxes.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  Json out = {{"kept", tensor.kept},
              {"lost", tensor.lost},
              {"lost_boxes", std::move(boxes)},
              {"items_before", tensor.items_before},
              {"items_after", tensor.items_after},
              {"shape", tensor.shape},
              {"dtype", tensor.dtype},
              {"layout", tensor.layout}};
  if (tensor.is_cast) out["cast"] = true;
  if (!tensor.renamed_from.empty()) out["renamed_from"] = tensor.renamed_from;
  if (!tensor.fill.empty()) out["fill"] = tensor.fill;
  if (!tensor.fill_from.empty()) out["fill_from"] = tensor.fill_from;
  if (!tensor.fill_checkpoint.empty()) out["fill_checkpoint"] = tensor.fill_checkpoint;
  if (tensor.inverse.empty()) return out;
  Json inverse = Json::array();
  for (const InverseChunk& chunk : tensor.inverse) {
    Json parts = Json::array();
    for (const InverseChunk::Part& part : chunk.parts) {
      parts.push_back({{"at", part.at}, {"from", part.from}, {"sizes", part.sizes}});
      if (!part.order.empty()) parts.back()["order"] = part.order;
    }
    inverse.push_back({{"sizes", chunk.sizes}, {"hash", chunk.hash}, {"parts", std::move(parts)}});
  }
  out["inverse"] = std::move(inverse);
  return out;
}

// Null where a member is missing or of another type: the caller asks the type.
const In& member(const In& object, const char* key) {
  static const In kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool read(const In& json, std::int64_t& out) {
  if (!json.is_number_integer()) return false;
  auto number = json.is_number_unsigned() ? narrow<std::int64_t>(json.get<std::uint64_t>())
                                          : std::optional(json.get<std::int64_t>());
  if (number) out = *number;
  return number.has_value();
}
bool read(const In& json, bool& out) {
  if (json.is_boolean()) out = json.get<bool>();
  return json.is_boolean();
}
bool read(const In& json, std::string& out) {
  if (json.is_string()) out = json.get<std::string>();
  return json.is_string();
}
bool read(const In& json, Box& out);
bool read(const In& json, Operation& out);
bool read(const In& json, InverseChunk& out);
bool read(const In& json, InverseChunk::Part& out);
bool read(const In& json, EntryCertificate& out);
template <class T>
bool read(const In& json, std::vector<T>& out) {
  if (!json.is_array()) return false;
  for (const In& one : json) {
    out.emplace_back();
    if (!read(one, out.back())) return false;
  }
  return true;
}
bool read(const In& json, Box& out) {
  return read(member(json, "offsets"), out.offsets) && read(member(json, "sizes"), out.sizes) &&
         out.offsets.size() == out.sizes.size() && out.sizes.size() <= kMaxDims;
}
bool read(const In& json, InverseChunk::Part& out) {
  return read(member(json, "at"), out.at) && read(member(json, "from"), out.from) &&
         read(member(json, "sizes"), out.sizes) &&
         (member(json, "order").is_null() || read(member(json, "order"), out.order));
}
bool read(const In& json, InverseChunk& out) {
  return read(member(json, "sizes"), out.sizes) && read(member(json, "hash"), out.hash) &&
         read(member(json, "parts"), out.parts) && out.sizes.size() <= kMaxDims;
}
bool read(const In& json, TensorCertificate& out) {
  // Certificates of before have none.
  const In& inverse = member(json, "inverse");
  if (!inverse.is_null() && !read(inverse, out.inverse)) return false;
  auto read_text = [&](const char* key, std::string& text) {
    return member(json, key).is_null() || read(member(json, key), text);
  };
  if (!read_text("fill", out.fill) || !read_text("fill_from", out.fill_from) ||
      !read_text("fill_checkpoint", out.fill_checkpoint) || !read_text("dtype", out.dtype))
    return false;
  if (!member(json, "cast").is_null() && !read(member(json, "cast"), out.is_cast)) return false;
  return read(member(json, "kept"), out.kept) && read(member(json, "lost"), out.lost) &&
         read(member(json, "lost_boxes"), out.lost_boxes) &&
         read(member(json, "items_before"), out.items_before) &&
         read(member(json, "items_after"), out.items_after) &&
         read(member(json, "shape"), out.shape) && read(member(json, "layout"), out.layout) &&
         (member(json, "renamed_from").is_null() ||
          read(member(json, "renamed_from"), out.renamed_from));
}
bool read(const In& json, EntryCertificate& out) {
  return read(member(json, "fqn"), out.fqn) && read(member(json, "from"), out.from) &&
         read(member(json, "item"), out.item);
}
bool read(const In& json, Operation& out) {
  std::string kind;
  std::int64_t moved = 0;
  bool complete = read(member(json, "kind"), kind) && read(member(json, "rule"), out.rule) &&
                  read(member(json, "subjects"), out.subjects) &&
                  read(member(json, "text"), out.text) && read(member(json, "tiles"), out.tiles) &&
                  read(member(json, "bytes_moved"), moved) && moved >= 0 &&
                  read(member(json, "elements_lost"), out.elements_lost) &&
                  read(member(json, "lossless"), out.lossless);
  if (!complete) return false;
  out.bytes_moved = static_cast<std::uint64_t>(moved);
  for (int i = 0; i <= static_cast<int>(OperationKind::kRewriteMetadata); ++i) {
    out.kind = static_cast<OperationKind>(i);
    if (name(out.kind) == kind) return true;
  }
  return false;
}

constexpr const char* kContentHash = "content_hash";

// Of the certificate without its hash.
std::string content_hash(const In& certificate) {
  std::string text = certificate.dump(-1, ' ', false, In::error_handler_t::replace);
  return to_hex(hash_of(std::as_bytes(std::span(text))));
}

// Keys that stand there twice would let two readers read two certificates.
class UniqueKeys {
 public:
  bool take(In::parse_event_t event, const In& parsed) {
    if (event == In::parse_event_t::object_start) open_.emplace_back();
    if (event == In::parse_event_t::object_end && !open_.empty()) open_.pop_back();
    if (event == In::parse_event_t::key && !open_.empty() && parsed.is_string())
      unique_ = open_.back().insert(parsed.get<std::string>()).second && unique_;
    return true;
  }
  bool unique() const { return unique_; }

 private:
  std::vector<std::set<std::string>> open_;
  bool unique_ = true;
};

Json with_seal(const Json& certificate) {
  std::string text = certificate.dump(-1, ' ', false, Json::error_handler_t::replace);
  Json sealed = certificate;
  sealed[kContentHash] = content_hash(In::parse(text, nullptr, false));
  return sealed;
}

Certificate::Seal seal_of(In& certificate) {
  auto found = certificate.find(kContentHash);
  if (found == certificate.end()) return Certificate::Seal::kMissing;
  In said = *found;
  certificate.erase(found);
  return said == content_hash(certificate) ? Certificate::Seal::kHolds : Certificate::Seal::kBroken;
}

void add_objects_and_files(const Certificate& certificate, Json& out) {
  auto& objects = (out["objects"] = Json::object()).get_ref<Json::object_t&>();
  for (const ObjectCertificate& object : certificate.objects)
    objects.push_back({object.fqn, {{"item", object.item}}});
  auto& files = (out["files"] = Json::object()).get_ref<Json::object_t&>();
  for (const FileCertificate& file : certificate.files)
    files.push_back({file.path, {{"bytes", file.size}, {"rest", file.rest}}});
}

// Both are missing in certificates of before.
bool read_objects_and_files(const In& parsed, Certificate& out) {
  const In &objects = member(parsed, "objects"), &files = member(parsed, "files");
  bool plain = (objects.is_null() || objects.is_object()) && (files.is_null() || files.is_object());
  for (const auto& [fqn, value] : objects.items()) {
    out.objects.push_back({fqn, {}});
    plain = plain && read(member(value, "item"), out.objects.back().item);
  }
  for (const auto& [path, value] : files.items()) {
    std::int64_t size = 0;
    out.files.push_back({path, 0, {}});
    plain = plain && read(member(value, "bytes"), size) && size >= 0 &&
            read(member(value, "rest"), out.files.back().rest);
    out.files.back().size = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
  }
  return plain;
}

}  // namespace

std::string certificate_to_json(const Certificate& certificate) {
  Json out = {{"schema", "shardwright/1"},    {"lossless", certificate.lossless},
              {"tensors", Json::object()},    {"version", certificate.version},
              {"source", certificate.source}, {"hash", "XXH3-128"},
              {"operations", Json::array()}};
  // push_back, not operator[]: an ordered object searches linearly, and there may be 100,000.
  auto& tensors = out["tensors"].get_ref<Json::object_t&>();
  for (const TensorCertificate& tensor : certificate.tensors)
    tensors.push_back({tensor.fqn, json_of(tensor)});
  for (const Operation& operation : certificate.operations)
    out["operations"].push_back(json_of(operation));
  for (const EntryCertificate& entry : certificate.entries)
    out["entries"].push_back({{"fqn", entry.fqn}, {"from", entry.from}, {"item", entry.item}});
  if (!certificate.steps.empty()) out["steps"] = certificate.steps;
  if (!certificate.dropped.empty()) out["dropped"] = certificate.dropped;
  if (certificate.trimmed != 0) out["trimmed"] = certificate.trimmed;
  add_objects_and_files(certificate, out);
  return with_seal(out).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Certificate> certificate_from_json(std::string_view json, const std::string& source) {
  auto damaged = [&](const std::string& what) {
    return fail(ErrorKind::kDamaged, "is no certificate: " + what, {source});
  };
  UniqueKeys keys;
  In parsed = In::parse(
      json,
      [&](int depth, In::parse_event_t event, In& value) {
        return depth < 32 && keys.take(event, value);
      },
      false);
  if (parsed.is_discarded()) return damaged("it is no JSON");
  if (!keys.unique()) return damaged("a key stands there twice");
  std::string schema;
  if (!read(member(parsed, "schema"), schema)) return damaged("\"schema\" is missing");
  if (schema != "shardwright/1")
    return fail(ErrorKind::kUnsupported, "is a certificate of another version", {source});
  Certificate certificate;
  certificate.seal = seal_of(parsed);
  const In& tensors = member(parsed, "tensors");
  if (!read(member(parsed, "lossless"), certificate.lossless) || !tensors.is_object() ||
      !read(member(parsed, "version"), certificate.version) ||
      !read(member(parsed, "source"), certificate.source) ||
      !read(member(parsed, "operations"), certificate.operations)) {
    return damaged("a key is missing or of another type");
  }
  if (!read_objects_and_files(parsed, certificate))
    return damaged("an object or a file is incomplete");
  auto optional = [&](const char* key, auto& value) {
    return member(parsed, key).is_null() || read(member(parsed, key), value);
  };
  if (!optional("steps", certificate.steps) || !optional("dropped", certificate.dropped) ||
      !optional("trimmed", certificate.trimmed))
    return damaged("what was done is incomplete");
  const In& entries = member(parsed, "entries");
  if (!entries.is_null() && !read(entries, certificate.entries))
    return damaged("an entry that is no tensor is incomplete");
  for (const auto& [fqn, value] : tensors.items()) {
    TensorCertificate tensor;
    tensor.fqn = fqn;
    if (!read(value, tensor)) return damaged("the entry of " + fqn + " is incomplete");
    certificate.tensors.push_back(std::move(tensor));
  }
  return certificate;
}

}  // namespace shw
