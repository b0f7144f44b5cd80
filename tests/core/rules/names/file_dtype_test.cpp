// Files whose weights are in another dtype than the same weights of other layers.
#include <doctest/doctest.h>

#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

// Two files of one model, a layer in each.
CheckReport two_files(const std::string& first, const std::string& second, const char* name) {
  std::vector<std::pair<std::string, Bytes>> files;
  std::string map;
  for (int i = 0; i < 2; ++i) {
    const std::string file = fmt::format("model-0000{}-of-00002.safetensors", i + 1);
    NamedTensors tensors;
    for (const char* module : {"q_proj", "k_proj", "up_proj"}) {
      const std::string fqn = fmt::format("{}{}.{}.weight", name, i, module);
      tensors[fqn] = {i == 0 ? first : second, {8, 8}};
      map += fmt::format(R"({}"{}": "{}")", map.empty() ? "" : ", ", fqn, file);
    }
    files.emplace_back(file, tensor_file(tensors));
  }
  files.emplace_back("model.safetensors.index.json",
                     bytes_from(R"({"weight_map": {)" + map + "}}"));
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return looked(**opened, {});
}

}  // namespace

TEST_CASE("file dtype: a file of another dtype than the other layers is a warning") {
  CHECK(find(two_files("BF16", "BF16", "model.layers."), "file-dtype") == nullptr);
  const CheckReport report = two_files("BF16", "F32", "model.layers.");
  REQUIRE(find(report, "file-dtype") != nullptr);
  CHECK(find(report, "file-dtype")->severity == Severity::kWarning);
  CHECK(number(*find(report, "file-dtype"), "count") == 3);
}

TEST_CASE("file dtype: parts of a model that are not its layers may have their own dtype") {
  CHECK(find(two_files("BF16", "F32", "text_encoder_"), "file-dtype") == nullptr);
}

TEST_CASE("file dtype: weights that vary in each file are of one save") {
  NamedTensors tensors = llama_tensors(same_name);
  for (auto& [name, tensor] : tensors)
    if (name.find(".1.") != std::string::npos) tensor.dtype = "BF16";
  CHECK(find(checked_tensors(tensors), "file-dtype") == nullptr);
}
