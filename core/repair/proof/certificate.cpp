// Reads certificate.json:
//
//   {"schema": "shardwright/2", "lossless",
//    "tensors": {fqn: {"kept", "lost", "lost_boxes": [{"offsets", "sizes"}],
//                      "items", "before", "after", "tiles", "shape", "dtype",
//                      "renamed_from", if it had another name,
//                      "fill": "zero" | "cast" | "from" | "side", "fill_from": fqn,
//                      "fill_checkpoint", "cast", if its values were rounded,
//                      "out_of_range", elements that "dtype" cannot hold, neither kept nor lost,
//                      "damaged", copied elements that fail their checksum, not kept either,
//                      "damage", the file and record of the first of these,
//                      "padding", elements at its end that were left out}},
//    "objects": {fqn: {"item", "damage"}}, "files": {path: {"bytes", "rest", "items"}},
//    "entries": [{"fqn", "from", "item"}], only if some changed,
//    "steps": [text], "dropped": [fqn], "trimmed", for a result of steps,
//    "of_other_ranks": [fqn], entries of which other ranks' values were not copied,
//    "left_out": [text], parts next to the entries of the source that the result lacks,
//    "version", "source", "hash": "XXH3-128", "operations": [{"kind", "rule", "text", ...}],
//    "plan": {...} | "plan_zstd": the same compressed, in base64,
//    "content_hash"}
//
// A path or a name that is not UTF-8 is written as escape_name() (utf8.h).
//
// content_hash is the XXH3-128 of all the rest in canonical form: JSON without spaces, the keys of
// every object sorted by their bytes. It detects accidental changes, not forgery.
#include "core/repair/proof/certificate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/checked.h"
#include "core/base/destroy_in_background.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/facts/storage/filled.h"
#include "core/io/read_whole.h"
#include "core/repair/plan/json.h"

namespace shw {
namespace {

using In = nlohmann::json;  // sorted: one ordered by insertion looks every key up linearly

bool read(const In& json, std::int64_t& out) {
  const auto number = json_integer(json);
  if (number) out = *number;
  return number.has_value();
}
bool read(const In& json, bool& out) {
  if (json.is_boolean()) out = json.get<bool>();
  return json.is_boolean();
}
bool read(const In& json, std::string& out) {
  if (json.is_string()) out = unescape_name(json.get_ref<const std::string&>());
  return json.is_string();
}
bool read(const In& json, Extents& out) {
  if (!json.is_array()) return false;
  for (const In& one : json) {
    std::int64_t number = 0;
    if (!read(one, number)) return false;
    out.push_back(number);
  }
  return true;
}
bool read(const In& json, Box& out);
bool read(const In& json, Operation& out);
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
  return read(member_or_null(json, "offsets"), out.offsets) &&
         read(member_or_null(json, "sizes"), out.sizes) && out.offsets.size() == out.sizes.size() &&
         out.sizes.size() <= kMaxDims;
}
bool read(const In& json, TensorCertificate& out) {
  auto read_text = [&](const char* key, std::string& text) {
    return member_or_null(json, key).is_null() || read(member_or_null(json, key), text);
  };
  if (!read_text("fill", out.fill) || !read_text("fill_from", out.fill_from) ||
      !read_text("fill_checkpoint", out.fill_checkpoint) || !read_text("dtype", out.dtype))
    return false;
  if (!member_or_null(json, "cast").is_null() && !read(member_or_null(json, "cast"), out.is_cast))
    return false;
  if (!member_or_null(json, "padding").is_null() &&
      !read(member_or_null(json, "padding"), out.padding))
    return false;
  if (!member_or_null(json, "out_of_range").is_null() &&
      !read(member_or_null(json, "out_of_range"), out.out_of_range))
    return false;
  if (!member_or_null(json, "damaged").is_null() &&
      !read(member_or_null(json, "damaged"), out.damaged))
    return false;
  if (!read_text("damage", out.damage)) return false;
  return read(member_or_null(json, "items"), out.items) && read_text("before", out.before) &&
         read(member_or_null(json, "after"), out.after) &&
         read(member_or_null(json, "tiles"), out.tiles) &&
         read(member_or_null(json, "kept"), out.kept) &&
         read(member_or_null(json, "lost"), out.lost) &&
         read(member_or_null(json, "lost_boxes"), out.lost_boxes) &&
         read(member_or_null(json, "shape"), out.shape) &&
         read_text("renamed_from", out.renamed_from);
}
bool read(const In& json, EntryCertificate& out) {
  return read(member_or_null(json, "fqn"), out.fqn) &&
         read(member_or_null(json, "from"), out.from) &&
         read(member_or_null(json, "item"), out.item);
}
bool read(const In& json, Operation& out) {
  std::string kind;
  std::int64_t moved = 0;
  bool complete = read(member_or_null(json, "kind"), kind) &&
                  read(member_or_null(json, "rule"), out.rule) &&
                  read(member_or_null(json, "subjects"), out.subjects) &&
                  read(member_or_null(json, "text"), out.text) &&
                  read(member_or_null(json, "tiles"), out.tiles) &&
                  read(member_or_null(json, "bytes_moved"), moved) && moved >= 0 &&
                  read(member_or_null(json, "elements_lost"), out.elements_lost) &&
                  read(member_or_null(json, "lossless"), out.lossless);
  if (!complete) return false;
  out.bytes_moved = static_cast<std::uint64_t>(moved);
  for (int i = 0; i <= static_cast<int>(OperationKind::kRewriteMetadata); ++i) {
    out.kind = static_cast<OperationKind>(i);
    if (name(out.kind) == kind) return true;
  }
  return false;
}

constexpr const char* kContentHash = "content_hash";

// Hash of the certificate without its "content_hash".
std::string content_hash(const In& certificate) {
  std::string text = certificate.dump(-1, ' ', false, In::error_handler_t::replace);
  return to_hex(hash_of(std::as_bytes(std::span(text))));
}

// Rejects duplicate keys: two readers could read two different certificates.
class UniqueKeys {
 public:
  bool handle_event(In::parse_event_t event, const In& parsed) {
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

Certificate::Seal remove_and_check_seal(In& certificate) {
  auto found = certificate.find(kContentHash);
  if (found == certificate.end()) return Certificate::Seal::kMissing;
  In said = *found;
  certificate.erase(found);
  return said == content_hash(certificate) ? Certificate::Seal::kIntact
                                           : Certificate::Seal::kBroken;
}

// Certificates of earlier versions lack both "objects" and "files".
bool read_objects_and_files(const In& parsed, Certificate& out) {
  const In &objects = member_or_null(parsed, "objects"), &files = member_or_null(parsed, "files");
  bool plain = (objects.is_null() || objects.is_object()) && (files.is_null() || files.is_object());
  for (const auto& [fqn, value] : objects.items()) {
    out.objects.push_back({unescape_name(fqn), {}});
    plain = plain && read(member_or_null(value, "item"), out.objects.back().item) &&
            (member_or_null(value, "damage").is_null() ||
             read(member_or_null(value, "damage"), out.objects.back().damage));
  }
  for (const auto& [path, value] : files.items()) {
    std::int64_t size = 0;
    out.files.push_back({unescape_name(path), 0, {}});
    plain = plain && read(member_or_null(value, "bytes"), size) && size >= 0 &&
            read(member_or_null(value, "rest"), out.files.back().rest) &&
            (member_or_null(value, "items").is_null() ||
             read(member_or_null(value, "items"), out.files.back().items));
    out.files.back().size = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
  }
  return plain;
}

}  // namespace

std::map<std::string, std::int64_t> out_of_range_in(const Certificate& certificate) {
  std::map<std::string, std::int64_t> found;
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.out_of_range != 0) found[tensor.fqn] = tensor.out_of_range;
  }
  return found;
}

Result<Certificate> certificate_from_json(std::string_view json, const std::string& source,
                                          const Progress* progress) {
  auto damaged = [&](const std::string& what) {
    return fail(ErrorKind::kDamaged, "is not a certificate: " + what, {source});
  };
  UniqueKeys keys;
  auto keeps = [&](int depth, In::parse_event_t event, const In& value) {
    return depth < 32 && keys.handle_event(event, value);
  };
  In parsed = parse_json<In>(json, keeps, progress).tree;
  if (is_cancelled(progress)) {
    destroy_in_background(std::move(parsed));
    return cancelled_error();
  }
  if (parsed.is_discarded()) return damaged("it is not JSON");
  if (!keys.unique()) return damaged("a key occurs twice");
  std::string schema;
  if (!read(member_or_null(parsed, "schema"), schema)) return damaged("\"schema\" is missing");
  if (!is_readable_schema(schema))
    return fail(ErrorKind::kUnsupported, "is a certificate of an unsupported version", {source});
  Certificate certificate;
  certificate.seal = remove_and_check_seal(parsed);
  const In& tensors = member_or_null(parsed, "tensors");
  if (!read(member_or_null(parsed, "lossless"), certificate.lossless) || !tensors.is_object() ||
      !read(member_or_null(parsed, "version"), certificate.version) ||
      !read(member_or_null(parsed, "source"), certificate.source) ||
      !read(member_or_null(parsed, "operations"), certificate.operations)) {
    return damaged("a key is missing or has the wrong type");
  }
  if (!read_objects_and_files(parsed, certificate))
    return damaged("an object or a file is incomplete");
  auto optional = [&](const char* key, auto& value) {
    return member_or_null(parsed, key).is_null() || read(member_or_null(parsed, key), value);
  };
  if (!optional("steps", certificate.steps) || !optional("dropped", certificate.dropped) ||
      !optional("trimmed", certificate.trimmed) ||
      !optional("of_other_ranks", certificate.of_other_ranks) ||
      !optional("left_out", certificate.left_out))
    return damaged("the list of operations is incomplete");
  const In& plan = member_or_null(parsed, "plan");
  if (plan.is_object()) certificate.plan = plan.dump(-1, ' ', false, In::error_handler_t::replace);
  if (!optional("plan_zstd", certificate.plan)) return damaged("its plan is not text");
  const In& entries = member_or_null(parsed, "entries");
  if (!entries.is_null() && !read(entries, certificate.entries))
    return damaged("an entry that is not a tensor is incomplete");
  for (const auto& [fqn, value] : tensors.items()) {
    if (is_cancelled(progress)) {
      destroy_in_background(std::pair(std::move(parsed), std::move(certificate)));
      return cancelled_error();
    }
    TensorCertificate tensor;
    tensor.fqn = unescape_name(fqn);
    // Versions before 0.1.0 wrote "items_after" and "layout" instead.
    if (member_or_null(value, "tiles").is_null() && !member_or_null(value, "layout").is_null())
      return fail(ErrorKind::kUnsupported, "is a certificate of an unsupported version", {source});
    if (!read(value, tensor)) return damaged("the entry of " + fqn + " is incomplete");
    certificate.tensors.push_back(std::move(tensor));
  }
  return certificate;
}

Result<Certificate> certificate_in(const Directory& directory, const Progress* progress) {
  SHW_TRY(auto file, directory.open(kCertificateFile));
  SHW_TRY(Bytes bytes, read_whole(*file));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return certificate_from_json(text, kCertificateFile, progress);
}

}  // namespace shw
