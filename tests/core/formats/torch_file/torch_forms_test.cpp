// Arguments of torch.save other than a state dict: whole modules, lists, a single tensor; and
// several files in a folder.
#include <algorithm>
#include <cstring>

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

std::ptrdiff_t opened_files(const Checkpoint& checkpoint) {
  return std::count_if(checkpoint.files().begin(), checkpoint.files().end(),
                       [](const FileRow& file) { return file.referenced; });
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
  CHECK(opened.error().message.find("too complex") != std::string::npos);
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

TEST_CASE("tensor subclass: sparse, nested and quantised tensors are read as their parts") {
  auto opened = open_checkpoint(torch_file_path("composed.pt"));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) ==
        "coo.indices coo.values csr.crow_indices csr.col_indices csr.values csc.ccol_indices "
        "csc.row_indices csc.values bsr.crow_indices bsr.col_indices bsr.values nested.values "
        "nested.nested_sizes nested.nested_strides nested.storage_offsets jagged.values "
        "jagged.offsets q.int_repr qc.int_repr qc.scales qc.zero_points w | coo.size csr.size "
        "csc.size bsr.size q.scale q.zero_point qc.axis");
  const auto values = values_by_name(**opened);
  auto floats = [&](const char* name) {
    const Bytes& bytes = values.at(name);
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  for (const char* name : {"coo.values", "csr.values"})
    CHECK(floats(name) == std::vector<float>{2, 3, 4});
  CHECK(floats("csc.values") == std::vector<float>{3, 2, 4});
  CHECK(floats("jagged.values") == std::vector<float>(9, 1));
  // dense / 0.5 + 2
  const std::vector<int> quantised = {2, 6, 2, 8, 2, 10};
  REQUIRE(values.at("q.int_repr").size() == quantised.size());
  for (std::size_t i = 0; i < quantised.size(); ++i)
    CHECK(static_cast<int>(values.at("q.int_repr")[i]) == quantised[i]);
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
    CHECK(finding.rule != "not-looked-at");
  }
}

TEST_CASE("tensor subclass: a sparse tensor of an unknown layout or without parts is named") {
  for (const char* call :
       {"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n(U\5torchtRNtR",
        "ctorch._utils\n_rebuild_sparse_tensor\n(NtR", "ctorch._utils\n_rebuild_nested_tensor\n)R",
        "ctorch._utils\n_rebuild_qtensor\n(NNNN)NNtR"}) {
    auto opened =
        open_model(state_dict_file(pickled_dict({{"w", call}, {"b", tensor_call({})}}), {kSix}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(names_of(**opened) == "b | w");
  }
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

TEST_CASE("several torch.save files: of saves of two files each the last save is opened") {
  std::vector<std::pair<std::string, Bytes>> files = {{"model_000900.pt", six_floats({"a"})},
                                                      {"optim_000900_rank0.pt", six_floats({"m"})},
                                                      {"model_001000.pt", six_floats({"a"})},
                                                      {"optim_001000_rank0.pt", six_floats({"m"})}};
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "a m |");
  CHECK(opened_files(**opened) == 2);
  CHECK(causes_in(**opened).find("model_001000.pt and optim_001000_rank0.pt") != std::string::npos);
  // Of one name with other tensors, or with a number of parts: no saves of one run.
  files[0].second = six_floats({"b"});
  auto others = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE_MESSAGE(others.has_value(), others.error().message);
  CHECK(opened_files(**others) == 4);
  auto parts = open_checkpoint(memory_directory("ckpt", {{"rank1_a.pt", six_floats({"a"})},
                                                         {"rank1_b.pt", six_floats({"m"})},
                                                         {"rank2_a.pt", six_floats({"a"})},
                                                         {"rank2_b.pt", six_floats({"m"})}}));
  REQUIRE_MESSAGE(parts.has_value(), parts.error().message);
  CHECK(opened_files(**parts) == 4);
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
