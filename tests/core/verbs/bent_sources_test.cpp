// Bytes that are not those that were saved, on their way into files with good checksums.
#include <algorithm>
#include <fstream>

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

// One bit of the last number of w.
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

Result<std::vector<Finding>> reasons_against(const std::string& folder,
                                             std::optional<Depth> depth = {}) {
  VerbOptions said;
  said.checkpoint = folder;
  auto opened = verbs::open(said);
  REQUIRE(opened.has_value());
  return verbs::reasons_to_repair_first(*opened, depth, nullptr);
}

}  // namespace

TEST_CASE("what would be made anew of bytes that are not those that were saved is refused") {
  TemporaryFolder scratch;
  const std::string whole = two_halves(scratch / "whole");
  auto reasons = reasons_against(whole);
  REQUIRE(reasons.has_value());
  CHECK(reasons->empty());
  const std::string bent = two_halves(scratch / "bent");
  bend(bent + "/__1_0.distcp");
  auto refused = reasons_against(bent);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kDamaged);
  CHECK(refused.error().message.find("checksum") != std::string::npos);
  CHECK(refused.error().place.tensor == "w");
  CHECK(refused.error().place.file == "__1_0.distcp");
  // Who says how deep to look is answered as deep.
  CHECK(reasons_against(bent, Depth::kHeaders)->empty());
  CHECK_FALSE(reasons_against(bent, Depth::kData)->empty());
}
