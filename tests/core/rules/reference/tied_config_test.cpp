// Head and embedding of a folder against tie_word_embeddings of its config.json.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string cause_of(const std::string& tied, float head) {
  NamedTensors tensors = llama_tensors(same_name);
  tensors["lm_head.weight"].value = head;
  std::string config = kLlamaConfig;
  const std::string key = "\"tie_word_embeddings\": false";
  config.replace(config.find(key), key.size(),
                 tied.empty() ? "\"use_cache\": true" : "\"tie_word_embeddings\": " + tied);
  const CheckReport report = checked_tensors(tensors, {{"config.json", config}}, Depth::kData);
  const Finding* finding = find(report, "tied-weights");
  return finding == nullptr ? "" : finding->cause;
}

}  // namespace

TEST_CASE("tied weights: two matrices contradict what config.json says of them") {
  constexpr float kEmbedding = 0.25F, kOther = 0.75F;
  CHECK(cause_of("true", kEmbedding).empty());
  CHECK(cause_of("true", kOther).find("tie_word_embeddings true") != std::string::npos);
  CHECK(cause_of("false", kOther).empty());
  CHECK(cause_of("false", kEmbedding).find("tie_word_embeddings false") != std::string::npos);
  CHECK(cause_of("", kEmbedding).empty());
}

TEST_CASE("tied weights: a classifier does not lack the head of its language model") {
  const auto reference = opened_tensors(llama_tensors(same_name), {{"config.json", kLlamaConfig}});
  NamedTensors classifier = llama_tensors(same_name);
  classifier.erase("lm_head.weight");
  classifier["score.weight"] = {"F32", {2, 8}, 3.25F};
  auto severity_with = [&](const std::string& class_name) {
    std::string config = kLlamaConfig;
    const std::string plain = "LlamaForCausalLM";
    config.replace(config.find(plain), plain.size(), class_name);
    CheckOptions options;
    options.depth = Depth::kHeaders;
    options.reference = reference;
    const CheckReport report =
        looked(*opened_tensors(classifier, {{"config.json", config}}), options);
    const Finding* finding = find(report, "tied-weights");
    REQUIRE(finding != nullptr);
    CHECK(find(report, "missing-key") == nullptr);
    return finding->severity;
  };
  CHECK(severity_with("LlamaForSequenceClassification") == Severity::kInfo);
  CHECK(severity_with("LlamaForCausalLM") == Severity::kError);
}
