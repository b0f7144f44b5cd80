#include "core/transform/json.h"

namespace shw {
namespace {

using StepJson = nlohmann::ordered_json;

// Limit on numbers in a list: far more than anyone writes by hand, and few enough for memory.
constexpr std::size_t kMaxNumbers = 1 << 20;

// ---- writing

StepJson json_of_boxes(const std::vector<Box>& boxes) {
  StepJson list = StepJson::array();
  for (const Box& box : boxes) list.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  return list;
}

StepJson json_of_lost_files(const FillStep& step) {
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

struct ValueWriter {
  StepJson operator()(std::monostate) const { return nullptr; }
  template <class T>
  StepJson operator()(const T& value) const {
    return value;
  }
};

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
    out["mesh"] = mesh_option_text(step.mesh);
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
  void operator()(const CopyStep& step) const {
    out["from"] = step.from;
    out["to"] = step.to;
  }
  void operator()(const DropStep& step) const { out["tensors"] = step.tensors; }
  void operator()(const CreateTensorsStep& step) const {
    out["tensors"] = step.tensors;
    out["dtype"] = shw::name(step.dtype);
    out["shape"] = step.shape;
    out["value"] = step.value;
  }
  void operator()(const CreateEntriesStep& step) const {
    out["entries"] = step.entries;
    out["value"] = std::visit(ValueWriter{}, step.value);
  }
  void operator()(const CastStep& step) const {
    out["tensors"] = step.tensors;
    out["dtype"] = shw::name(step.dtype);
  }
  void operator()(const AddStep& step) const {
    out["tensors"] = step.tensors;
    out["value"] = step.value;
  }
  void operator()(const FillStep& step) const {
    out["tensors"] = step.tensors;
    if (step.boxes) out["boxes"] = json_of_boxes(*step.boxes);
    if (step.gone) out["gone"] = json_of_lost_files(step);
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

// ---- reading: one function per step, in the order of the variant

Step read_relabel(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensor", "shape", "tiles"});
  RelabelStep step{in.text(json, "tensor"), in.extents(json, "shape"), {}};
  for (const StepJson& one : in.list(json, "tiles")) {
    in.allow_only_keys(one, {"chunk", "offsets"});
    if (!in.ok()) break;
    step.tiles.push_back({in.number<std::uint32_t>(one, "chunk"), in.extents(one, "offsets")});
  }
  return step;
}

Step read_retile(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "tiles"});
  RetileStep step{in.texts(json, "tensors"), {}};
  for (const StepJson& one : in.list(json, "tiles")) {
    in.allow_only_keys(one, {"offsets", "sizes", "writer"});
    if (!in.ok()) break;
    step.tiles.push_back({in.box(one), in.number<std::uint32_t>(one, "writer")});
  }
  return step;
}

Step read_reshard(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "mesh", "placements"});
  ReshardStep step{in.texts(json, "tensors"), {}, {}};
  auto mesh = parse_mesh(in.text(json, "mesh"));
  if (mesh) {
    step.mesh = std::move(*mesh);
  } else {
    in.complain(mesh.error().message);
  }
  for (const std::string& text : in.texts(json, "placements")) {
    auto placement = parse_placement(text);
    if (!placement) in.complain("\"" + text + "\" is not a placement");
    step.placements.push_back(placement.value_or(Placement{}));
  }
  return step;
}

Step read_permute_dims(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "order"});
  return PermuteDimsStep{in.texts(json, "tensors"), in.extents(json, "order")};
}

Step read_permute_blocks(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "dim", "sizes", "order"});
  PermuteBlocksStep step;
  step.tensors = in.texts(json, "tensors");
  step.dim = in.number<std::int64_t>(json, "dim");
  if (EditedJson::has(json, "sizes")) step.sizes = in.extents(json, "sizes", kMaxNumbers);
  step.order = in.extents(json, "order", kMaxNumbers);
  return step;
}

Step read_split(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensor", "dim", "sizes", "into", "drop_dim"});
  return SplitStep{in.text(json, "tensor"), in.number<std::int64_t>(json, "dim"),
                   in.extents(json, "sizes", kMaxNumbers), in.texts(json, "into"),
                   in.boolean(json, "drop_dim", false)};
}

Step read_concat(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "dim", "into", "new_dim"});
  return ConcatStep{in.texts(json, "tensors"), in.number<std::int64_t>(json, "dim"),
                    in.text(json, "into"), in.boolean(json, "new_dim", false)};
}

Step read_pad(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "before", "after", "value"});
  return PadStep{in.texts(json, "tensors"), in.extents(json, "before"), in.extents(json, "after"),
                 in.real(json, "value", 0)};
}

Step read_trim(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "offsets", "sizes"});
  return TrimStep{in.texts(json, "tensors"), in.box(json)};
}

Step read_rename(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "from", "to", "regex"});
  return RenameStep{in.text(json, "from"), in.text(json, "to"), in.boolean(json, "regex", false)};
}

Step read_copy(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "from", "to"});
  return CopyStep{in.text(json, "from"), in.text(json, "to")};
}

Step read_drop(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors"});
  return DropStep{in.texts(json, "tensors")};
}

Step read_create_tensors(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "dtype", "shape", "value"});
  return CreateTensorsStep{in.texts(json, "tensors"), in.dtype(json, "dtype"),
                           in.extents(json, "shape"), in.real(json, "value", 0)};
}

EntryValue read_value(EditedJson& in, const StepJson& value) {
  if (value.is_null()) return std::monostate();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return in.integer(value, "value");
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return unescape_name(value.get_ref<const std::string&>());
  const auto is_list_of = [&](bool (*is_one)(const StepJson&)) {
    return value.is_array() && value.size() <= kMaxNumbers &&
           std::all_of(value.begin(), value.end(), is_one);
  };
  if (is_list_of([](const StepJson& one) { return one.is_number_integer(); }))
    return value.get<std::vector<std::int64_t>>();
  if (is_list_of([](const StepJson& one) { return one.is_number(); }))
    return value.get<std::vector<double>>();
  if (is_list_of([](const StepJson& one) { return one.is_string(); })) {
    std::vector<std::string> texts;
    for (const StepJson& one : value)
      texts.push_back(unescape_name(one.get_ref<const std::string&>()));
    return texts;
  }
  in.complain("\"value\" is neither null, true, false, a number, text nor a list of them");
  return {};
}

Step read_create_entries(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "entries", "value"});
  return CreateEntriesStep{in.texts(json, "entries"), read_value(in, in.member(json, "value"))};
}

Step read_cast(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "dtype"});
  return CastStep{in.texts(json, "tensors"), in.dtype(json, "dtype")};
}

// Reads "gone": true, or the list of files that it was resolved to.
void read_lost_files(EditedJson& in, const StepJson& json, FillStep& step) {
  if (!EditedJson::has(json, "gone")) return;
  if (!in.member(json, "gone").is_array()) {
    step.gone = in.boolean(json, "gone");
    return;
  }
  step.gone = true;
  step.left.emplace();
  for (const StepJson& file : in.list(json, "gone")) {
    in.allow_only_keys(file, {"file", "bytes"});
    (*step.left)[in.text(file, "file")] = in.number<std::uint64_t>(file, "bytes");
  }
}

Step read_add(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "value"});
  return AddStep{in.texts(json, "tensors"), in.real(json, "value", 0)};
}

Step read_fill(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(
      json, {"step", "tensors", "boxes", "gone", "value", "from_checkpoint", "from_tensor"});
  FillStep step;
  step.tensors = in.texts(json, "tensors");
  if (EditedJson::has(json, "boxes")) step.boxes = in.boxes(json, "boxes");
  read_lost_files(in, json, step);
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
  in.allow_only_keys(json, {"step", "tensors", "boxes", "value"});
  return MaskStep{in.texts(json, "tensors"), in.boxes(json, "boxes"), in.real(json, "value", 0)};
}

Step read_dequantise(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensors", "suffix", "block", "dtype"});
  DequantiseStep step;
  step.tensors = in.texts(json, "tensors");
  if (EditedJson::has(json, "suffix")) step.suffix = in.text(json, "suffix");
  if (step.suffix.empty()) in.complain("\"suffix\" is empty");
  step.block = in.extents(json, "block");
  step.dtype = in.dtype(json, "dtype");
  return step;
}

Step read_restore(EditedJson& in, const StepJson& json) {
  in.allow_only_keys(json, {"step", "tensor", "file", "offset", "length", "dtype", "sizes", "at"});
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
    {"copy", read_copy},
    {"drop", read_drop},
    {"create-tensors", read_create_tensors},
    {"create-entries", read_create_entries},
    {"cast", read_cast},
    {"add", read_add},
    {"fill", read_fill},
    {"mask", read_mask},
    {"dequantise", read_dequantise},
    {"restore", read_restore},
};

}  // namespace

nlohmann::ordered_json json_of_step(const Step& step) {
  StepJson out = {{"step", name(step)}};
  std::visit(StepWriter{out}, step);
  return out;
}

Step read_step(EditedJson& in, const nlohmann::ordered_json& json) {
  const std::string word = in.text(json, "step");
  const auto* reader = std::find_if(std::begin(kStepReaders), std::end(kStepReaders),
                                    [&](const StepReader& row) { return row.word == word; });
  if (in.ok() && reader == std::end(kStepReaders)) in.complain("there is no step \"" + word + "\"");
  return in.ok() ? reader->read(in, json) : Step{};
}

}  // namespace shw
