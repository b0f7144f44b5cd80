// A plan that somebody kept, perhaps edited (plan_json.cpp says how it is written). It is hostile:
// every number is checked here, and every tensor must pass the same proof as one that lower() made.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/open.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/operations.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/renamed.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

struct Reader : EditedJson {
  Reader(const Checkpoint& of, std::string from) : checkpoint(of), source(std::move(from)) {}
  const Checkpoint& checkpoint;
  std::string source;
  std::shared_ptr<const Checkpoint> fill_source = nullptr;

  Status status() const {
    if (ok()) return {};
    return fail(ErrorKind::kDamaged, "is no plan that can be used: " + error(), {source});
  }
  ChunkId chunk(const Json& object, const char* key) {
    auto id = number<std::uint32_t>(object, key);
    if (id < checkpoint.chunk_count()) return ChunkId{id};
    complain(std::string("\"") + key + "\" is no chunk of this checkpoint");
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

PlannedTensor read_tensor_plan(Reader& reader, const Json& json) {
  PlannedTensor tensor;
  auto id = reader.number<std::uint32_t>(json, "tensor");
  if (id >= reader.checkpoint.tensor_count())
    reader.complain("\"tensor\" is no tensor of this checkpoint");
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
  }
  for (const Json& chunk : reader.list(json, "chunks"))
    tensor.chunks.push_back(read_chunk_plan(reader, chunk));
  tensor.chunks.shrink_to_fit();
  return tensor;
}

Operation read_operation(Reader& reader, const Json& json) {
  Operation operation;
  std::string kind = reader.text(json, "kind");
  bool known = false;
  for (int i = 0; i <= static_cast<int>(OperationKind::kRewriteMetadata) && !known; ++i) {
    operation.kind = static_cast<OperationKind>(i);
    known = name(operation.kind) == kind;
  }
  if (!known) reader.complain("\"kind\" is unknown");
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
  // What earlier versions wrote of NaN and of infinities.
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
  Finding finding;
  finding.rule = reader.text(json, "rule");
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
  if (!evidence.is_object()) reader.complain("\"evidence\" is no object");
  for (const auto& [key, value] : evidence.items())
    finding.evidence.emplace_back(key, read_evidence(reader, value));
  return finding;
}

// The checkpoint that fills what is lost, if it is still the one that the plan was made with.
Status open_fill_source(Reader& reader, const Json& plan) {
  if (!plan.contains("fill_source")) return {};
  const Json& json = plan["fill_source"];
  std::string path = reader.text(json, "checkpoint");
  std::string expected = reader.text(json, "fingerprint");
  SHW_CHECK(reader.status());
  SHW_TRY(reader.fill_source, open_to_compare(path));
  if (fingerprint(*reader.fill_source) == expected) return {};
  return fail(ErrorKind::kUsage, "is not what the plan was to fill from any more", {path},
              "make a new plan");
}

// A cast fills from a tensor of the same shape, or it fills nothing.
Status check_fill(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  if (tensor.fill == Fill::kZero) return {};
  bool elsewhere = tensor.fill == Fill::kReference;
  const Checkpoint* holder = elsewhere ? tensor.fill_source.get() : &checkpoint;
  auto from = holder == nullptr ? std::nullopt : holder->find(tensor.fill_from);
  if (from && (elsewhere || *from != tensor.tensor) && same(holder->shape(*from), tensor.shape))
    return {};
  return cannot_lower(checkpoint, tensor.tensor, "there is nothing of its shape to fill it from");
}

// Its tiles are its own. Where rows were saved under the name of another tensor (S2) they come from
// there, and its own may be left.
bool keeps_to_itself(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  auto is_own = [&](ChunkId chunk) { return checkpoint.tensor_of(chunk) == planned.tensor; };
  return std::all_of(planned.chunks.begin(), planned.chunks.end(), [&](const auto& chunk) {
    return (!chunk.item || is_own(*chunk.item)) && chunk.external.empty() &&
           std::all_of(chunk.pieces.begin(), chunk.pieces.end(),
                       [&](const Piece& piece) { return is_own(piece.chunk); });
  });
}

// The bytes lie elsewhere: of another tensor's chunk nothing is taken but how items are written.
bool is_only_like(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                  const PlannedChunk& chunk) {
  return checkpoint.tensor_of(*chunk.item) != tensor.tensor &&
         place_elsewhere(checkpoint, chunk).has_value();
}

// Items that change hands: each is one tensor's afterwards, and none is left by one that takes
// another's instead of it.
Status check_borrowed(const Checkpoint& checkpoint, const Plan& plan,
                      const std::set<TensorId>& planned) {
  std::vector<std::uint8_t> uses(checkpoint.chunk_count());  // 2: more than once
  for (const PlannedTensor& tensor : plan.tensors) {
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item && !is_only_like(checkpoint, tensor, chunk) && uses[index_of(*chunk.item)] < 2)
        ++uses[index_of(*chunk.item)];
      for (const Piece& piece : chunk.pieces) {
        if (uses[index_of(piece.chunk)] == 0) uses[index_of(piece.chunk)] = 1;
      }
    }
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    // One that has lost elements says so, and may copy what survived elsewhere.
    if (!is_pure_relabel(tensor)) continue;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (!chunk.item || checkpoint.tensor_of(*chunk.item) == tensor.tensor ||
          is_only_like(checkpoint, tensor, chunk))
        continue;
      if (!planned.contains(checkpoint.tensor_of(*chunk.item)) || uses[index_of(*chunk.item)] > 1)
        return cannot_lower(checkpoint, tensor.tensor, "elements of another tensor would be used");
    }
    for (ChunkId chunk : checkpoint.chunks(tensor.tensor)) {
      if (uses[index_of(chunk)] == 0 && checkpoint.item(chunk) &&
          volume(checkpoint.sizes(chunk)) != 0)
        return cannot_lower(checkpoint, tensor.tensor, "a chunk would be left out");
    }
  }
  return {};
}

// Tensors of a plan, taken while its text is parsed, and what the tree of the rest is without them:
// that of millions of chunks would take gigabytes.
struct ParsedTensors {
  Reader reader;  // of these alone: what is said of them comes after what is wrong with the rest
  std::vector<PlannedTensor> tensors = {};
  bool is_inside = false;

  bool keeps(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth == 1 && event == Event::key) is_inside = parsed == "tensors";
    const bool is_one =
        is_inside && depth == 2 &&
        (event == Event::object_end || event == Event::array_end || event == Event::value);
    // The last one is the one that is wrong.
    if (is_one && reader.ok()) tensors.push_back(read_tensor_plan(reader, parsed));
    return !is_one;
  }
};

Status read_tensors(Reader& reader, const Json& json, ParsedTensors& parsed, Plan& plan) {
  std::set<TensorId> seen;
  static_cast<void>(reader.list(json, "tensors"));
  SHW_CHECK(reader.status());
  for (PlannedTensor& tensor : parsed.tensors) {
    if (&tensor == &parsed.tensors.back()) SHW_CHECK(parsed.reader.status());
    if (!seen.insert(tensor.tensor).second) reader.complain("a tensor is planned twice");
    SHW_CHECK(reader.status());
    if (tensor.fill == Fill::kReference) tensor.fill_source = reader.fill_source;
    SHW_CHECK(prove_planned(reader.checkpoint, tensor));
    if (tensor.lost_elements != 0) SHW_CHECK(prove_used_once(reader.checkpoint, tensor));
    if (tensor.lost_elements == 0 && keeps_to_itself(reader.checkpoint, tensor))
      SHW_CHECK(prove_nothing_lost(reader.checkpoint, tensor));
    SHW_CHECK(check_fill(reader.checkpoint, tensor));
    plan.lossless = plan.lossless && tensor.lost_elements == 0;
    plan.tensors.push_back(std::move(tensor));
  }
  SHW_CHECK(check_borrowed(reader.checkpoint, plan, seen));
  return prove_exchanged(reader.checkpoint, plan);
}

// Entries that are no tensors and get other names.
Status read_objects(Reader& reader, const Json& json, Plan& plan) {
  if (!json.contains("objects")) return {};
  for (const Json& one : reader.list(json, "objects"))
    plan.objects.push_back(
        {reader.number<std::uint32_t>(one, "object"), reader.text(one, "new_fqn")});
  return reader.status();
}

}  // namespace

Result<Plan> plan_from_json(const Checkpoint& checkpoint, std::string_view json,
                            const std::string& source) {
  ParsedTensors tensors{Reader{checkpoint, source}};
  auto keeps = [&](int depth, Json::parse_event_t event, Json& value) {
    return tensors.keeps(depth, event, value);
  };
  const auto read = parse_json<Json>(json.begin(), json.end(), keeps);
  const Json& parsed = read.tree;
  if (parsed.is_discarded())
    return fail(ErrorKind::kDamaged, not_json_text(read), {source, not_json_at(read)});
  Reader reader{checkpoint, source};
  std::string schema = reader.text(parsed, "schema");
  auto version = reader.number<std::int64_t>(parsed, "plan");
  std::string made_for = reader.text(parsed, "fingerprint");
  SHW_CHECK(reader.status());
  if (schema != "shardwright/1" || version != 1)
    return fail(ErrorKind::kUnsupported, "is a plan of another version", {source});
  if (made_for != fingerprint(checkpoint)) {
    return fail(ErrorKind::kUsage,
                "was made for another checkpoint: shapes, chunks or items are different now",
                {source}, "make a new plan");
  }
  Plan plan;
  plan.checkpoint = checkpoint.directory() == nullptr ? reader.text(parsed, "checkpoint")
                                                      : checkpoint.directory()->name();
  for (const Json& one : reader.list(parsed, "operations"))
    plan.operations.push_back(read_operation(reader, one));
  SHW_CHECK(open_fill_source(reader, parsed));
  SHW_CHECK(read_tensors(reader, parsed, tensors, plan));
  SHW_CHECK(read_objects(reader, parsed, plan));
  SHW_CHECK(check_names(checkpoint, plan));
  if (parsed.contains("entries")) {
    for (const Json& one : reader.list(parsed, "entries"))
      plan.entries.push_back(
          {reader.number<std::size_t>(one, "entry"), reader.number<std::size_t>(one, "item_of")});
    SHW_CHECK(reader.status());
    SHW_CHECK(check_entries(checkpoint, plan));
    plan.lossless = plan.lossless && keeps_every_entry(plan);
  }
  for (const Json& one : reader.list(parsed, "undecided"))
    plan.undecided.push_back(read_finding(reader, one));
  if (plan.operations.empty() && (!plan.tensors.empty() || !plan.entries.empty()))
    reader.complain("tensors change, but no operation says why");
  SHW_CHECK(reader.status());
  describe_again(checkpoint, plan);
  return plan;
}

}  // namespace shw
