// Arguments of torch.save other than a state dict: whole modules, lists, a single tensor; and
// several files in a folder.
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const ZipRecord kSix{"m/data/0", std::string(24, '\1')};

Bytes six_floats(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const std::string& name : names) items.emplace_back(name, tensor_call({}));
  return to_bytes(state_dict_file(pickled_dict(items), {kSix}));
}

// An object of mine.Net with a module's attributes.
std::string pickled_net(const std::string& parameters, const std::string& buffers,
                        const std::string& modules, const std::string& more = "") {
  return "cmine\nNet\n)\x81}(" + pickled_text("training") + "\x88" + pickled_text("_parameters") +
         parameters + pickled_text("_buffers") + buffers + pickled_text("_modules") + modules +
         more + "ub";
}

std::string causes_in(const Checkpoint& checkpoint) {
  std::string causes;
  for (const Finding& finding : checkpoint.opening_findings()) causes += finding.cause + "\n";
  return causes;
}

}  // namespace

TEST_CASE("pickled module: its tensors have the names of its state_dict") {
  const std::string tensor = tensor_call({});
  const std::string inner = pickled_net("ccollections\nOrderedDict\n)R(" + pickled_text("weight") +
                                            tensor + pickled_text("bias") + "Nu",
                                        "}", "ccollections\nOrderedDict\n)R");
  const std::string outer = pickled_net(
      pickled_dict({{"scale", tensor}}), pickled_dict({{"mean", tensor}, {"cache", tensor}}),
      pickled_dict({{"first", inner}, {"none", "N"}}),
      pickled_text("_non_persistent_buffers_set") + "c__builtin__\nset\n](" +
          pickled_text("cache") + "e\x85R");
  auto opened = open_model(state_dict_file(outer, {kSix}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "scale mean first.weight |");
  CHECK(causes_in(**opened).find("mine.Net") != std::string::npos);
  CHECK(causes_in(**opened).find("cache") != std::string::npos);
  // Next to other values, as trainers keep it.
  auto beside =
      open_model(state_dict_file(pickled_dict({{"epoch", "K\1"}, {"ema", outer}}), {kSix}));
  REQUIRE_MESSAGE(beside.has_value(), beside.error().message);
  CHECK(names_of(**beside) == "ema.scale ema.mean ema.first.weight | epoch");
}

TEST_CASE("pickled module: one that holds itself is refused, and ends") {
  const std::string self = "cmine\nNet\n)\x81q\1}(" + pickled_text("_parameters") + "}" +
                           pickled_text("_buffers") + "}" + pickled_text("_modules") + "}" +
                           pickled_text("me") + "h\1sub";
  auto opened = open_model(state_dict_file(self, {kSix}));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("entangled") != std::string::npos);
}

TEST_CASE("torch.save of a list, a tuple, a tensor or an object has names for its tensors") {
  const std::string tensor = tensor_call({});
  const std::pair<std::string, std::string> cases[] = {
      {"](" + tensor + pickled_dict({{"w", tensor}}) + "e", "0 1.w |"},
      {"(" + pickled_dict({{"w", tensor}}) + "K\5t", "0.w | 1"},
      {tensor, "tensor |"},
      {"cargparse\nNamespace\n)\x81" + pickled_dict({{"state", pickled_dict({{"w", tensor}})}}) +
           "b",
       "state.w |"},
  };
  for (const auto& [value, names] : cases) {
    CAPTURE(names);
    auto opened = open_model(state_dict_file(value, {kSix}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(names_of(**opened) == names);
  }
}

TEST_CASE("torch.save with float and tuple keys below the top has names where tensors are there") {
  const std::string half("G\x3f\xe0\0\0\0\0\0\0", 9);
  const std::string tensor = tensor_call({});
  auto opened = open_model(
      state_dict_file(pickled_dict({{"a", "}(" + half + tensor + "(K\1K\2t" + tensor + "u"},
                                    {"b", "}(" + half + "K\1u"}}),
                      {kSix}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "a.0.5 a.(1, 2) | b");
}

TEST_CASE("tensor subclass: it is read as the tensors that it wraps") {
  auto opened =
      open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.15/torch_save/torchao_int8.pt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) ==
        "0.weight.qdata 0.weight.scale 0.weight.zero_point 0.bias 1.weight.qdata 1.weight.scale "
        "1.weight.zero_point 1.bias |");
  CHECK((*opened)->dtype(*(*opened)->find("0.weight.qdata")) == Dtype::kInt8);
  CHECK(causes_in(**opened).find("torchao.quantization.Int8Tensor") != std::string::npos);
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE("tensor subclass: one that holds itself, or no tensor, is named and ends") {
  const std::string head =
      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
      "_rebuild_wrapper_subclass\ncmine\nPacked\n(NNNNNNNNt";
  for (const std::string& state : {std::string("}"), std::string("N"), pickled_dict({{"a", "K\1"}}),
                                   "}q\7(" + pickled_text("me") + "h\7u"}) {
    auto opened = open_model(state_dict_file(
        pickled_dict({{"w", head + state + "tR"}, {"b", tensor_call({})}}), {kSix}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(causes_in(**opened).find("mine.Packed") != std::string::npos);
  }
}

TEST_CASE("several torch.save files: entries of names that none shares are one checkpoint") {
  auto opened = open_checkpoint(memory_directory(
      "ckpt", {{"model.pt", six_floats({"a", "b"})}, {"head.pt", six_floats({"c"})}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "c a b |");
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE("several torch.save files: of steps the last one is opened and the others are said") {
  auto opened = open_checkpoint(memory_directory("ckpt", {{"epoch_2.pth", six_floats({"a"})},
                                                          {"epoch_10.pth", six_floats({"a"})},
                                                          {"epoch_9.pth", six_floats({"a"})}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "a |");
  CHECK(causes_in(**opened).find("Opened epoch_10.pth") != std::string::npos);
  CHECK(causes_in(**opened).find("epoch_9.pth") != std::string::npos);
  auto last = open_checkpoint(
      memory_directory("ckpt", {{"best.pt", six_floats({"a"})}, {"last.pt", six_floats({"a"})}}));
  REQUIRE_MESSAGE(last.has_value(), last.error().message);
  CHECK(causes_in(**last).find("Opened last.pt") != std::string::npos);
}

TEST_CASE("several torch.save files: entries of one name have the file's name in front") {
  auto opened = open_checkpoint(memory_directory(
      "ckpt", {{"model_rank_0.pt", six_floats({"a"})}, {"model_rank_1.pt", six_floats({"a"})}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "model_rank_0.a model_rank_1.a |");
  CHECK(causes_in(**opened).find("not checked") != std::string::npos);
}
