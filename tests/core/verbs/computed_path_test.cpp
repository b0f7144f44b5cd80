// Paths of computed checkpoints, used by verbs on disk.
#include "core/verbs/computed_path.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/formats/open.h"
#include "core/repair/proof/verify.h"
#include "core/temporary_folder.h"
#include "core/verbs/convert_plan.h"
#include "core/verbs/verbs.h"

using namespace shw;

namespace {

// One tensor of two float32 numbers.
void put_model(const std::string& folder, const std::string& name, float first, float second,
               const std::string& file = "model.safetensors") {
  std::filesystem::create_directories(folder);
  std::string header = "{\"" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  text += header;
  for (float value : {first, second})
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  put(folder + "/" + file, text);
}

std::string error_of(const std::string& path) {
  auto opened = verbs::open_requested(path, nullptr);
  return opened ? "" : opened.error().message;
}

RepairResult converted(const std::string& from, const std::string& out) {
  VerbOptions options;
  options.checkpoint = from;
  options.to = "safetensors";
  auto opened = verbs::open(options);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto made = verbs::repair(*opened, verbs::plan_convert(*opened, options).value(), {out}, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  return *made;
}

float first_number(const std::string& folder) {
  const std::string file = contents(folder + "/model.safetensors");
  float value = 0;
  std::memcpy(&value, file.data() + file.size() - 8, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("asked_path: an average is written and proved, with and without weights") {
  const TemporaryFolder folder;
  put_model(folder / "a", "w", 1, 10);
  put_model(folder / "b", "w", 3, 30);
  const std::string plain = verbs::average_path(folder / "a", {folder / "b"}, "", false);
  CHECK(converted(plain, folder / "mean").rounded == 1);
  CHECK(first_number(folder / "mean") == 2);
  const std::string weighted = verbs::average_path(folder / "a", {folder / "b"}, "2,-1", false);
  converted(weighted, folder / "weighted");
  CHECK(first_number(folder / "weighted") == -1);
  auto proof = verbs::verify(folder / "mean", nullptr, plain);
  REQUIRE(proof.has_value());
  CHECK(proof->outcome == VerifyReport::Outcome::kProved);
  // Another checkpoint is not the source of the result.
  auto other = verbs::verify(folder / "mean", nullptr, folder / "a");
  REQUIRE(other.has_value());
  CHECK(other->outcome != VerifyReport::Outcome::kProved);
}

TEST_CASE("asked_path: weights that are none are refused") {
  const TemporaryFolder folder;
  put_model(folder / "a", "w", 1, 10);
  put_model(folder / "b", "w", 3, 30);
  for (const char* weights :
       {"0.5", "0.5,0.6", "0.5,x", "0.5,0.5,", "nan,1", ",1", "0.5,0.3,0.2"}) {
    CAPTURE(weights);
    CHECK_FALSE(
        error_of(verbs::average_path(folder / "a", {folder / "b"}, weights, false)).empty());
  }
  CHECK_FALSE(error_of(verbs::adapter_path(folder / "a", folder / "b", 0)).empty());
}

TEST_CASE("asked_path: a delta is applied to its base alone") {
  const TemporaryFolder folder;
  put_model(folder / "a", "w", 1, 10);
  put_model(folder / "b", "w", 3, 10);
  put_model(folder / "c", "w", 1, 11);
  CHECK(converted(verbs::delta_path(folder / "a", folder / "b"), folder / "d").lossless);
  CHECK(std::filesystem::exists(folder / "d/delta.json"));
  CHECK(converted(verbs::applied_path(folder / "a", folder / "d"), folder / "again").lossless);
  CHECK(first_number(folder / "again") == 3);
  const std::string other = error_of(verbs::applied_path(folder / "c", folder / "d"));
  CHECK(other.find("different base") != std::string::npos);
  CHECK_FALSE(error_of(verbs::applied_path(folder / "a", folder / "b")).empty());
  // Changes one element of the delta, or its position.
  const std::string sound = contents(folder / "d/model.safetensors");
  for (std::size_t from_end : {1u, 5u}) {
    std::string text = sound;
    text[text.size() - from_end] = static_cast<char>(text[text.size() - from_end] ^ 1);
    put(folder / "d/model.safetensors", text);
    CHECK_FALSE(error_of(verbs::applied_path(folder / "a", folder / "d")).empty());
  }
}

TEST_CASE("asked_path: a folder whose name looks like an end is opened by its name") {
  const TemporaryFolder folder;
  put_model(folder / "a/@other", "w", 1, 2);
  CHECK(error_of(folder / "a/@other").empty());
}

TEST_CASE("asked_path: the config of decoded weights says nothing of quantising") {
  const TemporaryFolder folder;
  const std::string source = std::string(SHW_TEST_DATA) + "/quantised/fp8_block/ckpt";
  CHECK(contents(source + "/config.json").find("quantization_config") != std::string::npos);
  converted(source + std::string(verbs::kDequantisedPath), folder / "out");
  const std::string config = contents(folder / "out/config.json");
  CHECK_FALSE(config.empty());
  CHECK(config.find("quantization_config") == std::string::npos);
}

TEST_CASE("open_requested: a damaged file says what to do") {
  const TemporaryFolder folder;
  put(folder / "cut.safetensors", "seven b");
  const auto cut = verbs::open_requested(folder / "cut.safetensors", nullptr);
  REQUIRE_FALSE(cut.has_value());
  CHECK(cut.error().kind == ErrorKind::kDamaged);
  CHECK(cut.error().advice.find("copy it again") != std::string::npos);
  const auto absent = verbs::open_requested(folder / "absent", nullptr);
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error().advice.find("copy it again") == std::string::npos);
}
