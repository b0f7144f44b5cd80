// Writes a plan as JSON; plan_json_read.cpp reads it.
//
//   {"schema": "shardwright/2", "plan": 3, "checkpoint", "fingerprint",
//    "lossless", only in a plan of repairs alone,
//    "inputs": [{"checkpoint", "fingerprint"}], other checkpoints that elements are read from,
//    "steps": [{"step": "repair", "does": "relabel", "rule", "subjects", "text", "tiles",
//               "bytes_moved", "elements_lost", "lossless"}, the repairs, followed by
//              {"step": "cast", "tensors": ["*.weight"], "dtype": "bfloat16"}, see steps_json.cpp],
//    "target": {"format", "shard_bytes", "weights_only",
//      the state after the repairs, before the other steps:
//      "tensors": [{"tensor", "fqn", "shape", "lost": [box], "lost_elements", "fill", "fill_from",
//                   "fill_checkpoint", "new_fqn", if it is renamed,
//                   "chunks": [{"offsets", "sizes", "writer", "item" | "pieces", "side"}]}],
//                 an "item" with a "side" has its bytes there, not where the record says
//      "objects": [{"object", "fqn", "new_fqn"}], non-tensor entries that are renamed
//      "entries": [{"fqn", "entry", "from", "item_of"}]}, entries that get another entry's value
//    "undecided": [{"rule", "severity", "subjects", "cause", "evidence"}], not repaired,
//    "hash": of what the plan does, whatever the checkpoint's path; the reader ignores it}
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/base/version.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Box& box) {
  return {{"offsets", box.offsets}, {"sizes", box.sizes}};
}

Json json_of(const std::vector<Box>& boxes) {
  Json list = Json::array();
  for (const Box& box : boxes) list.push_back(json_of(box));
  return list;
}

Json json_of(const std::vector<ExternalPiece>& pieces) {
  Json list = Json::array();
  for (const ExternalPiece& side : pieces) {
    list.push_back({{"file", side.file},
                    {"offset", side.offset},
                    {"length", side.length},
                    {"dtype", name(side.dtype)},
                    {"sizes", side.sizes},
                    {"at", side.at}});
  }
  escape_texts(list);
  return list;
}

Json json_of(const PlannedChunk& chunk) {
  Json out = json_of(chunk.box);
  out["writer"] = chunk.writer;
  if (chunk.item) {
    out["item"] = index_of(*chunk.item);
    if (!chunk.external.empty()) out["side"] = json_of(chunk.external);
    return out;
  }
  out["pieces"] = Json::array();
  for (const Piece& piece : chunk.pieces) {
    Json one = {{"chunk", index_of(piece.chunk)}};
    one.update(json_of(piece.source));
    one["at"] = piece.at;
    if (!piece.permutation.empty()) one["permutation"] = piece.permutation;
    out["pieces"].push_back(std::move(one));
  }
  if (!chunk.external.empty()) out["side"] = json_of(chunk.external);
  return out;
}

std::string folder_of_source(const std::shared_ptr<const Checkpoint>& checkpoint) {
  const bool lies_there = checkpoint != nullptr && checkpoint->directory() != nullptr;
  return lies_there ? checkpoint->directory()->name() : std::string();
}

Json json_without_chunks(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  Json out = {{"tensor", index_of(tensor.tensor)},
              {"fqn", checkpoint.fqn(tensor.tensor)},
              {"shape", tensor.shape},
              {"lost", json_of(tensor.lost)},
              {"lost_elements", tensor.lost_elements}};
  if (tensor.lost_elements != 0) {
    out["fill"] = name(tensor.fill);
    if (tensor.fill != Fill::kZero) out["fill_from"] = tensor.fill_from;
    if (tensor.fill == Fill::kReference)
      out["fill_checkpoint"] = folder_of_source(tensor.fill_source);
  }
  if (!tensor.fqn.empty()) out["new_fqn"] = tensor.fqn;
  out["chunks"] = Json::array();
  escape_texts(out);
  return out;
}

Json json_of(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  Json out = json_without_chunks(checkpoint, tensor);
  for (const PlannedChunk& chunk : tensor.chunks) out["chunks"].push_back(json_of(chunk));
  return out;
}

// Identifiers are already text here. Other strings, which are only shown, may contain invalid
// UTF-8.
std::string dump_replacing_invalid_utf8(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Position in the plan's text of the target's tensor list, which is empty there.
std::size_t tensor_list_position(std::string_view text, int indent) {
  // Inside a JSON string the quotes would be escaped, so this cannot match there.
  const std::string_view empty = indent >= 0 ? "\"tensors\": []" : "\"tensors\":[]";
  return text.find(empty, text.find("\"target\":")) + empty.size() - 1;
}

// Inserts the tensors into the empty list one by one: a JSON tree of millions of chunks would take
// gigabytes.
std::string insert_tensors(std::string text, const Checkpoint& checkpoint, const Plan& plan,
                           int indent) {
  if (plan.tensors.empty()) return text;
  const std::string margin(3 * static_cast<std::size_t>(indent), ' ');
  const std::size_t at = tensor_list_position(text, indent);
  const std::string rest = text.substr(at);
  text.resize(at);
  for (const PlannedTensor& tensor : plan.tensors) {
    text += text.size() == at ? "\n" : ",\n";
    text += margin;
    for (char one : dump_replacing_invalid_utf8(json_of(checkpoint, tensor), indent)) {
      text += one;
      if (one == '\n') text += margin;
    }
  }
  text += "\n" + std::string(2 * static_cast<std::size_t>(indent), ' ');
  text += rest;
  return text;
}

// Writes the same text as the JSON tree in a tenth of the time: there may be millions of chunks.
class ChunkText {
 public:
  explicit ChunkText(std::string& out) : out_(out) {}
  void add(const PlannedChunk& chunk) {
    out_ += '{';
    add(chunk.box);
    fmt::format_to(std::back_inserter(out_), ",\"writer\":{}", chunk.writer);
    if (chunk.item) {
      fmt::format_to(std::back_inserter(out_), ",\"item\":{}", index_of(*chunk.item));
    } else {
      out_ += ",\"pieces\":[";
      for (const Piece& piece : chunk.pieces) add(piece, &piece == &chunk.pieces.front());
      out_ += ']';
    }
    if (!chunk.external.empty())
      out_ += ",\"side\":" + dump_replacing_invalid_utf8(json_of(chunk.external), -1);
    out_ += '}';
  }

 private:
  void add(const Piece& piece, bool is_first) {
    fmt::format_to(std::back_inserter(out_), "{}\"chunk\":{},", is_first ? "{" : ",{",
                   index_of(piece.chunk));
    add(piece.source);
    add(",\"at\":", piece.at);
    if (!piece.permutation.empty()) add(",\"permutation\":", piece.permutation);
    out_ += '}';
  }
  void add(const Box& box) {
    add("\"offsets\":", box.offsets);
    add(",\"sizes\":", box.sizes);
  }
  void add(std::string_view key, const Extents& numbers) {
    out_ += key;
    out_ += '[';
    for (std::size_t d = 0; d < numbers.size(); ++d) {
      if (d != 0) out_ += ',';
      const fmt::format_int digits(numbers[d]);
      out_.append(digits.data(), digits.size());
    }
    out_ += ']';
  }

  std::string& out_;
};

void add_in_one_line(const Checkpoint& checkpoint, const PlannedTensor& tensor, std::string& text) {
  const std::string head = dump_replacing_invalid_utf8(json_without_chunks(checkpoint, tensor), -1);
  text.append(head, 0, head.size() - 2);  // up to "chunks":[
  ChunkText chunks(text);
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    if (i != 0) text += ',';
    chunks.add(tensor.chunks[i]);
  }
  text += "]}";
}

// JSON cannot represent infinities and NaN: written as null, the plan could not be read again.
Json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json json_of(const Finding& finding) {
  Json out = {{"rule", finding.rule},
              {"severity", kSeverities[static_cast<std::size_t>(finding.severity)]},
              {"subjects", finding.subjects},
              {"cause", finding.cause},
              {"evidence", Json::object()}};
  for (const auto& [key, value] : finding.evidence) {
    out["evidence"][key] = std::visit(
        [](const auto& v) {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::vector<Box>>)
            return json_of(v);
          else if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>)
            return number_json(v);
          else
            return Json(v);
        },
        value);
  }
  return out;
}

// Starts the hash of what the plan does, without the checkpoint's path and undecided findings.
// `plan` lacks the tensors, whose text is added later.
RunningHash begin_plan_hash(const Json& plan) {
  RunningHash hash;
  Json done = plan;
  for (const char* key : {"checkpoint", "undecided", "of_other_ranks"}) done.erase(key);
  const std::string text = dump_replacing_invalid_utf8(done, -1);
  hash.add(std::as_bytes(std::span(text)));
  return hash;
}

std::string hash_of_plan(const Json& frame, const Checkpoint& checkpoint, const Plan& plan) {
  RunningHash hash = begin_plan_hash(frame);
  std::string text;
  for (const PlannedTensor& tensor : plan.tensors) {
    text.clear();
    add_in_one_line(checkpoint, tensor, text);
    hash.add(std::as_bytes(std::span(text)));
  }
  return hash.text();
}

// Serialises each tensor once, for both the text and the hash.
std::string text_in_one_line(Json frame, const Checkpoint& checkpoint, const Plan& plan) {
  RunningHash hash = begin_plan_hash(frame);
  if (plan.tensors.empty()) {
    frame["hash"] = hash.text();
    return dump_replacing_invalid_utf8(frame, -1);
  }
  std::string text = dump_replacing_invalid_utf8(frame, -1);
  const std::size_t at = tensor_list_position(text, -1);
  text.resize(at);
  std::size_t chunks = 0, done = 0;
  for (const PlannedTensor& tensor : plan.tensors) chunks += tensor.chunks.size();
  for (const PlannedTensor& tensor : plan.tensors) {
    if (text.size() != at) text += ',';
    const std::size_t begin = text.size();
    add_in_one_line(checkpoint, tensor, text);
    hash.add(std::as_bytes(std::span(text).subspan(begin)));
    done += tensor.chunks.size();
    if (done == 0) continue;
    // Growing by doubling would need one and a half times the memory at once; reserved pages that
    // are never written cost nothing.
    const std::size_t of_one = std::min<std::size_t>((text.size() - at) / done + 16, 256);
    const std::size_t wanted = text.size() + (chunks - done) * of_one;
    if (text.capacity() < wanted) text.reserve(wanted);
  }
  frame["hash"] = hash.text();
  text += std::string_view(dump_replacing_invalid_utf8(frame, -1)).substr(at);
  return text;
}

Json json_of_repair_step(const Operation& operation) {
  Json out = {{"step", "repair"}, {"does", name(operation.kind)}};
  Json rest = json_of(operation);
  rest.erase("kind");
  out.update(rest);
  return out;
}

// The target: what findings ask for, without the chunks of tensors, then the output format.
Json target_json_of(const Checkpoint* checkpoint, const Plan& plan) {
  Json out = Json::object();
  if (!plan.format.empty()) out["format"] = plan.format;
  if (plan.shard_bytes != 0) out["shard_bytes"] = plan.shard_bytes;
  if (plan.weights_only) out["weights_only"] = true;
  if (!plan.tensors.empty()) out["tensors"] = Json::array();
  for (const PlannedEntry& entry : plan.entries) {
    out["entries"].push_back({{"fqn", checkpoint->objects()[entry.object].fqn},
                              {"entry", entry.object},
                              {"from", checkpoint->objects()[entry.item_of].fqn},
                              {"item_of", entry.item_of}});
  }
  for (const RenamedObject& object : plan.objects) {
    out["objects"].push_back({{"object", object.object},
                              {"fqn", checkpoint->objects()[object.object].fqn},
                              {"new_fqn", object.fqn}});
  }
  return out;
}

// Inputs that the plan names, and the checkpoint that its tensors are filled from.
std::vector<PlanInput> inputs_of(const Plan& plan) {
  std::vector<PlanInput> inputs = plan.inputs;
  for (const PlannedTensor& tensor : plan.tensors) {
    const std::string path =
        tensor.fill == Fill::kReference ? folder_of_source(tensor.fill_source) : "";
    const bool is_known =
        path.empty() || std::any_of(inputs.begin(), inputs.end(), [&](const PlanInput& input) {
          return input.checkpoint == path;
        });
    if (!is_known) inputs.push_back({path, fingerprint(*tensor.fill_source)});
  }
  return inputs;
}

// The plan without its tensors and its hash. `checkpoint` is null for a plan of steps only.
Json plan_json_without_tensors(const Checkpoint* checkpoint, const Plan& plan) {
  Json out = {{"schema", kJsonSchema},
              {"plan", kPlanVersion},
              {"checkpoint", plan.checkpoint},
              {"fingerprint", checkpoint == nullptr ? plan.fingerprint : fingerprint(*checkpoint)}};
  if (!plan.transforms()) out["lossless"] = plan.lossless;
  for (const PlanInput& input : inputs_of(plan))
    out["inputs"].push_back({{"checkpoint", input.checkpoint}, {"fingerprint", input.fingerprint}});
  out["steps"] = Json::array();
  for (const Operation& operation : plan.operations)
    out["steps"].push_back(json_of_repair_step(operation));
  for (const Step& step : plan.steps) out["steps"].push_back(json_of_step(step));
  Json target = target_json_of(checkpoint, plan);
  if (!target.empty()) out["target"] = std::move(target);
  if (!plan.of_other_ranks.empty()) out["of_other_ranks"] = plan.of_other_ranks;
  escape_texts(out);
  out["undecided"] = Json::array();
  for (const Finding& finding : plan.undecided) out["undecided"].push_back(json_of(finding));
  return out;
}

}  // namespace

std::string plan_hash(const Checkpoint& checkpoint, const Plan& plan) {
  return hash_of_plan(plan_json_without_tensors(&checkpoint, plan), checkpoint, plan);
}

std::string plan_text(const Checkpoint& checkpoint, const Plan& plan, int indent) {
  Json out = plan_json_without_tensors(&checkpoint, plan);
  if (indent < 0) return text_in_one_line(std::move(out), checkpoint, plan);
  out["hash"] = hash_of_plan(out, checkpoint, plan);
  return insert_tensors(dump_replacing_invalid_utf8(out, indent), checkpoint, plan, indent);
}

std::string plan_to_json(const Checkpoint& checkpoint, const Plan& plan) {
  return plan_text(checkpoint, plan, 1) + "\n";
}

std::string plan_hash(const Plan& plan) {
  assert(!plan.repairs());
  return begin_plan_hash(plan_json_without_tensors(nullptr, plan)).text();
}

std::string plan_to_json(const Plan& plan) {
  assert(!plan.repairs());
  Json out = plan_json_without_tensors(nullptr, plan);
  out["hash"] = begin_plan_hash(out).text();
  return dump_replacing_invalid_utf8(out, 1);
}

}  // namespace shw
