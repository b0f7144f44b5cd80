// Programs that torch.jit.save wrote (tests/data/torch-2.15/torch_script), and ones made by hand.
#include <algorithm>

#include "core/data_findings.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kScripts = std::string(SHW_TEST_DATA) + "/torch-2.15/torch_script/";

OpenedCheckpoint open_program(const std::string& pickle) {
  return open_model(state_dict_file(pickle, {{"m/constants.pkl", as_pickle(")")}}));
}

std::string pickled_object(const std::string& module, const std::string& values) {
  return "c" + module + "\nNet\n)\x81}(" + values + "ub";
}

}  // namespace

TEST_CASE("TorchScript: tensors read by the names of state_dict(), those in lists by their index") {
  auto truth = read_truth(kScripts + "truth.safetensors");
  REQUIRE(truth.has_value());
  auto opened = open_checkpoint(kScripts + "scripted.pt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == truth->size());
  check_elements(**opened, *truth);
  check_is_sound(**opened);
}

TEST_CASE("TorchScript: weights of a frozen program are read from its constants") {
  auto opened = open_checkpoint(kScripts + "frozen.pt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto truth = read_truth(kScripts + "truth.safetensors");
  REQUIRE(truth.has_value());
  std::vector<Bytes> constants;
  for (const auto& [name, bytes] : values_by_name(**opened)) {
    CHECK(name.starts_with("constants."));
    constants.push_back(bytes);
  }
  CHECK(std::ranges::find(constants, truth->at("a.weight").bytes) != constants.end());
}

TEST_CASE("TorchScript: a changed element of a parameter or a constant is reported by --data") {
  for (const char* file : {"scripted.pt", "frozen.pt"}) {
    CAPTURE(file);
    auto source = open_file(kScripts + file, file);
    REQUIRE(source.has_value());
    Bytes bytes = *read_bytes(**source, 0, (*source)->size());
    auto sound = open_checkpoint(kScripts + file);
    REQUIRE(sound.has_value());
    const ItemPlace place = (*sound)->place((*sound)->storage(ChunkId{0}));
    bytes[static_cast<std::size_t>(place.offset)] ^= std::byte{1};
    auto opened = open_checkpoint(memory_directory("ckpt", {{"model.pt", bytes}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**opened, options);
    REQUIRE(report.has_value());
    CHECK(std::ranges::any_of(report->findings, [](const Finding& finding) {
      return finding.severity == Severity::kError;
    }));
  }
}

TEST_CASE(
    "TorchScript: an object that contains itself is refused, one of another class is not one") {
  // q0 is the object, and its attribute "self" is the object.
  auto endless = open_program("c__torch__.m\nNet\n)\x81q" + std::string(1, '\0') + "}(" +
                              pickled_text("self") + "h" + std::string(1, '\0') + "ub");
  REQUIRE_FALSE(endless.has_value());
  CHECK(endless.error().message.find("too complex") != std::string::npos);
  auto other = open_program(pickled_object("mymodel", pickled_text("n") + "K\1"));
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().message.find("mymodel.Net") != std::string::npos);
}
