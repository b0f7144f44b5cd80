// Rules about names, files and values without a spec: each reports its defect, and is silent about
// similar healthy checkpoints.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/facts/states/moment_constraints.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/formats/torch_file/torch_file_formats.h"
#include "core/model/builder.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

void add(CheckpointBuilder& builder, const std::string& fqn, const Extents& shape = {4}) {
  builder.add_tensor(fqn, Dtype::kFloat32, shape);
  builder.add_chunk(Extents(shape.size(), 0), shape, {builder.file("__0_0.distcp"), 0, 64});
}

// Severity of the rule's first finding; nothing where it is silent.
std::optional<Severity> said(CheckpointBuilder& builder, std::string_view rule,
                             std::shared_ptr<const Spec> spec = nullptr) {
  auto report = check(*builder.finish(), CheckOptions{Depth::kMetadata, spec, std::nullopt});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    if (finding.rule != rule) continue;
    CHECK_FALSE(finding.cause.empty());
    CHECK_FALSE(finding.subjects.empty());
    CHECK_FALSE(finding.evidence.empty());
    return finding.severity;
  }
  return std::nullopt;
}

void add_layers(CheckpointBuilder& builder, int count, int without) {
  for (int i = 0; i < count; ++i) {
    if (i == without) continue;
    add(builder, "model.layers." + std::to_string(i) + ".mlp.up_proj.weight");
    add(builder, "model.layers." + std::to_string(i) + ".attn.q_proj.weight");
  }
}

}  // namespace

TEST_CASE("a layer that is missing between equal ones is a hole and a model's own gaps are not") {
  CheckpointBuilder hole, whole, last, activations, dense_first;
  add_layers(hole, 8, 3);
  CHECK(said(hole, "keyset-hole") == Severity::kInfo);
  add_layers(whole, 8, -1);
  CHECK_FALSE(said(whole, "keyset-hole").has_value());
  add_layers(last, 8, 7);
  CHECK_FALSE(said(last, "keyset-hole").has_value());
  for (int i = 0; i < 10; i += 2) add(activations, "layers." + std::to_string(i) + ".weight");
  CHECK_FALSE(said(activations, "keyset-hole").has_value());
  // Experts in the later layers only.
  add_layers(dense_first, 8, -1);
  for (int i = 3; i < 8; ++i)
    add(dense_first, "model.layers." + std::to_string(i) + ".mlp.experts.0.w1.weight");
  CHECK_FALSE(said(dense_first, "keyset-hole").has_value());
}

TEST_CASE(
    "a weight that one of many equal layers lacks is a warning, and layers of two kinds none") {
  const auto said_without = [](int layers, const std::vector<int>& lacking, const char* name,
                               const char* own = nullptr, const std::string& row = "blocks.") {
    CheckpointBuilder builder;
    for (int i = 0; i < layers; ++i) {
      const std::string layer = row + std::to_string(i);
      const bool lacks = std::find(lacking.begin(), lacking.end(), i) != lacking.end();
      for (const char* each : {".attn.qkv.weight", ".attn.qkv.bias", ".mlp.fc1.weight",
                               ".mlp.fc2.weight", ".mlp.fc2.weight_scale"}) {
        if (!lacks || std::string(each) != name) add(builder, layer + each);
      }
      if (lacks && own != nullptr) add(builder, layer + own);
    }
    return said(builder, "keyset-hole");
  };
  CHECK(said_without(12, {5}, ".mlp.fc1.weight") == Severity::kWarning);
  CHECK(said_without(40, {5, 20}, ".mlp.fc1.weight") == Severity::kWarning);
  CHECK(said_without(12, {5}, ".mlp.fc1.weight", nullptr, "backbone.layer3.") ==
        Severity::kWarning);
  CHECK(said_without(12, {5}, ".mlp.fc1.weight", nullptr, "") == Severity::kWarning);
  CHECK_FALSE(said_without(12, {}, ""));
  // These have one dimension, as norms have, which a first or last layer may lack.
  CHECK_FALSE(said_without(12, {0}, ".mlp.fc1.weight"));
  CHECK_FALSE(said_without(12, {11}, ".mlp.fc1.weight"));
  CHECK_FALSE(said_without(7, {5}, ".mlp.fc1.weight"));
  CHECK_FALSE(said_without(12, {2, 5, 8}, ".mlp.fc1.weight"));
  CHECK_FALSE(said_without(12, {5}, ".mlp.fc1.weight", ".mlp.experts.0.weight"));
  CHECK_FALSE(said_without(12, {5}, ".mlp.fc2.weight_scale"));
  CHECK_FALSE(said_without(12, {5}, ".attn.qkv.bias"));
}

TEST_CASE("a hole that the spec has as well is the model's own") {
  CheckpointBuilder hole;
  add_layers(hole, 8, 3);
  auto spec = std::make_shared<Spec>();
  spec->entries["model.layers.2.mlp.up_proj.weight"].shape = {4};
  CHECK_FALSE(said(hole, "keyset-hole", spec).has_value());
}

TEST_CASE("one moment of two is a warning among many pairs, and silence for another optimizer") {
  auto states = [](CheckpointBuilder& builder, int whole, const char* odd) {
    for (int i = 0; i < whole; ++i) {
      add(builder, "optim.state.l" + std::to_string(i) + ".w.exp_avg");
      add(builder, "optim.state.l" + std::to_string(i) + ".w.exp_avg_sq");
    }
    add(builder, std::string("optim.state.odd.w.") + odd);
  };
  CheckpointBuilder half, whole, momentum, lion;
  states(half, 8, "exp_avg");
  CHECK(said(half, "half-pair") == Severity::kWarning);
  states(momentum, 8, "momentum_buffer");
  CHECK_FALSE(said(momentum, "half-pair").has_value());
  states(lion, 1, "exp_avg");
  CHECK_FALSE(said(lion, "half-pair").has_value());
  // Schedule-free keeps z in place of the mean; Lion under a name of its own is another optimizer.
  CheckpointBuilder schedule_free, other;
  states(schedule_free, 8, "exp_avg_sq");
  add(schedule_free, "optim.state.odd.w.z");
  CHECK_FALSE(said(schedule_free, "half-pair").has_value());
  states(other, 8, "momentum_buffer");
  add(other, "lion.state.some.w.exp_avg");
  CHECK_FALSE(said(other, "half-pair").has_value());
}

TEST_CASE("one matrix of two of an adapter is a warning among whole ones") {
  auto adapters = [](CheckpointBuilder& builder, int count, const char* without) {
    for (int i = 0; i < count; ++i) {
      for (const char* matrix : {"lora_A", "lora_B"}) {
        const std::string fqn =
            "base_model.model.layers." + std::to_string(i) + ".q_proj." + matrix;
        if (i != 2 || std::string_view(matrix) != without) add(builder, fqn + ".weight", {8, 2});
      }
    }
  };
  for (const char* without : {"lora_A", "lora_B"}) {
    CheckpointBuilder half;
    adapters(half, 4, without);
    CHECK(said(half, "half-pair") == Severity::kWarning);
  }
  CheckpointBuilder whole, first_alone;
  adapters(whole, 4, "");
  CHECK_FALSE(said(whole, "half-pair").has_value());
  for (int i = 0; i < 8; ++i) add(first_alone, "l" + std::to_string(i) + ".lora_A.weight");
  CHECK_FALSE(said(first_alone, "half-pair").has_value());
}

TEST_CASE("a matrix by its name that was saved flat is one rank's part") {
  auto model = [](const Format& format, const Extents& embedding) {
    CheckpointBuilder builder;
    builder.set_format(format);
    add(builder, "model.embed_tokens.weight", embedding);
    add(builder, "model.layers.0.self_attn.q_proj.weight", {16, 16});
    add(builder, "model.layers.0.input_layernorm.weight", {16});
    return said(builder, "flat-shard");
  };
  CHECK(model(kSafetensorsFormat, {260}) == Severity::kWarning);
  CHECK(model(kSafetensorsFormat, {0}) == Severity::kWarning);
  CHECK_FALSE(model(kSafetensorsFormat, {64, 16}).has_value());
  // Tiles of a flat parameter are recorded as such.
  CHECK_FALSE(model(kDcpFormat, {260}).has_value());
}

TEST_CASE("a flat parameter of FSDP in a file of whole tensors is one rank's part") {
  auto model = [](const Format& format, const std::string& name, const Extents& shape) {
    CheckpointBuilder builder;
    builder.set_format(format);
    add(builder, name, shape);
    return said(builder, "flat-shard");
  };
  const std::string flat = "model.layers.0._flat_param";
  CHECK(model(kSafetensorsFormat, flat, {142}) == Severity::kWarning);
  CHECK(model(kTorchFileFormat, "_flat_param", {142}) == Severity::kWarning);
  CHECK(model(kTorchFileFormat, "_fsdp_wrapped_module.flat_param", {9}) == Severity::kWarning);
  CHECK_FALSE(model(kDcpFormat, flat, {142}).has_value());
  CHECK_FALSE(model(kSafetensorsFormat, "model.my_flat_param", {142}).has_value());
  CHECK_FALSE(model(kSafetensorsFormat, "optim.state._flat_param.exp_avg", {142}).has_value());
}

TEST_CASE("the number of an expert at the end of a name of Hugging Face is reported") {
  auto model = [](const Format& format, const std::string& name) {
    CheckpointBuilder builder;
    builder.set_format(format);
    add(builder, name, {4, 4});
    return said(builder, "expert-suffix");
  };
  const std::string saved = "model.layers.0.mlp.experts.gate_proj.weight100";
  CHECK(model(kSafetensorsFormat, saved) == Severity::kWarning);
  CHECK(model(kDcpFormat, saved) == Severity::kInfo);
  for (const char* sound :
       {"decoder.layers.0.mlp.experts.linear_fc1.weight100",
        "model.layers.0.mlp.experts.100.gate_proj.weight", "model.layers.0.mlp.gate_proj.weight2",
        "experts.gate_proj.weight", "weight100", "experts.weight1", ".weight1", "a..weight1"}) {
    CAPTURE(sound);
    CHECK_FALSE(model(kSafetensorsFormat, sound).has_value());
  }
}

TEST_CASE("a rank without a file is information, and a rank of 2^32 - 1 costs nothing") {
  CheckpointBuilder hole, whole, huge;
  for (auto [builder, last] : {std::pair{&hole, "__3_0.distcp"},
                               {&whole, "__1_0.distcp"},
                               {&huge, "__4294967295_0.distcp"}}) {
    builder->set_format(kDcpFormat);
    builder->add_tensor("w", Dtype::kFloat32, Extents{4});
    builder->add_chunk(Extents{0}, Extents{2}, {builder->file("__0_0.distcp"), 0, 8});
    builder->add_chunk(Extents{2}, Extents{2}, {builder->file(last), 0, 8});
  }
  CHECK(said(hole, "rank-hole") == Severity::kInfo);
  CHECK_FALSE(said(whole, "rank-hole").has_value());
  CHECK(said(huge, "rank-hole") == Severity::kInfo);
}

TEST_CASE("copies recorded as parts are an axis that grew and a larger model is not") {
  auto spec = std::make_shared<Spec>();
  spec->entries["w"].shape = {4, 2};
  CheckpointBuilder copies, larger;
  copies.add_tensor("w", Dtype::kFloat32, Extents{8, 2});
  copies.add_chunk(Extents{0, 0}, Extents{4, 2}, {copies.file("__0_0.distcp"), 0, 8});
  copies.add_chunk(Extents{4, 0}, Extents{4, 2}, {copies.file("__1_0.distcp"), 0, 8});
  CHECK(said(copies, "axis-grown", spec) == Severity::kError);
  add(larger, "w", {8, 2});
  CHECK_FALSE(said(larger, "axis-grown", spec).has_value());
}

TEST_CASE("unequal pairs and extra states of unequal length are information") {
  CheckpointBuilder pair, equal;
  add(pair, "l.mlp.gate_proj.weight", {4, 2});
  add(pair, "l.mlp.up_proj.weight", {2, 2});
  add(pair, "layers.0.fc1._extra_state", {8});
  add(pair, "layers.1.fc1._extra_state", {0});
  CHECK(said(pair, "pair-asymmetry") == Severity::kInfo);
  CheckpointBuilder extra;
  add(extra, "layers.0.fc1._extra_state", {8});
  add(extra, "layers.1.fc1._extra_state", {0});
  CHECK(said(extra, "extra-state") == Severity::kInfo);
  add(equal, "l.mlp.gate_proj.weight", {4, 2});
  add(equal, "l.mlp.up_proj.weight", {4, 2});
  CHECK_FALSE(said(equal, "pair-asymmetry").has_value());
}

TEST_CASE("the bound of two moments is that of the betas") {
  CHECK(moment_constant(0.9, 0.95) == doctest::Approx(1.357).epsilon(0.001));
  CHECK(moment_constant(0.9, 0.99) == doctest::Approx(5.5).epsilon(0.001));
  CHECK(moment_constant(0.9, 0.999) == doctest::Approx(52.86).epsilon(0.001));
  CHECK(moment_constant(0.99, 0.9) > 1e300);
}

TEST_CASE("no gradients lead beyond the bound, and swapped rows do") {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.95;
  double constant = moment_constant(kBeta1, kBeta2);
  MomentCount healthy, swapped;
  for (int row = 0; row < 64; ++row) {
    double m = 0, v = 0;
    for (int step = 0; step < 40; ++step) {
      double gradient = (row % 7 + 1) * ((step * 31 + row * 17) % 13 - 3.0);
      m = kBeta1 * m + (1 - kBeta1) * gradient;
      v = kBeta2 * v + (1 - kBeta2) * gradient * gradient;
    }
    healthy.add(m, v, constant, 0.02);
    swapped.add(m, v / 10'000, constant, 0.02);
  }
  CHECK(healthy.looked_at == 64);
  CHECK(healthy.above + healthy.negative + healthy.without_root == 0);
  CHECK(swapped.above > 32);
  MomentCount certain;
  certain.add(0.1, -1e-9, constant, 0.02);
  certain.add(0.1, 0, constant, 0.02);
  certain.add(0, 0, constant, 0.02);
  certain.add(1e-20, 0, constant, 0.02);
  CHECK(certain.negative == 1);
  CHECK(certain.without_root == 1);
}
