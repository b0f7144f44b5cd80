// A folder that holds a model twice: as safetensors and as torch's file.
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/names/named_tensors.h"
#include "core/tensor/strided_copy.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

// What safetensors of NamedTensors hold, as a file of torch.save. Names in `tied` view the storage
// of another name.
Bytes torch_file_of(const NamedTensors& tensors,
                    const std::map<std::string, std::string>& tied = {}) {
  std::vector<std::pair<std::string, std::string>> calls;
  std::vector<ZipRecord> records;
  std::map<std::string, std::string> keys;
  for (const auto& [name, tensor] : tensors) {
    const std::string key = std::to_string(records.size());
    keys[name] = key;
    calls.emplace_back(name, tensor_call({.count = volume(tensor.shape).value_or(0),
                                          .sizes = tensor.shape,
                                          .strides = row_major_strides(tensor.shape),
                                          .key = key}));
    records.push_back({"m/data/" + key, elements_of(tensor)});
  }
  for (const auto& [name, other] : tied) {
    const Extents& shape = tensors.at(other).shape;
    calls.emplace_back(name, tensor_call({.count = volume(shape).value_or(0),
                                          .sizes = shape,
                                          .strides = row_major_strides(shape),
                                          .key = keys.at(other)}));
  }
  return to_bytes(state_dict_file(pickled_dict(calls), records));
}

CheckReport checked_twice(const NamedTensors& tensors, Bytes other, Depth depth) {
  Files files{{"config.json", bytes_from(kLlamaConfig)},
              {"model.safetensors", tensor_file(tensors)},
              {"pytorch_model.bin", std::move(other)}};
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CheckOptions options;
  options.depth = depth;
  return looked(**opened, options);
}

bool is_told(const CheckReport& report) {
  const Finding* finding = find(report, "other-form");
  return finding != nullptr && finding->severity == Severity::kWarning;
}

}  // namespace

TEST_CASE("other form: the same model twice raises nothing") {
  const NamedTensors tensors = llama_tensors(same_name);
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData})
    CHECK(find(checked_twice(tensors, torch_file_of(tensors), depth), "other-form") == nullptr);
}

TEST_CASE("other form: buffers and tied names that one form leaves out are not a difference") {
  const NamedTensors tensors = llama_tensors(same_name);
  NamedTensors more = tensors;
  more["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"F32", {4}};
  const Bytes other = torch_file_of(
      more, {{"model.layers.1.cross.q_proj.weight", "model.layers.0.self_attn.q_proj.weight"}});
  CHECK(find(checked_twice(tensors, other, Depth::kData), "other-form") == nullptr);
}

TEST_CASE("other form: another shape, a lost layer and a prefix are told without reading values") {
  const NamedTensors tensors = llama_tensors(same_name);
  NamedTensors grown = tensors;
  grown["model.embed_tokens.weight"].shape = {16, 8};
  NamedTensors shorter = tensors;
  std::erase_if(shorter, [](const auto& one) { return one.first.starts_with("model.layers.1."); });
  const auto wrapped = llama_tensors([](const std::string& name) { return "model." + name; });
  for (const NamedTensors& other : {grown, shorter, wrapped}) {
    INFO(other.begin()->first);
    CHECK(is_told(checked_twice(tensors, torch_file_of(other), Depth::kHeaders)));
    CHECK(find(checked_twice(tensors, torch_file_of(other), Depth::kMetadata), "other-form") ==
          nullptr);
  }
  CHECK(is_told(checked_twice(shorter, torch_file_of(tensors), Depth::kHeaders)));
}

TEST_CASE("other form: layers under other names are not a difference") {
  const NamedTensors tensors = llama_tensors(same_name);
  const auto renamed = llama_tensors([](const std::string& name) {
    const std::size_t at = name.find("up_proj");
    return at == std::string::npos ? name : name.substr(0, at) + "w3.weight";
  });
  CHECK(find(checked_twice(tensors, torch_file_of(renamed), Depth::kData), "other-form") ==
        nullptr);
}

TEST_CASE("other form: other values are told where they are read") {
  const NamedTensors tensors = llama_tensors(same_name);
  NamedTensors other = tensors;
  other["model.layers.1.mlp.up_proj.weight"].value = 7;
  CHECK_FALSE(is_told(checked_twice(tensors, torch_file_of(other), Depth::kHeaders)));
  const CheckReport report = checked_twice(tensors, torch_file_of(other), Depth::kData);
  REQUIRE(is_told(report));
  CHECK(find(report, "other-form")->cause.find("model.layers.1.mlp.up_proj.weight") !=
        std::string::npos);
}

TEST_CASE("other form: values are compared where one form was saved without its outer prefix") {
  const NamedTensors tensors = llama_tensors(same_name);
  NamedTensors inner;
  for (const auto& [name, tensor] : tensors)
    inner[name.starts_with("model.") ? name.substr(6) : name] = tensor;
  CHECK(find(checked_twice(tensors, torch_file_of(inner), Depth::kData), "other-form") == nullptr);
  NamedTensors later = inner;
  REQUIRE(later.contains("layers.0.mlp.up_proj.weight"));
  later["layers.0.mlp.up_proj.weight"].value = 7;
  const CheckReport report = checked_twice(tensors, torch_file_of(later), Depth::kData);
  REQUIRE(is_told(report));
  CHECK(find(report, "other-form")->cause.find("1 of 11 tensors") != std::string::npos);
  // And the other way round: the safetensors have the short names.
  NamedTensors outer = tensors;
  outer["model.layers.0.mlp.up_proj.weight"].value = 7;
  CHECK(is_told(checked_twice(inner, torch_file_of(outer), Depth::kData)));
  CHECK(find(checked_twice(inner, torch_file_of(tensors), Depth::kData), "other-form") == nullptr);
  // A text model next to a larger one: what only one of them has is not told.
  std::erase_if(inner, [](const auto& one) { return one.first.starts_with("layers.1."); });
  CHECK(find(checked_twice(tensors, torch_file_of(inner), Depth::kData), "other-form") == nullptr);
}

TEST_CASE("other form: a file that cannot be opened is none") {
  const NamedTensors tensors = llama_tensors(same_name);
  CHECK(find(checked_twice(tensors, bytes_from("version https://git-lfs.github.com/spec/v1\n"),
                           Depth::kData),
             "other-form") == nullptr);
  Bytes cut = torch_file_of(tensors);
  cut.resize(cut.size() / 2);
  CHECK(find(checked_twice(tensors, std::move(cut), Depth::kData), "other-form") == nullptr);
}

TEST_CASE("other form: one of which a part was not downloaded is none") {
  const NamedTensors tensors = llama_tensors(same_name);
  NamedTensors part;
  std::string map;
  for (const auto& [name, tensor] : tensors) {
    const bool is_first = part.size() < 4;
    if (is_first) part[name] = tensor;
    map += fmt::format(R"({}"{}": "pytorch_model-0000{}-of-00002.bin")", map.empty() ? "" : ", ",
                       name, is_first ? 1 : 2);
  }
  const std::string index = R"({"metadata": {}, "weight_map": {)" + map + "}}";
  Files files{{"config.json", bytes_from(kLlamaConfig)},
              {"model.safetensors", tensor_file(tensors)},
              {"pytorch_model-00001-of-00002.bin", torch_file_of(part)},
              {"pytorch_model.bin.index.json", bytes_from(index)}};
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE(opened.has_value());
  CheckOptions options;
  options.depth = Depth::kData;
  CHECK(find(looked(**opened, options), "other-form") == nullptr);
}

TEST_CASE(
    "other form: parts of a second save next to the indexed ones are recognised by their names") {
  const NamedTensors tensors = llama_tensors(same_name);
  std::string index = "{\"weight_map\": {";
  for (const auto& [name, tensor] : tensors)
    index += fmt::format("{}\"{}\": \"model-00001-of-00001.safetensors\"",
                         index.ends_with('{') ? "" : ", ", name);
  auto report_beside = [&](const std::vector<std::string>& others) {
    Files files{{"config.json", bytes_from(kLlamaConfig)},
                {"model.safetensors.index.json", bytes_from(index + "}}")},
                {"model-00001-of-00001.safetensors", tensor_file(tensors)}};
    for (const std::string& other : others) files.emplace_back(other, tensor_file(tensors));
    auto opened = open_checkpoint(memory_directory("made", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CheckOptions options;
    options.depth = Depth::kHeaders;
    return looked(**opened, options);
  };
  CHECK_FALSE(is_told(report_beside({})));
  CHECK_FALSE(is_told(report_beside({"consolidated-00001-of-00002.safetensors"})));
  const CheckReport report =
      report_beside({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
  REQUIRE(is_told(report));
  CHECK(find(report, "other-form")->subjects.size() == 2);
}
