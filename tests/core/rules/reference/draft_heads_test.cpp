// Draft models' tables and heads, and the first and last layer's weights without a config.
#include "core/rules/names/named_tensors.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;

namespace {

ConfigWeights eagle(std::int64_t d2t, std::int64_t t2d, std::int64_t rows = 6) {
  ConfigWeights out;
  out.shapes = {{"d2t", {d2t}},
                {"t2d", {t2d}},
                {"fc.weight", {8, 24}},
                {"norm.weight", {8}},
                {"lm_head.weight", {rows, 8}},
                {"midlayer.self_attn.q_proj.weight", {8, 16}}};
  return out;
}

std::string said_of_tables(const ConfigWeights& weights) {
  const CheckReport report =
      beside_keys(weights, {{"architectures", "[\"LlamaForCausalLMEagle3\"]"},
                            {"draft_vocab_size", "6"},
                            {"num_hidden_layers", "1"}});
  const Finding* finding = test::find(report, "draft-heads");
  CHECK((finding == nullptr || finding->severity == Severity::kError));
  return test::all_causes(report, "draft-heads");
}

ConfigWeights medusa(int heads, const std::string& before, const std::string& without = "none") {
  ConfigWeights out;
  for (int i = 0; i < heads; ++i) {
    const std::string head = before + std::to_string(i);
    out.shapes[head + ".0.linear.weight"] = {8, 8};
    out.shapes[head + ".0.linear.bias"] = {8};
    out.shapes[head + ".1.weight"] = {12, 8};
  }
  std::erase_if(out.shapes, [&](const auto& one) { return one.first.starts_with(without); });
  return out;
}

std::string said_of_heads(const ConfigWeights& weights, const std::string& config,
                          const std::string& file = "medusa_lm_head.safetensors") {
  const CheckReport report =
      checked_folder({{"config.json", bytes_of_text(config)}, {file, weights.file()}});
  const Finding* finding = test::find(report, "draft-heads");
  CHECK((finding == nullptr || finding->severity == Severity::kWarning));
  return test::all_causes(report, "draft-heads");
}

const std::string kFive = R"({"medusa_num_heads": 5, "medusa_num_layers": 1})";

}  // namespace

TEST_CASE("draft heads: tables between two vocabularies fit the head and config.json") {
  CHECK(said_of_tables(eagle(6, 12)).empty());
  CHECK(names_all(said_of_tables(eagle(5, 12)),
                  {"d2t has 5 entries", "lm_head.weight has 6 rows", "draft_vocab_size 6"}));
  CHECK(names_all(said_of_tables(eagle(6, 11)), {"t2d has 11 entries", "vocab_size 12"}));
  CHECK(names_all(said_of_tables(eagle(6, 12, 7)), {"d2t has 6 entries", "has 7 rows"}));
  ConfigWeights alone = eagle(6, 12);
  alone.shapes.erase("t2d");
  CHECK(said_of_tables(alone).empty());
}

TEST_CASE("draft heads: a numbered head that is missing or lost a tensor is a warning") {
  CHECK(said_of_heads(medusa(5, ""), kFive).empty());
  CHECK(
      names_all(said_of_heads(medusa(5, "", "3."), kFive), {"3 is missing", "medusa_num_heads 5"}));
  CHECK(names_all(said_of_heads(medusa(4, ""), kFive), {"4 is missing", "4 are there"}));
  CHECK(names_all(said_of_heads(medusa(5, "", "2.1.weight"), kFive), {"2.1.weight is missing"}));
  const std::string row = "medusa_head.";
  CHECK(names_all(said_of_heads(medusa(5, row, row + "1."), kFive, "model.safetensors"),
                  {"medusa_head.1 is missing", "medusa_head.*"}));
  // A hole is one without a config that counts them too.
  CHECK(names_all(said_of_heads(medusa(5, row, row + "1."), "{}", "model.safetensors"),
                  {"medusa_head.1 is missing"}));
}

TEST_CASE("draft heads: more heads than announced, and numbers of anything else, are lawful") {
  CHECK(said_of_heads(medusa(5, ""), R"({"medusa_num_heads": 2})").empty());
  CHECK(said_of_heads(medusa(5, "", "3."), "{}").empty());
  CHECK(said_of_heads(medusa(5, "medusa_head."), "{}", "model.safetensors").empty());
  ConfigWeights among = medusa(4, "");
  among.shapes["model.norm.weight"] = {8};
  CHECK(said_of_heads(among, kFive).empty());
  CHECK(said_of_heads(medusa(4, ""), R"({"medusa_num_heads": 100000})").empty());
}

TEST_CASE("a matrix that the first or last of many equal layers lacks is a warning, a norm none") {
  const auto said = [](const std::string& without) {
    test::NamedTensors tensors;
    for (int i = 0; i < 10; ++i) {
      const std::string layer = fmt::format("layers.{}.", i);
      tensors[layer + "attn_norm.weight"] = {"F32", {8}};
      tensors[layer + "attn.Wqkv.weight"] = {"F32", {24, 8}};
      tensors[layer + "attn.Wo.weight"] = {"F32", {8, 8}};
      tensors[layer + "mlp.Wi.weight"] = {"F32", {16, 8}};
    }
    tensors.erase(without);
    const CheckReport report = test::checked_tensors(tensors);
    const Finding* finding = test::find(report, "keyset-hole");
    if (finding == nullptr) return std::string();
    CHECK(finding->severity == Severity::kWarning);
    return finding->cause;
  };
  CHECK(said("").empty());
  CHECK(names_all(said("layers.0.attn.Wo.weight"), {"layers.0.attn.Wo.weight is missing"}));
  CHECK(names_all(said("layers.9.mlp.Wi.weight"), {"layers.9.mlp.Wi.weight is missing"}));
  // ModernBERT's first layer is made so.
  CHECK(said("layers.0.attn_norm.weight").empty());
  CHECK(said("layers.9.attn_norm.weight").empty());
}
