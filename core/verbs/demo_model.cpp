#include "core/verbs/demo_model.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

Mesh mesh_of(const Json& json) {
  Mesh mesh;
  for (const auto& [axis, size] : json.items())
    mesh.axes.push_back({axis, size.get<std::int64_t>()});
  return mesh;
}

Placement shard_placement(std::int64_t dim) {
  return {Placement::Kind::kShard, dim, 1};
}

// Hybrid FSDP: split along dim 0 over dp_shard; replicas write equal chunks in turn, as torch's
// deduplication does.
DemoTensor make_dense_tensor(const DemoModel& model, std::string fqn, Dtype dtype, Extents shape,
                             std::size_t turn) {
  std::int64_t replicas = model.dense_mesh.axes[0].size;
  std::int64_t shards = shape.empty() ? 1 : model.dense_mesh.axes[1].size;
  DemoTensor tensor{std::move(fqn),    dtype, shape, {}, {}, shape,
                    &model.dense_mesh, {},    {},    {}, 0,  0};
  tensor.placements = {Placement{}, shape.empty() ? Placement{} : shard_placement(0)};
  for (std::int64_t s = 0; s < shards; ++s) {
    Box box = whole(shape);
    if (!shape.empty()) {
      Cut part = chunk_of(shape[0], shards, s);
      box.offsets[0] = part.offset;
      box.sizes[0] = part.size;
    }
    std::int64_t replica = (static_cast<std::int64_t>(turn) + s) % replicas;
    auto writer = static_cast<std::uint32_t>(replica * model.dense_mesh.axes[1].size + s);
    tensor.tiles.push_back({std::move(box), writer});
  }
  return tensor;
}

// The defect: dims 1 and 2 were transposed before saving without the placements. Each rank holds a
// part of dim 2, recorded as a part of dim 1.
DemoTensor expert(const DemoModel& model, std::string fqn, Dtype dtype, const Extents& shape) {
  std::int64_t shards = model.expert_mesh.axes[0].size, parallel = model.expert_mesh.axes[1].size;
  Extents tile{shape[0] / parallel, shape[1], shape[2] / shards};
  Extents recorded{shape[0], shape[1] * shards, shape[2] / shards};
  DemoTensor tensor{std::move(fqn),     dtype, recorded, {}, {}, shape,
                    &model.expert_mesh, {},    "expert", {}, 0,  0};
  tensor.placements = {shard_placement(2), shard_placement(0)};
  for (std::int64_t e = 0; e < parallel; ++e) {
    for (std::int64_t s = 0; s < shards; ++s) {
      Box box{{e * tile[0], s * tile[1], 0}, tile};
      tensor.tiles.push_back({std::move(box), static_cast<std::uint32_t>(s * parallel + e)});
    }
  }
  return tensor;
}

class Reader {
 public:
  Reader(const Json& recipe, DemoModel& model)
      : recipe_(recipe),
        model_(model),
        dtype_(dtype_from_torch(recipe["dtype"].get<std::string>()).value_or(Dtype::kBfloat16)) {}

  void read() {
    model_.checkpoint = recipe_["checkpoint"].get<std::string>();
    model_.dense_mesh = mesh_of(recipe_["dense_mesh"]);
    model_.expert_mesh = mesh_of(recipe_["expert_mesh"]);
    auto expert_layer = recipe_["expert_layer"].get<int>();
    for (int layer = 0; layer < recipe_["layers"].get<int>(); ++layer) {
      std::string prefix = fmt::format("model.layers.{}.", layer);
      add_group(prefix, "every_layer");
      add_group(prefix, layer == expert_layer ? "expert_layer_tensors" : "dense_layer");
      if (layer == expert_layer) add_experts(prefix);
    }
    add_group("", "outside_layers");
    add_states();
    for (const auto& [fqn, scalar] : recipe_["scalars"].items()) {
      auto dtype = dtype_from_torch(scalar["dtype"].get<std::string>());
      add_dense(fqn, dtype.value_or(Dtype::kInt64), scalar["shape"].get<Extents>(), {fqn});
      if (scalar.contains("value")) add_number(scalar["value"].get<std::int64_t>());
    }
  }

 private:
  void add_dense(const std::string& fqn, Dtype dtype, const Extents& shape,
                 std::vector<PathPart> path) {
    DemoTensor tensor = make_dense_tensor(model_, fqn, dtype, shape, model_.tensors.size());
    tensor.path = std::move(path);
    model_.tensors.push_back(std::move(tensor));
  }

  // Sets the single value of the last added tensor.
  void add_number(std::int64_t number) {
    model_.tensors.back().values = DemoValues::kNumber;
    model_.tensors.back().number = number;
  }

  void add_group(const std::string& prefix, const char* group) {
    for (const auto& [fqn, shape] : recipe_[group].items()) {
      parameters_.push_back({prefix + fqn, shape.get<Extents>(), model_.tensors.size()});
      add_dense(prefix + fqn, dtype_, shape.get<Extents>(), {prefix + fqn});
    }
  }

  void add_experts(const std::string& prefix) {
    for (const auto& [fqn, shape] : recipe_["experts"].items()) {
      model_.tensors.push_back(expert(model_, prefix + fqn, dtype_, shape.get<Extents>()));
      model_.tensors.back().path = {prefix + fqn};
    }
  }

  // Experts are frozen: only other parameters have optimizer states.
  void add_states() {
    for (const Parameter& parameter : parameters_) {
      auto add = [&](const std::string& state, Dtype dtype, const Extents& shape) {
        add_dense("optim.state." + parameter.fqn + "." + state, dtype, shape,
                  {"optim", "state", parameter.fqn, state});
        model_.tensors.back().gradients = parameter.tensor;
      };
      add("step", Dtype::kFloat32, {});
      add_number(recipe_["step"].get<std::int64_t>());
      add("exp_avg", dtype_, parameter.shape);
      model_.tensors.back().values = DemoValues::kMean;
      add("exp_avg_sq", dtype_, parameter.shape);
      model_.tensors.back().values = DemoValues::kSquare;
    }
  }

  struct Parameter {
    std::string fqn;
    Extents shape;
    std::size_t tensor = 0;  // index in model_
  };

  const Json& recipe_;
  DemoModel& model_;
  Dtype dtype_;
  std::vector<Parameter> parameters_;
};

}  // namespace

Status read_demo_model(std::string_view recipe, DemoModel& model) {
  try {
    Json json = Json::parse(recipe);
    Reader(json, model).read();
  } catch (const nlohmann::json::exception& problem) {
    return fail(ErrorKind::kDamaged, problem.what(), {"assets/demo.json", {}, {}});
  }
  return {};
}

std::string demo_spec_json(const DemoModel& model) {
  Json json = Json::object();
  for (const DemoTensor& tensor : model.tensors) {
    Json entry{{"shape", tensor.expected}, {"dtype", name(tensor.dtype)}};
    for (const MeshAxis& axis : tensor.mesh->axes) entry["mesh"][axis.name] = axis.size;
    for (const Placement& placement : tensor.placements)
      entry["placements"].push_back(to_text(placement));
    if (!tensor.role.empty()) entry["role"] = tensor.role;
    json[tensor.fqn] = std::move(entry);
  }
  return json.dump(1) + "\n";
}

}  // namespace shw
