// Converting back, for the pair of tests/core/maps: its Megatron side equals a conversion of its
// Hugging Face side.
#include "core/verbs/round_trip.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/formats/items/items.h"
#include "core/formats/plain_value.h"
#include "core/temporary_folder.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/mapped_view.h"

using namespace shw;

namespace {

const std::string kBothSides = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/";

verbs::Opened source_at(const std::string& path) {
  auto checkpoint = verbs::open_requested(path, nullptr);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  verbs::Opened opened;
  opened.checkpoint = std::move(*checkpoint);
  return opened;
}

RoundTripResult gone_back(const std::string& from, const std::string& to,
                          const std::string& output) {
  VerbOptions said;
  said.to = to;
  auto back =
      verbs::check_round_trip(source_at(from), said, {{}, {}, kBothSides + "hf"}, {}, output);
  REQUIRE_MESSAGE(back.has_value(), back.error().message);
  return std::move(*back);
}

}  // namespace

TEST_CASE("round trip: what a conversion wrote comes back as the source") {
  const RoundTripResult back = gone_back(kBothSides + "hf", "torch_dist", kBothSides + "megatron");
  CHECK(back.program == "hf");
  CHECK(back.equal == source_at(kBothSides + "hf").checkpoint->tensor_count());
  CHECK(back.differ.empty());
  CHECK(back.without.empty());
  const RoundTripResult other = gone_back(kBothSides + "megatron", "hf", kBothSides + "hf");
  CHECK(other.program == "torch_dist");
  CHECK(other.equal > 0);
  CHECK(other.differ.empty());
}

TEST_CASE("round trip: a changed element is named by its tensor") {
  TemporaryFolder folder;
  std::filesystem::copy(kBothSides + "hf", folder / "hf");
  {
    std::fstream file(folder / "hf/model.safetensors",
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(-1, std::ios::end);
    const char changed = static_cast<char>(file.get() ^ 1);
    file.seekp(-1, std::ios::end);
    file.put(changed);
  }
  const RoundTripResult back = gone_back(folder / "hf", "torch_dist", kBothSides + "megatron");
  CHECK(back.differ.size() == 1);
}

TEST_CASE("round trip: a format alone needs no map, and what was left out is named") {
  VerbOptions said;
  said.to = "dcp";
  auto back =
      verbs::check_round_trip(source_at(kBothSides + "hf"), said, {}, {}, kBothSides + "megatron");
  REQUIRE(back.has_value());
  CHECK(back->program.empty());
  CHECK(back->equal == 0);
  CHECK(back->without.size() == source_at(kBothSides + "hf").checkpoint->tensor_count());
}

namespace {

const verbs::MapOptions kConfig{{}, {}, kBothSides + "hf"};

void write_as(const verbs::Opened& source, Plan plan, const std::string& output) {
  auto made = verbs::repair(source, plan, {output}, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
}

void convert_to(const std::string& program, const std::string& from, const std::string& output) {
  VerbOptions said;
  said.to = program;
  const verbs::Opened source = source_at(from);
  auto made = verbs::plan_mapped(source, said, kConfig);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  write_as(source, std::move(made->plan), output);
}

// Adds Adam's moments to the weights of a checkpoint, in float32 and in float64.
void add_moments(const std::string& from, const std::string& output) {
  const verbs::Opened source = source_at(from);
  Plan plan = verbs::empty_plan_for(source);
  plan.format = "dcp";
  for (TensorId tensor : source.checkpoint->tensors()) {
    const std::string fqn(source.checkpoint->fqn(tensor)), state = "optimizer.state." + fqn;
    plan.steps.emplace_back(CopyStep{fqn, state + ".exp_avg"});
    plan.steps.emplace_back(CopyStep{fqn, state + ".exp_avg_sq"});
    plan.steps.emplace_back(CastStep{{state + ".exp_avg"}, Dtype::kFloat32});
    plan.steps.emplace_back(CastStep{{state + ".exp_avg_sq"}, Dtype::kFloat64});
  }
  write_as(source, std::move(plan), output);
}

}  // namespace

TEST_CASE("round trip: optimizer states come back as they were, and the certificate holds") {
  TemporaryFolder folder;
  convert_to("titan", kBothSides + "hf", folder / "weights");
  add_moments(folder / "weights", folder / "titan");
  for (const std::string program : {"torch_dist", "fsdp_dtensor"}) {
    CAPTURE(program);
    convert_to(program, folder / "titan", folder / program);
    auto proof = verbs::verify(folder / program);
    REQUIRE_MESSAGE(proof.has_value(), proof.error().message);
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
    const RoundTripResult back = gone_back(folder / "titan", program, folder / program);
    CHECK(back.equal == source_at(folder / "titan").checkpoint->tensor_count());
    CHECK(back.differ.empty());
    CHECK(back.without.empty());
  }
  std::ifstream common(folder / "torch_dist/common.pt", std::ios::binary);
  const std::string said{std::istreambuf_iterator<char>(common), {}};
  CHECK(said.find("fully_reshardable") != std::string::npos);
  // Padding of a moment is cut off like that of its weight.
  const RoundTripResult other =
      gone_back(folder / "torch_dist", "fsdp_dtensor", folder / "fsdp_dtensor");
  CHECK(other.differ.empty());
}

TEST_CASE("round trip: states of a model with Hugging Face's names are followed, masters too") {
  TemporaryFolder folder;
  add_moments(kBothSides + "hf", folder / "moments");
  const verbs::Opened source = source_at(folder / "moments");
  Plan plan = verbs::empty_plan_for(source);
  plan.format = "dcp";
  for (TensorId tensor : source.checkpoint->tensors()) {
    const std::string fqn(source.checkpoint->fqn(tensor));
    if (fqn.starts_with("optimizer.")) continue;
    plan.steps.emplace_back(CopyStep{fqn, "optimizer.state." + fqn + ".master_param"});
    plan.steps.emplace_back(
        CastStep{{"optimizer.state." + fqn + ".master_param"}, Dtype::kFloat32});
  }
  write_as(source, std::move(plan), folder / "hf");
  convert_to("torch_dist", folder / "hf", folder / "megatron");
  const RoundTripResult back = gone_back(folder / "hf", "torch_dist", folder / "megatron");
  CHECK(back.equal == source_at(folder / "hf").checkpoint->tensor_count());
  CHECK(back.differ.empty());
  CHECK(back.without.empty());
  CHECK(back.left_out == 0);
}

TEST_CASE("round trip: states without a place are left out by design, not lost") {
  TemporaryFolder folder;
  add_moments(kBothSides + "hf", folder / "moments");
  convert_to("torch_dist", folder / "moments", folder / "megatron");
  convert_to("hf", folder / "megatron", folder / "hf");
  const RoundTripResult back = gone_back(folder / "megatron", "hf", folder / "hf");
  CHECK(back.without.empty());
  CHECK(back.differ.empty());
  CHECK(back.left_out_why.size() == 3);  // two moments and the masters that Megatron needs
  // A result without states that the conversion carries has lost them.
  const RoundTripResult lost = gone_back(folder / "moments", "torch_dist", kBothSides + "megatron");
  CHECK(lost.without.size() == 2 * source_at(kBothSides + "hf").checkpoint->tensor_count());
  CHECK(lost.left_out == 0);
}

namespace {

constexpr double kSteps = 250;

// Adds the step and the settings of each parameter, as torchtitan saves them.
void add_settings(const std::string& from, const std::string& output) {
  const verbs::Opened source = source_at(from);
  Plan plan = verbs::empty_plan_for(source);
  plan.format = "dcp";
  for (TensorId tensor : source.checkpoint->tensors()) {
    const std::string fqn(source.checkpoint->fqn(tensor));
    if (fqn.starts_with("optimizer.")) continue;
    plan.steps.emplace_back(
        CreateTensorsStep{{"optimizer.state." + fqn + ".step"}, Dtype::kFloat32, {}, kSteps});
    const std::pair<const char*, EntryValue> settings[] = {
        {"lr", 3e-4}, {"betas", std::vector{0.9, 0.95}}, {"eps", 1e-8}, {"weight_decay", 0.1}};
    for (const auto& [name, value] : settings)
      plan.steps.emplace_back(
          CreateEntriesStep{{"optimizer.param_groups." + fqn + "." + name}, value});
  }
  write_as(source, std::move(plan), output);
}

std::string value_of_entry(const Checkpoint& checkpoint, const std::string& fqn) {
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn != fqn) continue;
    const auto value = read_plain_value(checkpoint, i, 1 << 20);
    return value ? to_text(*value) : value.error().message;
  }
  return "there is no such entry";
}

}  // namespace

TEST_CASE("conversion: an optimizer gets its steps and settings in each program") {
  TemporaryFolder folder;
  convert_to("titan", kBothSides + "hf", folder / "weights");
  add_moments(folder / "weights", folder / "moments");
  add_settings(folder / "moments", folder / "titan");
  const auto before = source_at(folder / "titan").checkpoint;
  for (const std::string program : {"torch_dist", "fsdp_dtensor"}) {
    CAPTURE(program);
    convert_to(program, folder / "titan", folder / program);
    auto proof = verbs::verify(folder / program);
    REQUIRE_MESSAGE(proof.has_value(), proof.error().message);
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
    const std::string again = folder / (program + "-titan");
    convert_to("titan", folder / program, again);
    const auto after = source_at(again).checkpoint;
    // torchtitan's optimizer joins q, k and v: six states fewer in each of two layers.
    CHECK(after->tensor_count() == before->tensor_count() - 12);
    const std::string group = "optimizer.param_groups.norm.weight.";
    CHECK(value_of_entry(*after, group + "betas") == "(0.9, 0.95)");
    CHECK(value_of_entry(*after, group + "lr") == "3e-04");
    CHECK(value_of_entry(*after, group + "weight_decay") == "0.1");
    const auto step = after->find("optimizer.state.norm.weight.step");
    REQUIRE(step.has_value());
    auto read = read_tensor(*after, *step, sizeof(float));
    REQUIRE(read.has_value());
    float steps = 0;
    std::memcpy(&steps, read->bytes.data(), sizeof steps);
    CHECK(steps == kSteps);
  }
  // Megatron gives no decay to vectors.
  const auto fsdp = source_at(folder / "fsdp_dtensor").checkpoint;
  const std::string meta = "optimizer.param_to_group_meta.module.module.module.decoder.";
  CHECK(value_of_entry(*fsdp, meta + "final_layernorm.weight.weight_decay") == "0");
  CHECK(value_of_entry(*fsdp, meta + "layers.0.mlp.linear_fc1.weight.wd_mult") == "1");
}

TEST_CASE("norms that Megatron's arguments call uncentred do not become Gemma's unseen") {
  const verbs::Opened megatron = source_at(kBothSides + "megatron");
  verbs::MappedByOptions made;
  made.steps.to = "hf";
  made.facts.model_type = "gemma2";
  CHECK(verbs::check_norm_convention_for_hf(*megatron.checkpoint, made)
            .has_value());  // nothing is said
  made.facts.args["apply_layernorm_1p"] = 1;
  CHECK(verbs::check_norm_convention_for_hf(*megatron.checkpoint, made).has_value());
  made.facts.args["apply_layernorm_1p"] = 0;
  const Status refused = verbs::check_norm_convention_for_hf(*megatron.checkpoint, made);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().advice.find("@norms:-1") != std::string::npos);
  // Follows the advice of the error.
  const verbs::Opened shifted = source_at(kBothSides + "megatron/@norms:-1");
  CHECK(verbs::check_norm_convention_for_hf(*shifted.checkpoint, made).has_value());
  made.facts.model_type = "llama";
  CHECK(verbs::check_norm_convention_for_hf(*megatron.checkpoint, made).has_value());
}

TEST_CASE("norms are shifted by 1 and nothing else by a path") {
  CHECK(verbs::open_requested(kBothSides + "hf/@norms:+1", nullptr).has_value());
  auto refused = verbs::open_requested(kBothSides + "hf/@norms:2", nullptr);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
}

TEST_CASE("round trip: a prefix that a trainer put before all names does not hide them") {
  TemporaryFolder folder;
  const verbs::Opened source = source_at(kBothSides + "hf");
  Plan plan = verbs::empty_plan_for(source);
  plan.format = "dcp";
  for (TensorId tensor : source.checkpoint->tensors()) {
    const std::string fqn(source.checkpoint->fqn(tensor));
    plan.steps.emplace_back(RenameStep{fqn, "model." + fqn});
  }
  write_as(source, std::move(plan), folder / "wrapped");
  convert_to("titan", folder / "wrapped", folder / "titan");
  const RoundTripResult back = gone_back(folder / "wrapped", "titan", folder / "titan");
  CHECK(back.equal == source.checkpoint->tensor_count());
  CHECK(back.without.empty());
}
