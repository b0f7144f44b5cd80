// A plan as JSON; plan_json_read.cpp reads it.
//
//   {"schema": "shardwright/1", "plan": 1, "checkpoint", "fingerprint", "lossless",
//    "operations": [{"kind", "rule", "subjects", "text", "tiles", "bytes_moved", "elements_lost",
//                    "lossless"}],
//    "tensors": [{"tensor", "fqn", "shape", "lost": [box], "lost_elements", "fill", "fill_from",
//                 "new_fqn", where it is renamed,
//                 "chunks": [{"offsets", "sizes", "writer", "item" | "pieces", "side"}]}],
//               "item" with a "side": its bytes lie there, and not where the record says
//    "objects": [{"object", "fqn", "new_fqn"}], entries that are no tensors and are renamed along
//    "fill_source": {"checkpoint", "fingerprint"}, where something is filled from another one
//    "undecided": [{"rule", "severity", "subjects", "cause", "evidence"}],
//    "hash": of what the plan does, wherever the checkpoint lies; not asked for when it is read}
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/repair/json.h"
#include "core/repair/plan.h"
#include "core/repair/plan_fingerprint.h"
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

Json json_of(const std::vector<SidePiece>& pieces) {
  Json list = Json::array();
  for (const SidePiece& side : pieces) {
    list.push_back({{"file", side.file},
                    {"offset", side.offset},
                    {"length", side.length},
                    {"dtype", name(side.dtype)},
                    {"sizes", side.sizes},
                    {"at", side.at}});
  }
  return list;
}

Json json_of(const PlannedChunk& chunk) {
  Json out = json_of(chunk.box);
  out["writer"] = chunk.writer;
  if (chunk.item) {
    out["item"] = index_of(*chunk.item);
    if (!chunk.side.empty()) out["side"] = json_of(chunk.side);
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
  if (!chunk.side.empty()) out["side"] = json_of(chunk.side);
  return out;
}

Json json_of(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  Json out = {{"tensor", index_of(tensor.tensor)},
              {"fqn", checkpoint.fqn(tensor.tensor)},
              {"shape", tensor.shape},
              {"lost", json_of(tensor.lost)},
              {"lost_elements", tensor.lost_elements}};
  if (tensor.lost_elements != 0) {
    out["fill"] = name(tensor.fill);
    if (tensor.fill != Fill::kZero) out["fill_from"] = tensor.fill_from;
  }
  if (!tensor.fqn.empty()) out["new_fqn"] = tensor.fqn;
  out["chunks"] = Json::array();
  for (const PlannedChunk& chunk : tensor.chunks) out["chunks"].push_back(json_of(chunk));
  return out;
}

// Names in a checkpoint may be no UTF-8: shown with replacement marks, tensors are named by id.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Puts the tensors into the empty list that stands for them, one after the other: the tree of
// millions of chunks would take gigabytes.
std::string with_tensors(std::string text, const Checkpoint& checkpoint, const Plan& plan,
                         int indent) {
  if (plan.tensors.empty()) return text;
  const bool lines = indent >= 0;
  const std::string margin(lines ? 2 * static_cast<std::size_t>(indent) : 0, ' ');
  // Within a string its quotes would be escaped.
  const std::string_view empty = lines ? "\"tensors\": []" : "\"tensors\":[]";
  const std::size_t at = text.find(empty) + empty.size() - 1;
  const std::string rest = text.substr(at);
  text.resize(at);
  for (const PlannedTensor& tensor : plan.tensors) {
    text += text.size() == at ? "" : ",";
    text += lines ? "\n" + margin : "";
    for (char one : dumped(json_of(checkpoint, tensor), indent)) {
      text += one;
      if (one == '\n') text += margin;
    }
  }
  if (lines) text += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  return text + rest;
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
          else
            return Json(v);
        },
        value);
  }
  return out;
}

// Of what is done, not of where the checkpoint lies or of what nothing mends. `plan` is all of it
// but its tensors.
std::string hash_of_plan(const Json& plan, const Checkpoint& checkpoint,
                         const std::vector<PlannedTensor>& tensors) {
  RunningHash hash;
  auto add = [&](const Json& json) {
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    hash.add(std::as_bytes(std::span(text)));
  };
  Json done = plan;
  for (const char* key : {"checkpoint", "undecided"}) done.erase(key);
  add(done);
  for (const PlannedTensor& tensor : tensors) add(json_of(checkpoint, tensor));
  return hash.text();
}

// All of it but its tensors and its hash.
Json frame_of(const Checkpoint& checkpoint, const Plan& plan) {
  Json out = {{"schema", "shardwright/1"},     {"plan", 1},
              {"checkpoint", plan.checkpoint}, {"fingerprint", fingerprint(checkpoint)},
              {"lossless", plan.lossless},     {"operations", Json::array()},
              {"tensors", Json::array()},      {"undecided", Json::array()}};
  for (const Operation& operation : plan.operations)
    out["operations"].push_back(json_of(operation));
  for (const PlannedEntry& entry : plan.entries) {
    out["entries"].push_back({{"fqn", checkpoint.objects()[entry.object].fqn},
                              {"entry", entry.object},
                              {"from", checkpoint.objects()[entry.item_of].fqn},
                              {"item_of", entry.item_of}});
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.fill != Fill::kReference || tensor.fill_source->directory() == nullptr) continue;
    out["fill_source"] = {{"checkpoint", tensor.fill_source->directory()->name()},
                          {"fingerprint", fingerprint(*tensor.fill_source)}};
    break;
  }
  for (const RenamedObject& object : plan.objects) {
    out["objects"].push_back({{"object", object.object},
                              {"fqn", checkpoint.objects()[object.object].fqn},
                              {"new_fqn", object.fqn}});
  }
  for (const Finding& finding : plan.undecided) out["undecided"].push_back(json_of(finding));
  return out;
}

}  // namespace

std::string plan_hash(const Checkpoint& checkpoint, const Plan& plan) {
  return hash_of_plan(frame_of(checkpoint, plan), checkpoint, plan.tensors);
}

std::string plan_text(const Checkpoint& checkpoint, const Plan& plan, int indent) {
  Json out = frame_of(checkpoint, plan);
  out["hash"] = hash_of_plan(out, checkpoint, plan.tensors);
  return with_tensors(dumped(out, indent), checkpoint, plan, indent);
}

std::string plan_to_json(const Checkpoint& checkpoint, const Plan& plan) {
  return plan_text(checkpoint, plan, 1) + "\n";
}

}  // namespace shw
