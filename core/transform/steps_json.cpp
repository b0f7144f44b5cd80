#include "core/transform/steps_json.h"

#include <fmt/core.h>

#include <set>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/transform/json.h"

namespace shw {
namespace {

using StepJson = nlohmann::ordered_json;

// Far more than anybody writes by hand, and little enough to be held.
constexpr std::size_t kMostSteps = 100'000, kMostNumbers = 1 << 20;

// ---- writing

StepJson json_of_boxes(const std::vector<Box>& boxes) {
  StepJson list = StepJson::array();
  for (const Box& box : boxes) list.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  return list;
}

StepJson json_of_gone(const FillStep& step) {
  if (!step.left) return true;
  StepJson list = StepJson::array();
  for (const auto& [file, bytes] : *step.left) list.push_back({{"file", file}, {"bytes", bytes}});
  return list;
}

StepJson texts_of(const std::vector<Placement>& placements) {
  StepJson list = StepJson::array();
  for (const Placement& placement : placements) list.push_back(to_text(placement));
  return list;
}

struct StepWriter {
  StepJson& out;

  void operator()(const RelabelStep& step) const {
    out["tensor"] = step.tensor;
    out["shape"] = step.shape;
    out["tiles"] = StepJson::array();
    for (const RelabelStep::Tile& tile : step.tiles)
      out["tiles"].push_back({{"chunk", tile.chunk}, {"offsets", tile.offsets}});
  }
  void operator()(const RetileStep& step) const {
    out["tensors"] = step.tensors;
    out["tiles"] = StepJson::array();
    for (const TargetChunk& tile : step.tiles) {
      out["tiles"].push_back(
          {{"offsets", tile.box.offsets}, {"sizes", tile.box.sizes}, {"writer", tile.writer}});
    }
  }
  void operator()(const ReshardStep& step) const {
    out["tensors"] = step.tensors;
    out["mesh"] = typed_as(step.mesh);
    out["placements"] = texts_of(step.placements);
  }
  void operator()(const PermuteDimsStep& step) const {
    out["tensors"] = step.tensors;
    out["order"] = step.order;
  }
  void operator()(const PermuteBlocksStep& step) const {
    out["tensors"] = step.tensors;
    out["dim"] = step.dim;
    if (!step.sizes.empty()) out["sizes"] = step.sizes;
    out["order"] = step.order;
  }
  void operator()(const SplitStep& step) const {
    out["tensor"] = step.tensor;
    out["dim"] = step.dim;
    out["sizes"] = step.sizes;
    out["into"] = step.into;
    if (step.drop_dim) out["drop_dim"] = true;
  }
  void operator()(const ConcatStep& step) const {
    out["tensors"] = step.tensors;
    out["dim"] = step.dim;
    out["into"] = step.into;
    if (step.new_dim) out["new_dim"] = true;
  }
  void operator()(const PadStep& step) const {
    out["tensors"] = step.tensors;
    out["before"] = step.before;
    out["after"] = step.after;
    out["value"] = step.value;
  }
  void operator()(const TrimStep& step) const {
    out["tensors"] = step.tensors;
    out["offsets"] = step.keep.offsets;
    out["sizes"] = step.keep.sizes;
  }
  void operator()(const RenameStep& step) const {
    out["from"] = step.from;
    out["to"] = step.to;
    if (step.regex) out["regex"] = true;
  }
  void operator()(const DropStep& step) const { out["tensors"] = step.tensors; }
  void operator()(const CastStep& step) const {
    out["tensors"] = step.tensors;
    out["dtype"] = shw::name(step.dtype);
  }
  void operator()(const FillStep& step) const {
    out["tensors"] = step.tensors;
    if (step.boxes) out["boxes"] = json_of_boxes(*step.boxes);
    if (step.gone) out["gone"] = json_of_gone(step);
    if (step.from_checkpoint.empty()) {
      out["value"] = step.value;
      return;
    }
    out["from_checkpoint"] = step.from_checkpoint;
    if (!step.from_tensor.empty()) out["from_tensor"] = step.from_tensor;
  }
  void operator()(const MaskStep& step) const {
    out["tensors"] = step.tensors;
    out["boxes"] = json_of_boxes(step.boxes);
    out["value"] = step.value;
  }
  void operator()(const DequantiseStep& step) const {
    out["tensors"] = step.tensors;
    out["suffix"] = step.suffix;
    out["block"] = step.block;
    out["dtype"] = shw::name(step.dtype);
  }
  void operator()(const RestoreStep& step) const {
    out["tensor"] = step.tensor;
    out["file"] = step.payload.file;
    out["offset"] = step.payload.offset;
    out["length"] = step.payload.length;
    out["dtype"] = shw::name(step.dtype);
    out["sizes"] = step.payload.sizes;
    out["at"] = step.at;
  }
};

// ---- reading: one function a step, in the order of the variant

Step read_relabel(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensor", "shape", "tiles"});
  RelabelStep step{in.text(json, "tensor"), in.extents(json, "shape"), {}};
  for (const StepJson& one : in.list(json, "tiles")) {
    in.only(one, {"chunk", "offsets"});
    if (!in.ok()) break;
    step.tiles.push_back({in.number<std::uint32_t>(one, "chunk"), in.extents(one, "offsets")});
  }
  return step;
}

Step read_retile(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "tiles"});
  RetileStep step{in.texts(json, "tensors"), {}};
  for (const StepJson& one : in.list(json, "tiles")) {
    in.only(one, {"offsets", "sizes", "writer"});
    if (!in.ok()) break;
    step.tiles.push_back({in.box(one), in.number<std::uint32_t>(one, "writer")});
  }
  return step;
}

Step read_reshard(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "mesh", "placements"});
  ReshardStep step{in.texts(json, "tensors"), {}, {}};
  auto mesh = parse_mesh(in.text(json, "mesh"));
  if (mesh) {
    step.mesh = std::move(*mesh);
  } else {
    in.complain(mesh.error().message);
  }
  for (const std::string& text : in.texts(json, "placements")) {
    auto placement = parse_placement(text);
    if (!placement) in.complain("\"" + text + "\" is no placement");
    step.placements.push_back(placement.value_or(Placement{}));
  }
  return step;
}

Step read_permute_dims(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "order"});
  return PermuteDimsStep{in.texts(json, "tensors"), in.extents(json, "order")};
}

Step read_permute_blocks(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "dim", "sizes", "order"});
  PermuteBlocksStep step;
  step.tensors = in.texts(json, "tensors");
  step.dim = in.number<std::int64_t>(json, "dim");
  if (EditedJson::has(json, "sizes")) step.sizes = in.extents(json, "sizes", kMostNumbers);
  step.order = in.extents(json, "order", kMostNumbers);
  return step;
}

Step read_split(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensor", "dim", "sizes", "into", "drop_dim"});
  return SplitStep{in.text(json, "tensor"), in.number<std::int64_t>(json, "dim"),
                   in.extents(json, "sizes", kMostNumbers), in.texts(json, "into"),
                   in.boolean(json, "drop_dim", false)};
}

Step read_concat(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "dim", "into", "new_dim"});
  return ConcatStep{in.texts(json, "tensors"), in.number<std::int64_t>(json, "dim"),
                    in.text(json, "into"), in.boolean(json, "new_dim", false)};
}

Step read_pad(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "before", "after", "value"});
  return PadStep{in.texts(json, "tensors"), in.extents(json, "before"), in.extents(json, "after"),
                 in.real(json, "value", 0)};
}

Step read_trim(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "offsets", "sizes"});
  return TrimStep{in.texts(json, "tensors"), in.box(json)};
}

Step read_rename(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "from", "to", "regex"});
  return RenameStep{in.text(json, "from"), in.text(json, "to"), in.boolean(json, "regex", false)};
}

Step read_drop(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors"});
  return DropStep{in.texts(json, "tensors")};
}

Step read_cast(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "dtype"});
  return CastStep{in.texts(json, "tensors"), in.dtype(json, "dtype")};
}

// true, or the files that it was settled to.
void read_gone(EditedJson& in, const StepJson& json, FillStep& step) {
  if (!EditedJson::has(json, "gone")) return;
  if (!in.member(json, "gone").is_array()) {
    step.gone = in.boolean(json, "gone");
    return;
  }
  step.gone = true;
  step.left.emplace();
  for (const StepJson& file : in.list(json, "gone")) {
    in.only(file, {"file", "bytes"});
    (*step.left)[in.text(file, "file")] = in.number<std::uint64_t>(file, "bytes");
  }
}

Step read_fill(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "boxes", "gone", "value", "from_checkpoint", "from_tensor"});
  FillStep step;
  step.tensors = in.texts(json, "tensors");
  if (EditedJson::has(json, "boxes")) step.boxes = in.boxes(json, "boxes");
  read_gone(in, json, step);
  if (step.gone && step.boxes) in.complain("\"boxes\" and \"gone\" exclude each other");
  step.value = in.real(json, "value", 0);
  if (EditedJson::has(json, "from_checkpoint"))
    step.from_checkpoint = in.text(json, "from_checkpoint");
  if (EditedJson::has(json, "from_tensor")) step.from_tensor = in.text(json, "from_tensor");
  bool both = !step.from_checkpoint.empty() && EditedJson::has(json, "value");
  if (both) in.complain("\"value\" and \"from_checkpoint\" exclude each other");
  return step;
}

Step read_mask(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "boxes", "value"});
  return MaskStep{in.texts(json, "tensors"), in.boxes(json, "boxes"), in.real(json, "value", 0)};
}

Step read_dequantise(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensors", "suffix", "block", "dtype"});
  DequantiseStep step;
  step.tensors = in.texts(json, "tensors");
  if (EditedJson::has(json, "suffix")) step.suffix = in.text(json, "suffix");
  if (step.suffix.empty()) in.complain("\"suffix\" is empty");
  step.block = in.extents(json, "block");
  step.dtype = in.dtype(json, "dtype");
  return step;
}

Step read_restore(EditedJson& in, const StepJson& json) {
  in.only(json, {"step", "tensor", "file", "offset", "length", "dtype", "sizes", "at"});
  RestoreStep step;
  step.tensor = in.text(json, "tensor");
  step.payload.file = in.text(json, "file");
  step.payload.offset = in.number<std::uint64_t>(json, "offset");
  step.payload.length = in.number<std::uint64_t>(json, "length");
  step.payload.sizes = in.extents(json, "sizes");
  step.dtype = in.dtype(json, "dtype");
  step.at = in.extents(json, "at");
  return step;
}

struct StepReader {
  std::string_view word;
  Step (*read)(EditedJson&, const StepJson&);
};
constexpr StepReader kStepReaders[] = {
    {"relabel", read_relabel},
    {"retile", read_retile},
    {"reshard", read_reshard},
    {"permute-dims", read_permute_dims},
    {"permute-blocks", read_permute_blocks},
    {"split", read_split},
    {"concat", read_concat},
    {"pad", read_pad},
    {"trim", read_trim},
    {"rename", read_rename},
    {"drop", read_drop},
    {"cast", read_cast},
    {"fill", read_fill},
    {"mask", read_mask},
    {"dequantise", read_dequantise},
    {"restore", read_restore},
};

void read_steps(EditedJson& in, const StepJson& json, StepPlan& plan) {
  const StepJson& list = in.list(json, "steps");
  if (list.size() > kMostSteps) return in.complain("there are more steps than anybody takes");
  for (const StepJson& one : list) {
    in.at(fmt::format("step {}: ", plan.steps.size() + 1));
    std::string word = in.text(one, "step");
    const auto* reader = std::find_if(std::begin(kStepReaders), std::end(kStepReaders),
                                      [&](const StepReader& row) { return row.word == word; });
    if (in.ok() && reader == std::end(kStepReaders))
      in.complain("there is no step \"" + word + "\"");
    if (!in.ok()) return;
    plan.steps.push_back(reader->read(in, one));
    if (!in.ok()) return;
  }
  in.at("");
}

StepJson json_of_plan(const StepPlan& plan) {
  StepJson out = {{"schema", "shardwright/1"},
                  {"plan", 2},
                  {"checkpoint", plan.checkpoint},
                  {"fingerprint", plan.fingerprint}};
  if (!plan.inputs.empty()) out["inputs"] = StepJson::array();
  for (const StepPlan::Input& input : plan.inputs)
    out["inputs"].push_back({{"checkpoint", input.checkpoint}, {"fingerprint", input.fingerprint}});
  out["steps"] = StepJson::array();
  for (const Step& step : plan.steps) {
    StepJson one = {{"step", name(step)}};
    std::visit(StepWriter{one}, step);
    out["steps"].push_back(std::move(one));
  }
  StepJson target = StepJson::object();
  if (!plan.format.empty()) target["format"] = plan.format;
  if (plan.shard_bytes != 0) target["shard_bytes"] = plan.shard_bytes;
  if (plan.weights_only) target["weights_only"] = true;
  if (!target.empty()) out["target"] = std::move(target);
  write_names_as_text(out);
  return out;
}

void read_target(EditedJson& in, const StepJson& json, StepPlan& plan) {
  if (!EditedJson::has(json, "target")) return;
  const StepJson& target = json["target"];
  in.only(target, {"format", "shard_bytes", "weights_only"});
  if (EditedJson::has(target, "format")) plan.format = in.text(target, "format");
  if (EditedJson::has(target, "shard_bytes"))
    plan.shard_bytes = in.number<std::uint64_t>(target, "shard_bytes");
  if (EditedJson::has(target, "weights_only"))
    plan.weights_only = in.boolean(target, "weights_only");
}

}  // namespace

std::string hash_of(const StepPlan& plan) {
  StepPlan named_nowhere = plan;
  named_nowhere.checkpoint.clear();
  std::string text =
      json_of_plan(named_nowhere).dump(-1, ' ', false, StepJson::error_handler_t::replace);
  return to_hex(shw::hash_of(std::as_bytes(std::span(text))));
}

std::string steps_to_json(const StepPlan& plan) {
  StepJson out = json_of_plan(plan);
  out["hash"] = hash_of(plan);
  return out.dump(1, ' ', false, StepJson::error_handler_t::replace);
}

namespace {

// Notes what a tree of the text would pass over: a key that is there twice (the first one), and
// what is nested too deep.
struct PassedOver {
  bool too_deep = false;
  std::string twice = {};
  std::vector<std::set<std::string>> open = {};  // the keys of each object that is being read

  bool keeps(int depth, StepJson::parse_event_t event, const StepJson& value) {
    using Event = StepJson::parse_event_t;
    too_deep = too_deep || depth >= 32;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(value.get<std::string>()).second &&
        twice.empty())
      twice = value.get<std::string>();
    return !too_deep;
  }
};

}  // namespace

// Nothing of it is kept: the tree of a plan of millions of tiles would take gigabytes.
bool is_step_plan(std::string_view json) {
  bool has_steps = false;
  auto keeps = [&](int depth, StepJson::parse_event_t event, const StepJson& value) {
    const bool is_key = depth == 1 && event == StepJson::parse_event_t::key;
    has_steps = has_steps || (is_key && value == "steps");
    return !is_key;
  };
  return parse_json<StepJson>(json.begin(), json.end(), keeps).tree.is_object() && has_steps;
}

Result<StepPlan> steps_from_json(std::string_view json, const std::string& source) {
  PassedOver passed;
  auto keeps = [&](int depth, StepJson::parse_event_t event, const StepJson& value) {
    return passed.keeps(depth, event, value);
  };
  const StepJson parsed = parse_json<StepJson>(json.begin(), json.end(), keeps).tree;
  EditedJson in;
  StepPlan plan;
  if (parsed.is_discarded() || passed.too_deep) {
    in.complain("it is no JSON");
  } else if (!passed.twice.empty()) {
    in.complain("\"" + passed.twice + "\" is there twice");
  } else {
    in.only(parsed, {"schema", "plan", "checkpoint", "fingerprint", "inputs", "steps", "target",
                     "hash", "explain"});
    if (in.ok() && in.text(parsed, "schema") != "shardwright/1")
      in.complain("\"schema\" is another one");
    if (EditedJson::has(parsed, "checkpoint")) plan.checkpoint = in.text(parsed, "checkpoint");
    if (EditedJson::has(parsed, "fingerprint")) plan.fingerprint = in.text(parsed, "fingerprint");
    if (EditedJson::has(parsed, "inputs")) {
      for (const StepJson& one : in.list(parsed, "inputs")) {
        in.only(one, {"checkpoint", "fingerprint"});
        if (!in.ok()) break;
        plan.inputs.push_back({in.text(one, "checkpoint"), in.text(one, "fingerprint")});
      }
    }
    read_target(in, parsed, plan);
    read_steps(in, parsed, plan);
  }
  if (in.ok()) return plan;
  return fail(ErrorKind::kDamaged, "is no plan that can be used: " + in.error(), {source});
}

}  // namespace shw
