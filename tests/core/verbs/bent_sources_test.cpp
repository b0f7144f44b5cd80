// Changed source bytes that must not get into files with good checksums.
#include <filesystem>
#include <fstream>

#include "core/make_zip.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/verify.h"
#include "core/repair/run/apply.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string two_halves(const std::string& folder) {
  MadeModel model;
  model.add("w", Dtype::kFloat32, {4, 6}, distinct(24));
  model.tensors[0].tiles = {{{0, 0}, {2, 6}, 0}, {{2, 0}, {2, 6}, 1}};
  model.add("b", Dtype::kFloat32, {3}, distinct(3));
  made(folder, model);
  return folder;
}

// Flips one bit of the last number of w.
void bend(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const Bytes number = as_dtype({distinct(24).back()}, Dtype::kFloat32);
  const std::string_view wanted(reinterpret_cast<const char*>(number.data()), number.size());
  const std::size_t at = bytes.find(wanted);
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

Result<RepairResult> made_of(const std::string& folder, const std::string& mesh,
                             const std::string& format) {
  VerbOptions options;
  options.checkpoint = folder;
  options.mesh = mesh;
  options.to = format;
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto plan =
      mesh.empty() ? verbs::plan_convert(*opened, options) : verbs::plan_reshard(*opened, options);
  REQUIRE(plan.has_value());
  return verbs::repair(*opened, *plan, {folder + "-made"}, nullptr);
}

}  // namespace

TEST_CASE("what would be recreated of bytes that are not those that were saved is refused") {
  TemporaryFolder scratch;
  for (const std::string mesh : {"dp=4", ""}) {
    CAPTURE(mesh);
    const std::string whole = two_halves(scratch / ("whole" + mesh));
    CHECK(made_of(whole, mesh, "torch").has_value());
    const std::string bent = two_halves(scratch / ("bent" + mesh));
    bend(bent + "/__1_0.distcp");
    auto made = made_of(bent, mesh, "torch");
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::kDamaged);
    CHECK(made.error().message.find("checksum") != std::string::npos);
    CHECK(made.error().place.tensor == "w");
    CHECK(made.error().place.file == "__1_0.distcp");
    CHECK_FALSE(std::filesystem::exists(bent + "-made"));
  }
}

TEST_CASE("an item that is copied as it is keeps the checksum that tells of it") {
  TemporaryFolder scratch;
  const std::string bent = two_halves(scratch / "bent");
  bend(bent + "/__1_0.distcp");
  // Splits into the same boxes as before.
  REQUIRE(made_of(bent, "dp=2", "").has_value());
  auto opened = open_checkpoint(bent + "-made");
  REQUIRE(opened.has_value());
  auto report = check(**opened, CheckOptions{Depth::kData, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  CHECK(report->verdict == Verdict::kFindings);
}

namespace {

// The first of two files, with one number.
void put_first_of_two(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder / "hf");
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  put(folder / "hf/model-00001-of-00002.safetensors", little(header.size(), 8) + header + "abcd");
}

}  // namespace

TEST_CASE("steps leave no tensor out without an error whose file is gone and whose name is known") {
  TemporaryFolder folder;
  put_first_of_two(folder);
  put(folder / "hf/model.safetensors.index.json",
      R"({"weight_map":{"w":"model-00001-of-00002.safetensors",)"
      R"("gone.b":"model-00002-of-00002.safetensors",)"
      R"("gone.a":"model-00002-of-00002.safetensors"}})");
  VerbOptions options;
  options.checkpoint = folder / "hf";
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  Plan plan;
  plan.format = "dcp";
  plan.steps = {CastStep{{"*"}, Dtype::kBfloat16}};
  auto taken = [&](const char* to) { return verbs::repair(*opened, plan, {folder / to}, nullptr); };
  auto refused = taken("no");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("gone.a and gone.b") != std::string::npos);
  CHECK_FALSE(verbs::estimate_steps(*opened, plan, 1 << 20, nullptr).has_value());
  CHECK_FALSE(std::filesystem::exists(folder / "no"));

  plan.steps.push_back(DropStep{{"gone.b"}});
  CHECK_FALSE(taken("still-no").has_value());
  plan.steps.back() = DropStep{{"gone.b", "gone.*"}};
  auto made = taken("yes");
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  CHECK_FALSE(made->lossless);
  auto certificate = certificate_from_json(contents(folder / "yes/certificate.json"), "");
  CHECK(certificate->dropped == std::vector<std::string>{"gone.b", "gone.a"});
  CHECK(verify_repair(folder / "yes", nullptr)->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("steps leave no file out without an error that cannot be read") {
  TemporaryFolder folder;
  put_first_of_two(folder);
  const std::string second = "model-00002-of-00002.safetensors";
  for (const bool is_there : {false, true}) {
    CAPTURE(is_there);
    if (is_there) put(folder / ("hf/" + second), "no header");
    VerbOptions options;
    options.checkpoint = folder / "hf";
    auto opened = verbs::open(options);
    REQUIRE(opened.has_value());
    Plan plan;
    plan.format = "dcp";
    const std::string out = folder / (is_there ? "of-damaged" : "of-gone");
    auto refused = verbs::repair(*opened, plan, {out}, nullptr);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find(second) != std::string::npos);
    plan.steps = {DropStep{{second}}};
    auto made = verbs::repair(*opened, plan, {out}, nullptr);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    CHECK_FALSE(made->lossless);
    CHECK(certificate_from_json(contents(out + "/certificate.json"), "")->dropped ==
          std::vector<std::string>{second});
  }
}

TEST_CASE("a bent record is refused where its checksum is in the archive's directory alone") {
  TemporaryFolder scratch;
  // No data descriptor follows the bytes, as in archives repacked by Python's zipfile.
  std::string file =
      make_zip({{"m/data.pkl", as_pickle("}(" + pickled_text("w") + tensor_call({}) + "u")},
                {"m/data/0", std::string(24, 'x')},
                {"m/version", "3\n"}});
  shw::put(scratch / "whole.pt", file);
  CHECK(made_of(scratch / "whole.pt", "", "safetensors").has_value());
  const std::size_t at = file.find(std::string(24, 'x'));
  REQUIRE(at != std::string::npos);
  file[at + 5] = 'y';
  shw::put(scratch / "bent.pt", file);
  auto made = made_of(scratch / "bent.pt", "", "safetensors");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().kind == ErrorKind::kDamaged);
  CHECK(made.error().message.find("checksum") != std::string::npos);
}
