// Adapters of PEFT that are not LoRA.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/rules/names/adapter_layers.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kRootOfOthers = "base_model.model.";
const std::string kFileOfOthers = "adapter_model.safetensors";

}  // namespace

TEST_CASE("adapter: a lost half of LoHa, LoKr, VeRA or RandLora is reported") {
  const auto pairs =
      std::to_array<std::pair<std::string, std::string>>({{"hada_w1_a", "hada_w1_b"},
                                                          {"hada_w2_a", "hada_w2_b"},
                                                          {"lokr_w1_a", "lokr_w1_b"},
                                                          {"lokr_w2_a", "lokr_w2_b"},
                                                          {"vera_lambda_b", "vera_lambda_d"},
                                                          {"randlora_lambda", "randlora_gamma"}});
  for (const auto& [first, second] : pairs) {
    CAPTURE(first);
    NamedTensors tensors;
    std::string module;
    for (int i = 0; i < 3; ++i) {
      module = fmt::format("{}model.layers.{}.self_attn.q_proj.", kRootOfOthers, i);
      tensors[module + first] = {"F32", {8, 4}};
      tensors[module + second] = {"F32", {4, 8}};
      tensors[module + "lokr_w1"] = {"F32", {4, 4}};
    }
    const auto checked = [&] {
      return checked_tensors(tensors, {}, Depth::kHeaders, kFileOfOthers);
    };
    CHECK(find(checked(), "half-pair") == nullptr);
    for (const std::string& lost : {first, second}) {
      NamedTensors whole = tensors;
      tensors.erase(module + lost);
      const CheckReport report = checked();
      const Finding* half = find(report, "half-pair");
      REQUIRE(half != nullptr);
      CHECK(half->cause.find(module + lost + " is missing") != std::string::npos);
      tensors = std::move(whole);
    }
  }
}

TEST_CASE("adapter: a rank of LoHa, LoKr, VeRA or HRA that is not r is reported") {
  struct Kind {
    const char* type;
    NamedTensors parameters;
  };
  const auto kinds = std::to_array<Kind>(
      {{"LOHA", {{"hada_w1_a", {"F32", {16, 4}}}, {"hada_w1_b", {"F32", {4, 16}}}}},
       {"LOKR",
        {{"lokr_w1", {"F32", {4, 4}}},
         {"lokr_w2_a", {"F32", {16, 4}}},
         {"lokr_w2_b", {"F32", {4, 16}}}}},
       {"VERA", {{"vera_lambda_b", {"F32", {16}}}, {"vera_lambda_d", {"F32", {4}}}}},
       {"HRA", {{"hra_u", {"F32", {16, 4}}}}}});
  for (const Kind& kind : kinds) {
    CAPTURE(kind.type);
    NamedTensors tensors;
    for (const auto& [name, tensor] : kind.parameters)
      tensors[kRootOfOthers + "model.layers.0.self_attn.q_proj." + name] = tensor;
    const auto checked = [&](int rank, const char* pattern) {
      return checked_tensors(
          tensors,
          {{"adapter_config.json",
            fmt::format(R"({{"peft_type": "{}", "r": {}, "rank_pattern": {{{}}}}})", kind.type,
                        rank, pattern)}},
          Depth::kHeaders, kFileOfOthers);
    };
    CHECK(find(checked(4, ""), "adapter-contradicts") == nullptr);
    CHECK(find(checked(8, R"("q_proj": 4)"), "adapter-contradicts") == nullptr);
    const CheckReport report = checked(8, "");
    const Finding* finding = find(report, "adapter-contradicts");
    REQUIRE(finding != nullptr);
    CHECK(finding->cause.find("r 8") != std::string::npos);
  }
}

namespace {

struct OtherAdapter {
  std::string config;  // without braces
  NamedTensors tensors;
};

// Three layers with the parameters of q_proj and v_proj.
OtherAdapter other_adapter(const std::string& type, const std::string& numbers,
                           const NamedTensors& parameters) {
  OtherAdapter out;
  out.config = fmt::format(R"("peft_type": "{}", "target_modules": ["q_proj", "v_proj"]{}{})", type,
                           numbers.empty() ? "" : ", ", numbers);
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* module : {"q_proj", "v_proj"}) {
      for (const auto& [name, tensor] : parameters)
        out.tensors[fmt::format("{}model.layers.{}.self_attn.{}.{}", kRootOfOthers, layer, module,
                                name)] = tensor;
    }
  }
  return out;
}

// The cause of the first contradiction; empty if there is none.
std::string contradiction(const OtherAdapter& adapter) {
  const CheckReport report =
      checked_tensors(adapter.tensors, {{"adapter_config.json", "{" + adapter.config + "}"}},
                      Depth::kHeaders, kFileOfOthers);
  const Finding* finding = find(report, "adapter-contradicts");
  return finding == nullptr ? "" : finding->cause;
}

}  // namespace

TEST_CASE("adapter: a size that is not the config's is reported for every kind") {
  struct Kind {
    const char *type, *sound, *wrong, *words;
    NamedTensors parameters;
  };
  const auto kinds = std::to_array<Kind>({
      {"ADALORA",
       R"("init_r": 6)",
       R"("init_r": 12)",
       "init_r 12",
       {{"lora_A", {"F32", {6, 32}}}, {"lora_B", {"F32", {32, 6}}}, {"lora_E", {"F32", {6, 1}}}}},
      {"OFT",
       R"("oft_block_size": 8, "r": 0)",
       R"("oft_block_size": 16, "r": 0)",
       "blocks of 8 x 8 elements, oft_block_size 16",
       {{"oft_R.weight", {"F32", {4, 28}}}}},
      {"OFT",
       R"("oft_block_size": 0, "r": 4)",
       R"("oft_block_size": 0, "r": 2)",
       "r 2",
       {{"oft_R.weight", {"F32", {4, 28}}}}},
      {"OFT",
       R"("oft_block_size": 8, "r": 0)",
       R"("oft_block_size": 8, "r": 2)",
       "oft_block_size 8 and r 2",
       {{"oft_R.weight", {"F32", {4, 28}}}}},
      {"BOFT",
       R"("boft_block_size": 4, "boft_block_num": 0)",
       R"("boft_block_size": 8, "boft_block_num": 0)",
       "boft_block_size 8",
       {{"boft_R", {"F32", {1, 8, 4, 4}}}, {"boft_s", {"F32", {32, 1}}}}},
      {"FOURIERFT",
       R"("n_frequency": 20)",
       R"("n_frequency": 40)",
       "n_frequency 40",
       {{"fourierft_spectrum", {"F32", {20}}}}},
      {"FOURIERFT",
       R"("n_frequency": 40, "n_frequency_pattern": {"q_proj": 20, "v_proj": 20})",
       R"("n_frequency": 40, "n_frequency_pattern": {"q_proj": 20})",
       "n_frequency 40",
       {{"fourierft_spectrum", {"F32", {20}}}}},
      {"RANDLORA",
       R"("r": 4)",
       R"("r": 8)",
       "r 8",
       {{"randlora_lambda", {"F32", {4, 8}}}, {"randlora_gamma", {"F32", {8, 32}}}}},
      {"C3A",
       R"("block_size": 8)",
       R"("block_size": 4)",
       "block_size 4",
       {{"c3a_kernel", {"F32", {4, 4, 8}}}}},
  });
  for (const Kind& kind : kinds) {
    CAPTURE(kind.wrong);
    CHECK(contradiction(other_adapter(kind.type, kind.sound, kind.parameters)).empty());
    CHECK(contradiction(other_adapter(kind.type, kind.wrong, kind.parameters)).find(kind.words) !=
          std::string::npos);
  }
  // AdaLoRA prunes ranks; then its pattern counts, not init_r. A block size of OFT that does not
  // divide the inputs is changed by PEFT.
  CHECK(contradiction(other_adapter(kinds[0].type, R"("init_r": 12, "rank_pattern": {"q": [true]})",
                                    kinds[0].parameters))
            .empty());
  CHECK(contradiction(other_adapter("OFT", R"("oft_block_size": 7)", kinds[1].parameters)).empty());
}

TEST_CASE("adapter: a parameter or module that is missing is reported for every kind") {
  struct Kind {
    const char *type, *lost;
    std::vector<const char*> parameters;
  };
  const auto kinds =
      std::to_array<Kind>({{"ADALORA", "lora_E", {"lora_A", "lora_B", "lora_E"}},
                           {"BOFT", "boft_s", {"boft_R", "boft_s"}},
                           {"ROAD", "road_theta", {"road_alpha", "road_theta"}},
                           {"SHIRA", "shira_indices", {"shira_weight", "shira_indices"}},
                           {"HIRA", "hira_B", {"hira_A", "hira_B"}},
                           {"GRALORA", "gralora_A", {"gralora_A", "gralora_B"}},
                           {"WAVEFT", "", {"waveft_spectrum"}},
                           {"IA3", "", {"ia3_l"}},
                           {"FOURIERFT", "", {"fourierft_spectrum"}},
                           {"HRA", "", {"hra_u"}}});
  for (const Kind& kind : kinds) {
    CAPTURE(kind.type);
    NamedTensors parameters;
    for (const char* name : kind.parameters) parameters[name] = {"F32", {4, 4}};
    const OtherAdapter sound = other_adapter(kind.type, "", parameters);
    CHECK(contradiction(sound).empty());
    OtherAdapter lacking = sound;
    std::erase_if(lacking.tensors, [](const auto& one) {
      return one.first.find("layers.1.self_attn.q_proj.") != std::string::npos;
    });
    CHECK(contradiction(lacking).find("model.layers.1.self_attn.q_proj") != std::string::npos);
    OtherAdapter without = sound;
    std::erase_if(without.tensors,
                  [](const auto& one) { return one.first.find("q_proj") != std::string::npos; });
    CHECK(contradiction(without).find("q_proj") != std::string::npos);
    if (*kind.lost == '\0') continue;
    OtherAdapter one_less = sound;
    one_less.tensors.erase(kRootOfOthers + "model.layers.1.self_attn.q_proj." + kind.lost);
    CHECK(contradiction(one_less).find(kind.lost) != std::string::npos);
  }
}

TEST_CASE("adapter: a vector bank that VBLoRA lacks and a prompt of another size are reported") {
  const NamedTensors logits = {{"vblora_logits_A", {"F32", {4, 4, 12}}},
                               {"vblora_logits_B", {"F32", {4, 4, 12}}}};
  OtherAdapter bank =
      other_adapter("VBLORA", R"("r": 4, "num_vectors": 12, "vector_length": 8)", logits);
  CHECK(contradiction(bank).find("vblora_vector_bank") != std::string::npos);
  bank.tensors["base_model.vblora_vector_bank"] = {"F32", {12, 8}};
  CHECK(contradiction(bank).empty());
  bank.tensors["base_model.vblora_vector_bank"] = {"F32", {12, 4}};
  CHECK(contradiction(bank).find("vector_length 8") != std::string::npos);

  const auto prompt = [](const char* config) {
    return contradiction({config, {{"prompt_embeddings", {"F32", {5, 192}}}}});
  };
  CHECK(prompt(R"("peft_type": "PREFIX_TUNING", "num_virtual_tokens": 5, "num_layers": 3,
                  "token_dim": 32, "num_transformer_submodules": 2)")
            .empty());
  CHECK(prompt(R"("peft_type": "PREFIX_TUNING", "num_virtual_tokens": 5, "num_layers": 6,
                  "token_dim": 32)")
            .find("num_layers 6") != std::string::npos);
  CHECK(
      prompt(R"("peft_type": "PROMPT_TUNING", "num_virtual_tokens": 5, "token_dim": 192)").empty());
  CHECK(prompt(R"("peft_type": "PROMPT_TUNING", "num_virtual_tokens": 5, "token_dim": 64)")
            .find("token_dim 64") != std::string::npos);
}

TEST_CASE("adapter: matrices that all modules of RandLora share belong to no module") {
  OtherAdapter adapter =
      other_adapter("RANDLORA", R"("r": 4)",
                    {{"randlora_lambda", {"F32", {4, 8}}}, {"randlora_gamma", {"F32", {8, 32}}}});
  adapter.tensors["base_model.randlora_A"] = {"F32", {4, 1, 32}};
  adapter.tensors["base_model.randlora_B"] = {"F32", {32, 8, 4}};
  CHECK(contradiction(adapter).empty());
}

TEST_CASE("adapter: VeRA without one of its two shared matrices is reported") {
  OtherAdapter vera = other_adapter(
      "VERA", R"("r": 4)", {{"vera_lambda_b", {"F32", {16}}}, {"vera_lambda_d", {"F32", {4}}}});
  CHECK(contradiction(vera).empty());
  vera.tensors["base_model.vera_B"] = {"F32", {16, 4}};
  CHECK(contradiction(vera).find("no vera_A") != std::string::npos);
  vera.tensors["base_model.vera_A"] = {"F32", {4, 16}};
  CHECK(contradiction(vera).empty());
}

TEST_CASE("adapter: a factor that LoKr lacks is reported, whole or as two matrices") {
  const NamedTensor square{"F32", {4, 4}};
  for (const NamedTensors& parameters :
       {NamedTensors{{"lokr_w1", square}, {"lokr_w2", square}},
        NamedTensors{{"lokr_w1", square}, {"lokr_w2_a", square}, {"lokr_w2_b", square}}}) {
    const OtherAdapter sound = other_adapter("LOKR", R"("r": 4)", parameters);
    CHECK(contradiction(sound).empty());
    OtherAdapter lacking = sound;
    lacking.tensors.erase(kRootOfOthers + "model.layers.1.self_attn.q_proj.lokr_w1");
    CHECK(contradiction(lacking).find("q_proj.lokr_w1") != std::string::npos);
    OtherAdapter half = sound;
    std::erase_if(half.tensors,
                  [](const auto& one) { return one.first.find("lokr_w2") != std::string::npos; });
    CHECK(contradiction(half).find("q_proj.lokr_w2") != std::string::npos);
  }
}

TEST_CASE("adapter: names that do not begin as PEFT asks are reported for every kind") {
  const OtherAdapter sound = other_adapter("HRA", "", {{"hra_u", {"F32", {4, 4}}}});
  CHECK(contradiction(sound).empty());
  const auto renamed = [&](const std::string& added, std::size_t dropped) {
    OtherAdapter other = sound;
    other.tensors.clear();
    for (const auto& [name, tensor] : sound.tensors)
      other.tensors[added + name.substr(dropped)] = tensor;
    return contradiction(other);
  };
  CHECK(renamed("_orig_mod.", 0).find("base_model.") != std::string::npos);
  CHECK(renamed("", std::string("base_model.").size()).find("base_model.") != std::string::npos);
}

TEST_CASE("adapter layers: numbered stages of a network of convolutions may differ, experts not") {
  const std::vector<std::string_view> stages = {
      "down_blocks.0.resnets.0.conv1", "down_blocks.1.resnets.0.conv1",
      "down_blocks.1.resnets.0.conv_shortcut", "down_blocks.2.resnets.0.conv1",
      "down_blocks.2.resnets.0.conv_shortcut"};
  CHECK(modules_missing_in_layers(stages).empty());
  std::vector<std::string> experts;
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* module : {"gate_proj", "up_proj"}) {
      if (layer != 1 || module[0] == 'g')
        experts.push_back("layers." + std::to_string(layer) + ".mlp.experts.0." + module);
    }
  }
  CHECK(modules_missing_in_layers({experts.begin(), experts.end()}).size() == 1);
}
