// Reads a plan that may have been edited (plan_json.cpp has the grammar). It is untrusted: every
// number is checked, and every tensor must pass the same proof as one that lower() made.
#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/version.h"
#include "core/formats/open.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/check_names.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/operations.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

// Limit on steps: far more than anyone writes by hand, and few enough for memory.
constexpr std::size_t kMaxSteps = 100'000;
constexpr int kDeepestPlan = 32;

struct Reader : EditedJson {
  Reader(const Checkpoint& of, std::string from) : checkpoint(of), source(std::move(from)) {}
  const Checkpoint& checkpoint;
  std::string source;

  Status status() const {
    if (ok()) return {};
    return fail(ErrorKind::kDamaged, "is not a valid plan: " + error(), {source});
  }
  ChunkId chunk(const Json& object, const char* key) {
    auto id = number<std::uint32_t>(object, key);
    if (id < checkpoint.chunk_count()) return ChunkId{id};
    complain(std::string("\"") + key + "\" is not a chunk of this checkpoint");
    return ChunkId{};
  }
};

std::vector<ExternalPiece> read_side(Reader& reader, const Json& json) {
  std::vector<ExternalPiece> pieces;
  if (!json.is_object() || !json.contains("side")) return pieces;
  for (const Json& one : reader.list(json, "side")) {
    ExternalPiece side;
    side.file = reader.text(one, "file");
    side.offset = reader.number<std::uint64_t>(one, "offset");
    side.length = reader.number<std::uint64_t>(one, "length");
    auto dtype = dtype_from_torch(reader.text(one, "dtype"));
    if (!dtype) reader.complain("\"dtype\" is unknown");
    side.dtype = dtype.value_or(Dtype::kUnknown);
    side.sizes = reader.extents(one, "sizes");
    side.at = reader.extents(one, "at");
    pieces.push_back(std::move(side));
  }
  return pieces;
}

PlannedChunk read_chunk_plan(Reader& reader, const Json& json) {
  PlannedChunk chunk;
  chunk.box = reader.box(json);
  chunk.writer = reader.number<std::uint32_t>(json, "writer");
  chunk.external = read_side(reader, json);
  if (json.is_object() && json.contains("item")) {
    chunk.item = reader.chunk(json, "item");
    return chunk;
  }
  for (const Json& one : reader.list(json, "pieces")) {
    Piece piece{reader.chunk(one, "chunk"), reader.box(one), reader.extents(one, "at")};
    if (one.is_object() && one.contains("permutation"))
      piece.permutation = reader.extents(one, "permutation");
    chunk.pieces.push_back(std::move(piece));
  }
  return chunk;
}

PlannedTensor read_tensor_plan(Reader& reader, const Json& json, std::string& fill_checkpoint) {
  PlannedTensor tensor;
  auto id = reader.number<std::uint32_t>(json, "tensor");
  if (id >= reader.checkpoint.tensor_count())
    reader.complain("\"tensor\" is not a tensor of this checkpoint");
  tensor.tensor = TensorId{id};
  tensor.shape = reader.extents(json, "shape");
  for (const Json& box : reader.list(json, "lost")) tensor.lost.push_back(reader.box(box));
  tensor.lost_elements = reader.number<std::int64_t>(json, "lost_elements");
  if (json.is_object() && json.contains("new_fqn")) tensor.fqn = reader.text(json, "new_fqn");
  if (json.is_object() && json.contains("fill")) {
    std::string fill = reader.text(json, "fill");
    if (fill != "zero" && fill != "cast" && fill != "from")
      reader.complain("\"fill\" is none of zero, cast, from");
    tensor.fill = fill == "cast" ? Fill::kCast : fill == "from" ? Fill::kReference : Fill::kZero;
    if (tensor.fill != Fill::kZero) tensor.fill_from = reader.text(json, "fill_from");
    if (tensor.fill == Fill::kReference) fill_checkpoint = reader.text(json, "fill_checkpoint");
  }
  for (const Json& chunk : reader.list(json, "chunks"))
    tensor.chunks.push_back(read_chunk_plan(reader, chunk));
  tensor.chunks.shrink_to_fit();
  return tensor;
}

Operation read_repair_step(EditedJson& reader, const Json& json) {
  Operation operation;
  std::string kind = reader.text(json, "does");
  bool known = false;
  for (int i = 0; i <= static_cast<int>(OperationKind::kRewriteMetadata) && !known; ++i) {
    operation.kind = static_cast<OperationKind>(i);
    known = name(operation.kind) == kind;
  }
  if (!known) reader.complain("\"does\" is not a known repair operation");
  operation.rule = reader.text(json, "rule");
  operation.subjects = reader.texts(json, "subjects");
  operation.text = reader.text(json, "text");
  operation.tiles = reader.number<std::int64_t>(json, "tiles");
  operation.bytes_moved = reader.number<std::uint64_t>(json, "bytes_moved");
  operation.elements_lost = reader.number<std::int64_t>(json, "elements_lost");
  operation.lossless = reader.boolean(json, "lossless");
  return operation;
}

EvidenceValue read_evidence(Reader& reader, const Json& value) {
  // Earlier versions wrote NaN and infinities as null.
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return reader.integer(value, "evidence");
  if (value.is_string()) return value.get<std::string>();
  Json wrapped = {{"evidence", value}};
  if (value.is_array() && !value.empty() && value.front().is_string())
    return reader.texts(wrapped, "evidence");
  if (value.is_array() && !value.empty() && value.front().is_object()) {
    std::vector<Box> boxes;
    for (const Json& box : value) boxes.push_back(reader.box(box));
    return boxes;
  }
  return reader.extents(wrapped, "evidence");
}

Finding read_finding(Reader& reader, const Json& json) {
  Finding finding{.rule = std::string(reader.text(json, "rule"))};
  std::string severity = reader.text(json, "severity");
  const auto* found = std::find(std::begin(kSeverities), std::end(kSeverities), severity);
  if (found == std::end(kSeverities)) {
    reader.complain("\"severity\" is unknown");
  } else {
    finding.severity = static_cast<Severity>(found - std::begin(kSeverities));
  }
  finding.subjects = reader.texts(json, "subjects");
  finding.cause = reader.text(json, "cause");
  const Json& evidence = reader.member(json, "evidence");
  if (!evidence.is_object()) reader.complain("\"evidence\" is not an object");
  for (const auto& [key, value] : evidence.items())
    finding.evidence.emplace_back(key, read_evidence(reader, value));
  return finding;
}

// Checks that a cast fills from a tensor of the same shape.
Status check_fill(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  if (tensor.fill == Fill::kZero) return {};
  bool elsewhere = tensor.fill == Fill::kReference;
  const Checkpoint* holder = elsewhere ? tensor.fill_source.get() : &checkpoint;
  auto from = holder == nullptr ? std::nullopt : holder->find(tensor.fill_from);
  if (from && (elsewhere || *from != tensor.tensor) && same(holder->shape(*from), tensor.shape))
    return {};
  return cannot_lower(checkpoint, tensor.tensor, "the fill source has no tensor of this shape");
}

// True if all items and pieces are the tensor's own. If rows were saved under another tensor's
// name, they come from there, and the tensor's own items may stay unused.
bool uses_only_own_items(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  auto is_own = [&](ChunkId chunk) { return checkpoint.tensor_of(chunk) == planned.tensor; };
  return std::all_of(planned.chunks.begin(), planned.chunks.end(), [&](const auto& chunk) {
    return (!chunk.item || is_own(*chunk.item)) && chunk.external.empty() &&
           std::all_of(chunk.pieces.begin(), chunk.pieces.end(),
                       [&](const Piece& piece) { return is_own(piece.chunk); });
  });
}

// True if the chunk's bytes come from an external file and its `item`, a chunk of another tensor,
// only says how to encode them.
bool is_encoding_template(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                          const PlannedChunk& chunk) {
  return checkpoint.tensor_of(*chunk.item) != tensor.tensor &&
         external_item_place(checkpoint, chunk).has_value();
}

// Checks items that move to another tensor: each is used by one tensor afterwards, and no tensor
// that takes another's item leaves its own unused.
Status check_items_used_once(const Checkpoint& checkpoint, const Plan& plan,
                             const std::set<TensorId>& planned) {
  std::vector<std::uint8_t> uses(checkpoint.chunk_count());  // 2: more than once
  for (const PlannedTensor& tensor : plan.tensors) {
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item && !is_encoding_template(checkpoint, tensor, chunk) &&
          uses[index_of(*chunk.item)] < 2)
        ++uses[index_of(*chunk.item)];
      for (const Piece& piece : chunk.pieces) {
        if (uses[index_of(piece.chunk)] == 0) uses[index_of(piece.chunk)] = 1;
      }
    }
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    // A tensor that has lost elements declares that, and may copy elements that survived elsewhere.
    if (!is_pure_relabel(tensor)) continue;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (!chunk.item || checkpoint.tensor_of(*chunk.item) == tensor.tensor ||
          is_encoding_template(checkpoint, tensor, chunk))
        continue;
      if (!planned.contains(checkpoint.tensor_of(*chunk.item)) || uses[index_of(*chunk.item)] > 1)
        return cannot_lower(checkpoint, tensor.tensor, "the plan uses elements of another tensor");
    }
    for (ChunkId chunk : checkpoint.chunks(tensor.tensor)) {
      if (uses[index_of(chunk)] == 0 && checkpoint.item(chunk) &&
          volume(checkpoint.sizes(chunk)) != 0)
        return cannot_lower(checkpoint, tensor.tensor, "a chunk would be dropped");
    }
  }
  return {};
}

// Tensors of a plan's target, collected while its text is parsed, so that no JSON tree of millions
// of chunks takes gigabytes. Also notes what a JSON tree would hide: duplicate keys and too deep
// nesting.
struct ParsedTensors {
  Reader* reader;  // for tensors only: their errors come after those of the rest
  std::vector<PlannedTensor> tensors = {};
  std::vector<std::string> fill_checkpoints = {};  // by tensor
  bool in_target = false, is_inside = false, too_deep = false;
  std::string twice = {};
  std::vector<std::set<std::string>> open = {};  // keys of each object outside of tensors

  bool keeps(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    too_deep = too_deep || depth >= kDeepestPlan;
    if (too_deep) return false;
    if (!is_inside || depth <= 2) note_keys(event, parsed);
    if (depth == 1 && event == Event::key) in_target = parsed == "target";
    if (depth <= 2 && event == Event::key)
      is_inside = depth == 2 && in_target && reader != nullptr && parsed == "tensors";
    const bool is_one =
        is_inside && depth == 3 &&
        (event == Event::object_end || event == Event::array_end || event == Event::value);
    // The last tensor that was added is the wrong one.
    if (is_one && reader->ok())
      tensors.push_back(read_tensor_plan(*reader, parsed, fill_checkpoints.emplace_back()));
    return !is_one;
  }

 private:
  void note_keys(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end && !open.empty()) open.pop_back();
    if (event != Event::key || open.empty()) return;
    const bool is_new = open.back().insert(parsed.get<std::string>()).second;
    if (!is_new && twice.empty()) twice = parsed.get<std::string>();
  }
};

// Opens the checkpoints that tensors are filled from and checks that they have not changed since
// the plan was made.
Status open_fill_sources(ParsedTensors& parsed, const Plan& plan) {
  std::map<std::string, std::shared_ptr<const Checkpoint>> opened;
  for (std::size_t i = 0; i < parsed.tensors.size(); ++i) {
    const std::string& path = parsed.fill_checkpoints[i];
    if (parsed.tensors[i].fill != Fill::kReference || path.empty()) continue;
    auto& source = opened[path];
    const auto input = std::find_if(plan.inputs.begin(), plan.inputs.end(), [&](const auto& one) {
      return one.checkpoint == path || one.original_path == path;
    });
    if (input == plan.inputs.end())
      return fail(ErrorKind::kUsage, "is not among the \"inputs\" of the plan", {path},
                  "write it there in the same form");
    if (source == nullptr) {
      SHW_TRY(source, open_to_compare(input->checkpoint));
      if (!input->fingerprint.empty() && fingerprint(*source) != input->fingerprint)
        return fail(ErrorKind::kUsage, "has changed since the plan was made to fill from it",
                    {path}, "make a new plan");
    }
    parsed.tensors[i].fill_source = source;
  }
  return {};
}

Status read_tensors(Reader& reader, ParsedTensors& parsed, Plan& plan) {
  std::set<TensorId> seen;
  SHW_CHECK(open_fill_sources(parsed, plan));
  for (PlannedTensor& tensor : parsed.tensors) {
    if (&tensor == &parsed.tensors.back()) SHW_CHECK(parsed.reader->status());
    if (!seen.insert(tensor.tensor).second) reader.complain("a tensor is in the plan twice");
    SHW_CHECK(reader.status());
    SHW_CHECK(prove_planned(reader.checkpoint, tensor));
    if (tensor.lost_elements != 0) SHW_CHECK(prove_used_once(reader.checkpoint, tensor));
    if (tensor.lost_elements == 0 && uses_only_own_items(reader.checkpoint, tensor))
      SHW_CHECK(prove_nothing_lost(reader.checkpoint, tensor));
    SHW_CHECK(check_fill(reader.checkpoint, tensor));
    plan.lossless = plan.lossless && tensor.lost_elements == 0;
    plan.tensors.push_back(std::move(tensor));
  }
  SHW_CHECK(check_items_used_once(reader.checkpoint, plan, seen));
  return prove_exchanged(reader.checkpoint, plan);
}

// Reads non-tensor entries that get new names or another entry's value.
Status read_objects(Reader& reader, const Json& target, Plan& plan) {
  if (EditedJson::has(target, "objects")) {
    for (const Json& one : reader.list(target, "objects"))
      plan.objects.push_back(
          {reader.number<std::uint32_t>(one, "object"), reader.text(one, "new_fqn")});
  }
  SHW_CHECK(reader.status());
  SHW_CHECK(check_names(reader.checkpoint, plan));
  if (!EditedJson::has(target, "entries")) return {};
  for (const Json& one : reader.list(target, "entries"))
    plan.entries.push_back(
        {reader.number<std::size_t>(one, "entry"), reader.number<std::size_t>(one, "item_of")});
  SHW_CHECK(reader.status());
  SHW_CHECK(check_entries(reader.checkpoint, plan));
  plan.lossless = plan.lossless && keeps_every_entry(plan);
  return {};
}

void read_inputs(EditedJson& in, const Json& json, const std::string& folder, Plan& plan) {
  if (!EditedJson::has(json, "inputs")) return;
  for (const Json& one : in.list(json, "inputs")) {
    in.allow_only_keys(one, {"checkpoint", "fingerprint"});
    if (!in.ok()) return;
    PlanInput input{in.text(one, "checkpoint"), in.text(one, "fingerprint")};
    // A relative path in a plan starts at the plan's folder, wherever the plan is applied and the
    // certificate is later read.
    if (!folder.empty() && !input.checkpoint.starts_with('/')) {
      input.original_path = input.checkpoint;
      input.checkpoint = folder + input.checkpoint;
    }
    plan.inputs.push_back(std::move(input));
  }
}

void resolve_step_paths(Plan& plan) {
  for (const PlanInput& input : plan.inputs) {
    if (input.original_path.empty()) continue;
    for (Step& step : plan.steps) {
      auto* fill = std::get_if<FillStep>(&step);
      if (fill != nullptr && fill->from_checkpoint == input.original_path)
        fill->from_checkpoint = input.checkpoint;
    }
  }
}

void read_steps(EditedJson& in, const Json& json, Plan& plan) {
  const Json& list = in.list(json, "steps");
  if (list.size() > kMaxSteps) return in.complain("there are more steps than a plan may have");
  std::size_t number = 0;
  for (const Json& one : list) {
    in.at("step " + std::to_string(++number) + ": ");
    const bool is_repair = in.text(one, "step") == "repair";
    if (is_repair && !plan.steps.empty())
      in.complain(
          "the step \"repair\" must come first, because it refers to the checkpoint as it was "
          "saved");
    if (!in.ok()) return;
    if (is_repair)
      plan.operations.push_back(read_repair_step(in, one));
    else
      plan.steps.push_back(read_step(in, one));
    if (!in.ok()) return;
  }
  in.at("");
}

void read_target(EditedJson& in, const Json& json, Plan& plan) {
  if (!EditedJson::has(json, "target")) return;
  const Json& target = json["target"];
  in.allow_only_keys(target,
                     {"format", "shard_bytes", "weights_only", "tensors", "objects", "entries"});
  if (EditedJson::has(target, "format")) plan.format = in.text(target, "format");
  if (EditedJson::has(target, "shard_bytes"))
    plan.shard_bytes = in.number<std::uint64_t>(target, "shard_bytes");
  if (EditedJson::has(target, "weights_only"))
    plan.weights_only = in.boolean(target, "weights_only");
  if (EditedJson::has(target, "tensors")) static_cast<void>(in.list(target, "tensors"));
}

// Refuses plans from before the two kinds of plan became one.
Status check_version(EditedJson& in, const Json& json, const std::string& source) {
  if (!is_readable_schema(in.text(json, "schema"))) in.complain("\"schema\" is another one");
  const bool is_old = EditedJson::has(json, "operations");
  const bool has_version = EditedJson::has(json, "plan");
  if (!in.ok() || (!is_old && !has_version)) return {};
  const auto version = has_version ? in.number<std::int64_t>(json, "plan") : 1;
  if (!in.ok() || (!is_old && version == kPlanVersion)) return {};
  return fail(ErrorKind::kUnsupported,
              "is a plan of a different shardwright version, which this one cannot read", {source},
              "make it again with `shardwright plan CHECKPOINT --json`; in a list of steps that "
              "you wrote yourself, leave out \"plan\"");
}

// Reads everything that needs no checkpoint.
Status read_plan_without_tensors(EditedJson& in, const Json& json, const std::string& source,
                                 const std::string& folder, Plan& plan) {
  SHW_CHECK(check_version(in, json, source));
  in.allow_only_keys(json, {"schema", "plan", "checkpoint", "fingerprint", "lossless", "inputs",
                            "steps", "target", "of_other_ranks", "undecided", "hash", "explain",
                            "path", "tool", "seconds", "remote", "format"});
  if (EditedJson::has(json, "checkpoint")) plan.checkpoint = in.text(json, "checkpoint");
  if (EditedJson::has(json, "fingerprint")) plan.fingerprint = in.text(json, "fingerprint");
  read_inputs(in, json, folder, plan);
  read_target(in, json, plan);
  read_steps(in, json, plan);
  resolve_step_paths(plan);
  return {};
}

// A plan names chunks by number, so it fits only the checkpoint and the state it was made for.
Status check_fingerprint_of(Reader& reader, const Plan& plan, bool repairs) {
  if (plan.fingerprint.empty() && repairs) reader.complain("\"fingerprint\" is missing");
  SHW_CHECK(reader.status());
  if (plan.fingerprint.empty() || plan.fingerprint == fingerprint(reader.checkpoint)) return {};
  return fail(ErrorKind::kUsage,
              "was made for a different checkpoint: shapes, chunks or items differ",
              {reader.source}, "make a new plan");
}

// A null `checkpoint` is for a plan of steps only.
Result<Plan> read_plan_json(const Checkpoint* checkpoint, std::string_view json,
                            const std::string& source, const std::string& folder) {
  static const Checkpoint kNoCheckpoint{};
  Reader of_tensors{checkpoint == nullptr ? kNoCheckpoint : *checkpoint, source};
  ParsedTensors tensors{checkpoint == nullptr ? nullptr : &of_tensors};
  auto keeps = [&](int depth, Json::parse_event_t event, Json& value) {
    return tensors.keeps(depth, event, value);
  };
  const auto read = parse_json<Json>(json, keeps);
  const Json& parsed = read.tree;
  Reader reader{of_tensors.checkpoint, source};
  if (tensors.too_deep)
    reader.complain("it is nested more than " + std::to_string(kDeepestPlan) + " levels deep");
  else if (parsed.is_discarded())
    return fail(ErrorKind::kDamaged, json_error_text(read), {source, json_error_offset(read)});
  if (!tensors.twice.empty()) reader.complain("\"" + tensors.twice + "\" occurs twice");
  Plan plan;
  SHW_CHECK(reader.status());
  SHW_CHECK(read_plan_without_tensors(reader, parsed, source, folder, plan));
  SHW_CHECK(reader.status());
  static const Json kNothing = Json::object();
  const Json& target = EditedJson::has(parsed, "target") ? parsed["target"] : kNothing;
  const bool changes = !tensors.tensors.empty() || target.contains("entries") ||
                       target.contains("objects") || target.contains("tensors");
  if (checkpoint == nullptr) {
    if (changes || plan.repairs()) reader.complain("it does not say which checkpoint it repairs");
    SHW_CHECK(reader.status());
    return plan;
  }
  SHW_CHECK(check_fingerprint_of(reader, plan, changes));
  if (checkpoint->directory() != nullptr && (changes || plan.repairs()))
    plan.checkpoint = checkpoint->directory()->name();
  SHW_CHECK(read_tensors(reader, tensors, plan));
  SHW_CHECK(read_objects(reader, target, plan));
  if (parsed.contains("undecided")) {
    for (const Json& one : reader.list(parsed, "undecided"))
      plan.undecided.push_back(read_finding(reader, one));
  }
  if (!plan.repairs() && (!plan.tensors.empty() || !plan.entries.empty()))
    reader.complain("tensors change, but no step \"repair\" says why");
  SHW_CHECK(reader.status());
  redescribe_operations(*checkpoint, plan);
  return plan;
}

}  // namespace

Result<Plan> plan_from_json(const Checkpoint& checkpoint, std::string_view json,
                            const std::string& source, const std::string& folder) {
  return read_plan_json(&checkpoint, json, source, folder);
}

Result<Plan> plan_from_json(std::string_view json, const std::string& source) {
  return read_plan_json(nullptr, json, source, {});
}

}  // namespace shw
