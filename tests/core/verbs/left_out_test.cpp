// Additions of a format, next to its entries, that another format cannot store.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/make_zip.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/verify.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

using Names = std::vector<std::string>;

RepairResult converted(const std::string& from, const std::string& to, const std::string& out) {
  VerbOptions options;
  options.checkpoint = from;
  options.to = to;
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto made = verbs::repair(*opened, verbs::plan_convert(*opened, options).value(), {out}, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  return *made;
}

Certificate certificate_in(const std::string& folder) {
  return certificate_from_json(contents(folder + "/certificate.json"), "certificate.json").value();
}

// The form of torch.save(model.state_dict()): an OrderedDict with the versions of the modules.
std::string state_dict_of_module() {
  const std::string ordered = "ccollections\nOrderedDict\n)R";
  const std::string versions = "}(" + pickled_text("_metadata") + ordered + "(" + pickled_text("") +
                               "}(" + pickled_text("version") + "K\1u" + "u" + "u";
  const std::string typed = "ctorch._utils\n_rebuild_parameter_with_state\n(" + tensor_call({}) +
                            "\x88" + ordered + "}(" + pickled_text("tag") + "K\1u" + "tR";
  const std::string items = pickled_text("w") + typed;
  return make_zip({{"m/data.pkl", as_pickle(ordered + "(" + items + "u" + versions + "b")},
                   {"m/version", "3\n"},
                   {"m/data/0", std::string(24, '\1')}});
}

}  // namespace

TEST_CASE("attributes of a state dict that no other format keeps are reported and refuse nothing") {
  TemporaryFolder folder;
  put(folder / "model.pt", state_dict_of_module());
  const Names attributes{"_metadata of the state dict", "tag of w"};
  for (const char* to : {"dcp", "safetensors"}) {
    CAPTURE(to);
    const std::string out = folder / to;
    RepairResult made = converted(folder / "model.pt", to, out);
    CHECK(made.left_out == attributes);
    CHECK(made.lossless);
    CHECK(certificate_in(out).left_out == attributes);
    auto answer = nlohmann::json::parse(repair_to_json(made, {}, nullptr));
    CHECK(answer["left_out"] == attributes);
    CHECK(left_out_to_text(made).find("_metadata of the state dict") != std::string::npos);
    CHECK(result_loss_text(made) == "no element is lost");
    auto proof = verify_repair(out, nullptr);
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
    CHECK(proof->reasons.back().find("_metadata of the state dict") != std::string::npos);
  }
  // The same format keeps them.
  RepairResult kept = converted(folder / "model.pt", "torch", folder / "torch");
  CHECK(kept.left_out.empty());
  CHECK(result_loss_text(kept) == "nothing is lost");
  CHECK(converted(folder / "dcp", "torch", folder / "again").left_out.empty());
}

TEST_CASE("metadata of safetensors headers that a conversion does not keep are reported") {
  TemporaryFolder folder;
  std::string header = R"({"__metadata__":{"format":"pt","title":"a model"},)"
                       R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  put(folder / "model.safetensors", little(header.size(), 8) + header + "abcd");
  for (const char* to : {"dcp", "torch"}) {
    CAPTURE(to);
    RepairResult made = converted(folder / "model.safetensors", to, folder / to);
    CHECK(made.left_out == Names{"title of __metadata__"});
  }
  CHECK(converted(folder / "dcp", "safetensors", folder / "bare").left_out.empty());
  // New files of the same format keep the metadata.
  CHECK(converted(folder / "model.safetensors", "safetensors", folder / "kept").left_out.empty());
  CHECK(converted(folder / "kept", "dcp", folder / "again").left_out ==
        Names{"title of __metadata__"});
}

namespace {

// Writes one tensor and this metadata.
void put_with_metadata(const std::string& path, const std::string& tensor,
                       const nlohmann::ordered_json& metadata) {
  const nlohmann::ordered_json header{
      {"__metadata__", metadata},
      {tensor, {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 4}}}}};
  const std::string text = header.dump();
  put(path, little(text.size(), 8) + text + "abcd");
}

Status asked(VerbOptions options) {
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto plan = verbs::plan_convert(*opened, options);
  return plan ? Status() : Status(tl::unexpected<Error>(plan.error()));
}

}  // namespace

TEST_CASE("convert: metadata without which torchao loads nothing is not left out unasked") {
  TemporaryFolder folder;
  put_with_metadata(folder / "model.safetensors", "a._weight_qdata",
                    {{"format", "pt"},
                     {"tensor_names", R"(["a.weight"])"},
                     {"a.weight", R"({"_type": "T", "_tensor_data_names": ["qdata", "scale"]})"}});
  VerbOptions options;
  options.checkpoint = folder / "model.safetensors";
  for (const char* to : {"torch", "dcp"}) {
    CAPTURE(to);
    options.to = to;
    auto refused = asked(options);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kUnsupported);
    options.leave_out = {"* of __metadata__"};
    CHECK(asked(options).has_value());
    options.leave_out.clear();
  }
  options.to = "safetensors";
  CHECK(asked(options).has_value());
  options.dtype = "bf16";
  CHECK_FALSE(asked(options).has_value());
  options.dtype.clear();
  options.rename = {"a(.*)=b$1"};
  CHECK_FALSE(asked(options).has_value());
  CHECK(converted(options.checkpoint, "safetensors", folder / "out").left_out.empty());
}

TEST_CASE("convert: the alpha of a LoRA of diffusers is not left out unasked") {
  TemporaryFolder folder;
  put_with_metadata(folder / "pytorch_lora_weights.safetensors", "unet.a.lora_A.weight",
                    {{"lora_adapter_metadata", "{}"},
                     {"sshs_model_hash", "00"},
                     {"about", R"(["unet.a.lora_A.weight"])"},
                     {"title", "own"}});
  VerbOptions options;
  options.checkpoint = folder / "pytorch_lora_weights.safetensors";
  options.to = "torch";
  CHECK_FALSE(asked(options).has_value());
  options.leave_out = {"lora_adapter_metadata of __metadata__"};
  CHECK(asked(options).has_value());
  // A cast keeps additions that do not describe elements.
  options.leave_out.clear();
  options.to = "safetensors";
  options.dtype = "bf16";
  auto opened = verbs::open(options);
  auto plan = verbs::plan_convert(*opened, options);
  REQUIRE(plan.has_value());
  auto made = verbs::repair(*opened, *plan, {folder / "out"}, nullptr);
  REQUIRE(made.has_value());
  CHECK(made->left_out == Names{"about of __metadata__", "sshs_model_hash of __metadata__"});
  CHECK(std::filesystem::exists(folder / "out/pytorch_lora_weights.safetensors"));
}

TEST_CASE("files that are next to are told where another format is written, and else are copied") {
  TemporaryFolder folder;
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::filesystem::create_directory(folder / "hf");
  put(folder / "hf/model.safetensors", little(header.size(), 8) + header + "abcd");
  put(folder / "hf/config.json", "{}");
  put(folder / "hf/notes.txt", "{}");
  CHECK(converted(folder / "hf", "dcp", folder / "dcp").left_out == Names{"notes.txt"});
  CHECK(converted(folder / "hf", "torch", folder / "torch").left_out == Names{"notes.txt"});
  CHECK(contents(folder / "dcp/config.json") == "{}");
  CHECK(converted(folder / "hf", "safetensors", folder / "again").left_out.empty());
  CHECK(contents(folder / "again/config.json") == "{}");
  CHECK(contents(folder / "again/notes.txt") == "{}");
  // A checkpoint of one file has no other files.
  CHECK(converted(folder / "hf/model.safetensors", "dcp", folder / "one").left_out.empty());
}

TEST_CASE("a config.json of another model is not a reason to leave weights unconverted") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "hf");
  const std::string header =
      R"({"model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  put(folder / "hf/model.safetensors",
      std::string{static_cast<char>(header.size())} + std::string(7, '\0') + header + "12345678");
  put(folder / "hf/config.json", R"({"model_type": "llama", "hidden_size": 3})");
  VerbOptions options;
  options.checkpoint = folder / "hf";
  auto opened = verbs::open(options);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = verbs::check(*opened, std::nullopt, nullptr);
  REQUIRE(report.has_value());
  CHECK(report->verdict == Verdict::kFindings);
  auto reasons = verbs::findings_to_repair_first(*opened, std::nullopt, nullptr);
  REQUIRE(reasons.has_value());
  CHECK(reasons->empty());
}

TEST_CASE("keys that are not text are told where the target makes text of them") {
  TemporaryFolder folder;
  const std::string call = tensor_call({});
  const std::string value = "}(" + pickled_text("state") + std::string("}(K\0", 4) + call + "K\1" +
                            call + "u\x88" + call + "N" + call + "(K\1K\2t" + call + "u";
  put(folder / "model.pt", make_zip({{"m/data.pkl", as_pickle(value)},
                                     {"m/version", "3\n"},
                                     {"m/data/0", std::string(24, '\1')}}));
  const Names keys{"type of key (1, 2) of the state dict", "type of key None of the state dict",
                   "type of key True of the state dict", "type of the whole-number keys of state"};
  for (const char* to : {"dcp", "safetensors"}) {
    CAPTURE(to);
    CHECK(converted(folder / "model.pt", to, folder / to).left_out == keys);
    CHECK(certificate_in(folder / to).left_out == keys);
  }
  CHECK(converted(folder / "model.pt", "torch", folder / "torch").left_out.empty());
}
