// Writes certificate.json (certificate.cpp has its keys): one line per tensor, file, entry and
// operation, one after the other. With 100,000 tensors with boxes the JSON tree would take
// gigabytes, and so would the canonical text that content_hash is computed from.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/repair/plan/json.h"
#include "core/repair/proof/certificate.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;
using Sorted = nlohmann::json;

template <class AnyJson>
std::string dump_in_one_line(const AnyJson& json) {
  return json.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

Json json_of(const TensorCertificate& tensor) {
  Json boxes = Json::array();
  for (const Box& box : tensor.lost_boxes)
    boxes.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  Json out = {{"kept", tensor.kept}, {"lost", tensor.lost}, {"lost_boxes", std::move(boxes)}};
  auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  out["items"] = tensor.items;
  add("before", tensor.before);
  out["after"] = tensor.after;
  out["tiles"] = tensor.tiles;
  out["shape"] = tensor.shape;
  out["dtype"] = tensor.dtype;
  if (tensor.is_cast) out["cast"] = true;
  if (tensor.out_of_range != 0) out["out_of_range"] = tensor.out_of_range;
  if (tensor.damaged != 0) out["damaged"] = tensor.damaged;
  add("damage", tensor.damage);
  if (tensor.padding != 0) out["padding"] = tensor.padding;
  add("renamed_from", tensor.renamed_from);
  add("fill", tensor.fill);
  add("fill_from", tensor.fill_from);
  add("fill_checkpoint", tensor.fill_checkpoint);
  return out;
}

Json json_of(const FileCertificate& file) {
  Json out = {{"bytes", file.size}, {"rest", file.rest}};
  if (!file.items.empty()) out["items"] = file.items;
  return out;
}

Json json_of(const ObjectCertificate& object) {
  Json out = {{"item", object.item}};
  if (!object.damage.empty()) out["damage"] = object.damage;
  return out;
}

Json json_of(const EntryCertificate& entry) {
  return {{"fqn", entry.fqn}, {"from", entry.from}, {"item", entry.item}};
}

// One key of the certificate: its value as it is written, and in canonical form.
struct Member {
  std::string key, text, canonical;
};

// A list or object written line by line: a list if no line has a name.
class Lines {
 public:
  explicit Lines(bool named) : named_(named) {}

  void add(const std::string& name, Json value) {
    escape_texts(value);
    std::string text = dump_in_one_line(value);
    std::string key = named_ ? dump_in_one_line(Sorted(escape_name(name))) : std::string();
    text_ += text_.empty() ? "\n  " : ",\n  ";
    text_ += named_ ? key + ": " + text : text;
    std::string canonical = dump_in_one_line(Sorted::parse(text, nullptr, false));
    lines_.push_back({std::move(key), {}, std::move(canonical)});
  }

  Member take(std::string key) {
    if (named_) {
      auto bytes = [](const std::string& quoted) {
        return Sorted::parse(quoted, nullptr, false).get<std::string>();
      };
      std::vector<std::pair<std::string, std::size_t>> order;
      for (std::size_t i = 0; i < lines_.size(); ++i) order.emplace_back(bytes(lines_[i].key), i);
      std::sort(order.begin(), order.end());
      std::vector<Member> sorted;
      for (const auto& [name, i] : order) sorted.push_back(std::move(lines_[i]));
      lines_ = std::move(sorted);
    }
    Member out{std::move(key), std::string(1, named_ ? '{' : '['), {}};
    out.canonical = out.text;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      out.canonical += i == 0 ? "" : ",";
      if (named_) out.canonical += lines_[i].key + ":";
      out.canonical += lines_[i].canonical;
    }
    const char* end = named_ ? "}" : "]";
    out.text += text_.empty() ? end : text_ + "\n " + end;
    out.canonical += end;
    return out;
  }

 private:
  bool named_;
  std::string text_;
  std::vector<Member> lines_;
};

Member member_of(std::string key, Json value) {
  escape_texts(value);
  std::string text = dump_in_one_line(value);
  std::string canonical = dump_in_one_line(Sorted::parse(text, nullptr, false));
  return {std::move(key), std::move(text), std::move(canonical)};
}

std::string content_hash_of(const std::vector<Member>& members) {
  std::vector<const Member*> sorted;
  for (const Member& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(),
            [](const Member* a, const Member* b) { return a->key < b->key; });
  RunningHash hash;
  auto add = [&](std::string_view text) { hash.add(std::as_bytes(std::span(text))); };
  add("{");
  for (const Member* member : sorted) {
    if (member != sorted.front()) add(",");
    add("\"" + member->key + "\":");
    add(member->canonical);
  }
  add("}");
  return hash.text();
}

Member plan_member(const std::string& plan) {
  if (!plan.starts_with('{')) return member_of("plan_zstd", plan);
  // Keys stay in the order in which they were read, so reading and writing again gives the same
  // text.
  std::string text = dump_in_one_line(Sorted::parse(plan, nullptr, false));
  return {"plan", text, text};
}

}  // namespace

std::string certificate_to_json(const Certificate& certificate) {
  Lines tensors(true), operations(false), entries(false), objects(true), files(true);
  for (const TensorCertificate& tensor : certificate.tensors)
    tensors.add(tensor.fqn, json_of(tensor));
  for (const Operation& operation : certificate.operations) operations.add({}, json_of(operation));
  for (const EntryCertificate& entry : certificate.entries) entries.add({}, json_of(entry));
  for (const ObjectCertificate& object : certificate.objects)
    objects.add(object.fqn, json_of(object));
  for (const FileCertificate& file : certificate.files) files.add(file.path, json_of(file));

  std::vector<Member> members;
  members.push_back(member_of("schema", kJsonSchema));
  members.push_back(member_of("lossless", certificate.lossless));
  members.push_back(tensors.take("tensors"));
  members.push_back(member_of("version", certificate.version));
  members.push_back(member_of("source", certificate.source));
  members.push_back(member_of("hash", "XXH3-128"));
  members.push_back(operations.take("operations"));
  if (!certificate.entries.empty()) members.push_back(entries.take("entries"));
  if (!certificate.steps.empty()) members.push_back(member_of("steps", certificate.steps));
  if (!certificate.dropped.empty()) members.push_back(member_of("dropped", certificate.dropped));
  if (certificate.trimmed != 0) members.push_back(member_of("trimmed", certificate.trimmed));
  if (!certificate.of_other_ranks.empty())
    members.push_back(member_of("of_other_ranks", certificate.of_other_ranks));
  if (!certificate.left_out.empty()) members.push_back(member_of("left_out", certificate.left_out));
  members.push_back(objects.take("objects"));
  members.push_back(files.take("files"));
  if (!certificate.plan.empty()) members.push_back(plan_member(certificate.plan));
  std::string hash = content_hash_of(members);

  std::string text = "{";
  for (const Member& member : members) text += "\n \"" + member.key + "\": " + member.text + ",";
  return text + "\n \"content_hash\": \"" + hash + "\"\n}\n";
}

}  // namespace shw
