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
