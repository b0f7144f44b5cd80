// Adapters of PEFT that are not LoRA: LoHa, LoKr, VeRA, RandLora and HRA.
#include <array>
#include <utility>

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
    const char* parameter;
    decltype(NamedTensor::shape) shape;
  };
  const auto kinds = std::to_array<Kind>({{"LOHA", "hada_w1_b", {4, 16}},
                                          {"LOKR", "lokr_w2_b", {4, 16}},
                                          {"VERA", "vera_lambda_d", {4}},
                                          {"HRA", "hra_u", {16, 4}}});
  for (const Kind& kind : kinds) {
    CAPTURE(kind.type);
    NamedTensors tensors;
    tensors[kRootOfOthers + "model.layers.0.self_attn.q_proj." + kind.parameter] = {"F32",
                                                                                    kind.shape};
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
