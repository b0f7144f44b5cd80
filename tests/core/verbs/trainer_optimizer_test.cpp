// The optimizer of transformers' Trainer, by numbers in its file and by names elsewhere. The model
// is the pair of tests/core/maps; each state is its weight, so that what belongs where is known.
#include "core/verbs/trainer_optimizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/formats/items/items.h"
#include "core/formats/plain_value.h"
#include "core/temporary_folder.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/conversion.h"
#include "core/verbs/trainer_groups.h"

using namespace shw;

namespace {

const std::string kLlama = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/hf";
constexpr double kTrainedSteps = 3;

verbs::Opened trained_at(const std::string& path) {
  auto checkpoint = verbs::open_requested(path, nullptr);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  verbs::Opened opened;
  opened.checkpoint = std::move(*checkpoint);
  return opened;
}

void write_trained(const verbs::Opened& source, const Plan& plan, const std::string& output) {
  auto made = verbs::repair(source, plan, {output}, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
}

Result<verbs::ConvertPlan> planned(const std::string& from, const std::string& to,
                                   const verbs::MapOptions& mapping = {}) {
  VerbOptions said;
  said.to = to;
  return verbs::plan_conversion(trained_at(from), said, mapping, nullptr);
}

void convert_trained(const std::string& from, const std::string& to, const std::string& output,
                     const verbs::MapOptions& mapping = {}) {
  auto made = planned(from, to, mapping);
  REQUIRE_MESSAGE(made.has_value(), made.error().message << " " << made.error().advice);
  write_trained(trained_at(from), made->plan, output);
}

// The parameters as named_parameters() of transformers 5.24 lists them.
std::vector<std::string> llama_parameters() {
  std::vector<std::string> names = {"model.embed_tokens.weight"};
  for (const char* layer : {"0", "1"}) {
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                             "input_layernorm", "post_attention_layernorm"})
      names.push_back(std::string("model.layers.") + layer + "." + part + ".weight");
  }
  names.insert(names.end(), {"model.norm.weight", "lm_head.weight"});
  return names;
}

std::vector<std::string> as_trainer_numbers() {
  std::vector<std::string> names = llama_parameters();
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name.find("norm") == std::string::npos;
  });
  return names;
}

void write_names(const std::string& path, const std::vector<std::string>& names) {
  std::ofstream file(path);
  for (const std::string& name : names) file << name << "\n";
}

// A folder as Trainer saves it: the weights, and optimizer.pt.
void make_trainer_folder(const TemporaryFolder& folder) {
  const verbs::Opened source = trained_at(kLlama);
  Plan plan = verbs::empty_plan_for(source);
  plan.format = "torch";
  const std::vector<std::string> names = as_trainer_numbers();
  std::vector<std::int64_t> groups[2];
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string state = "state." + std::to_string(i) + ".";
    for (const char* kind : {"exp_avg", "exp_avg_sq"}) {
      plan.steps.emplace_back(CopyStep{names[i], state + kind});
      plan.steps.emplace_back(CastStep{{state + kind}, Dtype::kFloat32});
    }
    plan.steps.emplace_back(
        CreateTensorsStep{{state + "step"}, Dtype::kFloat32, {}, kTrainedSteps});
    groups[names[i].find("norm") == std::string::npos ? 0 : 1].push_back(
        static_cast<std::int64_t>(i));
  }
  plan.steps.emplace_back(DropStep{names});
  for (const std::string group : {"0", "1"}) {
    const bool decays = group == "0";
    const std::pair<const char*, EntryValue> settings[] = {
        {"lr", 0.01},    {"betas", std::vector{0.9, 0.999}},
        {"eps", 1e-8},   {"weight_decay", decays ? 0.1 : 0.0},
        {"fused", true}, {"params", groups[decays ? 0 : 1]}};
    for (const auto& [name, value] : settings)
      plan.steps.emplace_back(CreateEntriesStep{{"param_groups." + group + "." + name}, value});
  }
  write_trained(source, plan, folder / "made");
  std::filesystem::create_directory(folder / "trainer");
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy(kLlama + "/" + file, folder / "trainer");
  std::filesystem::copy(folder / "made/optimizer.pt", folder / "trainer");
  write_names(folder / "names.txt", llama_parameters());
}

std::string value_at(const Checkpoint& checkpoint, const std::string& fqn) {
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn != fqn) continue;
    const auto value = read_plain_value(checkpoint, i, 1 << 20);
    return value ? to_text(*value) : value.error().message;
  }
  return "there is no such entry";
}

void check_equal_optimizers(const std::string& one, const std::string& other) {
  const auto a = trained_at(one).checkpoint, b = trained_at(other).checkpoint;
  CHECK(a->tensor_count() == b->tensor_count());
  for (const TensorId tensor : b->tensors()) {
    const std::string fqn(b->fqn(tensor));
    CAPTURE(fqn);
    const auto found = a->find(fqn);
    REQUIRE(found.has_value());
    auto wanted = read_tensor(*b, tensor, 1 << 20), made = read_tensor(*a, *found, 1 << 20);
    REQUIRE((wanted.has_value() && made.has_value()));
    CHECK(wanted->bytes == made->bytes);
    CHECK(a->dtype(*found) == b->dtype(tensor));
  }
  for (const std::string group : {"param_groups.0.", "param_groups.1."}) {
    for (const char* setting : {"lr", "betas", "eps", "weight_decay", "params"})
      CHECK(value_at(*a, group + setting) == value_at(*b, group + setting));
  }
}

}  // namespace

TEST_CASE("Trainer's optimizer: numbers become names, and numbers again") {
  const TemporaryFolder folder;
  make_trainer_folder(folder);
  const std::string named = folder / "trainer/@optimizer=" + (folder / "names.txt");
  const auto opened = trained_at(named).checkpoint;
  CHECK(opened->tensor_count() == 4 * llama_parameters().size());
  CHECK(opened->find("optimizer.state.lm_head.weight.exp_avg_sq"));
  CHECK(value_at(*opened, "optimizer.param_groups.1.params").starts_with("(model.layers.0.input"));
  convert_trained(named, "dcp", folder / "dcp");
  // The groups that DCP keeps say the order.
  convert_trained(folder / "dcp", "optimizer", folder / "again");
  CHECK(std::filesystem::exists(folder / "again/optimizer.pt"));
  check_equal_optimizers(folder / "again", folder / "made");
  CHECK(value_at(*trained_at(folder / "again").checkpoint, "param_groups.0.fused") == "1");
}

TEST_CASE("Trainer's optimizer: comes back from Megatron with an order that is given") {
  const TemporaryFolder folder;
  make_trainer_folder(folder);
  const verbs::MapOptions config{{}, {}, kLlama, {}};
  convert_trained(folder / "trainer/@optimizer=" + (folder / "names.txt"), "torch_dist",
                  folder / "megatron", config);
  const auto refused = planned(folder / "megatron", "optimizer", config);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
  CHECK(refused.error().advice.find("--order") != std::string::npos);
  convert_trained(folder / "megatron", "optimizer", folder / "again",
                  {{}, {}, kLlama, folder / "names.txt"});
  check_equal_optimizers(folder / "again", folder / "made");
  // Another checkpoint's groups are an order too.
  convert_trained(folder / "trainer/@optimizer=" + (folder / "names.txt"), "dcp", folder / "dcp");
  convert_trained(folder / "megatron", "optimizer", folder / "by-groups",
                  {{}, {}, kLlama, folder / "dcp"});
  check_equal_optimizers(folder / "by-groups", folder / "made");
}

TEST_CASE("Trainer's optimizer: an order that is unknown or does not fit is refused") {
  const TemporaryFolder folder;
  make_trainer_folder(folder);
  CHECK_FALSE(verbs::open_requested(folder / "trainer/@optimizer", nullptr).has_value());
  std::vector<std::string> names = llama_parameters();
  std::swap(names[1], names[2]);  // q and k, which have other shapes
  write_names(folder / "other.txt", names);
  const auto other =
      verbs::open_requested(folder / "trainer/@optimizer=" + (folder / "other.txt"), nullptr);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().kind == ErrorKind::kUnsupported);
  names.pop_back();
  write_names(folder / "fewer.txt", names);
  CHECK_FALSE(
      verbs::open_requested(folder / "trainer/@optimizer=" + (folder / "fewer.txt"), nullptr)
          .has_value());
  CHECK_FALSE(planned(kLlama, "optimizer").has_value());  // no states
  VerbOptions said;
  said.to = "dcp";
  CHECK_FALSE(verbs::plan_conversion(trained_at(kLlama), said, {{}, {}, {}, "names.txt"}, nullptr)
                  .has_value());  // --order without --to optimizer
}

TEST_CASE("Trainer's groups: norms and biases do not decay, and vectors of other names are asked") {
  const std::vector<MapTensor> parameters = {
      {"wte.weight", {8, 4}}, {"h.0.q_norm.weight", {4}},
      {"h.0.attn.bias", {4}}, {"h.0.input_layernorm.weight", {4}},
      {"h.0.A_log", {4}},     {"normal.weight", {8, 4}}};
  const auto groups = verbs::group_as_trainer(parameters);
  REQUIRE(groups.has_value());
  CHECK((*groups)[0] == verbs::ParameterNames{"wte.weight", "h.0.A_log", "normal.weight"});
  CHECK((*groups)[1].size() == 3);
  const std::vector<MapTensor> gpt2 = {{"wte.weight", {8, 4}}, {"h.0.ln_1.weight", {4}}};
  CHECK_FALSE(verbs::group_as_trainer(gpt2).has_value());
}
