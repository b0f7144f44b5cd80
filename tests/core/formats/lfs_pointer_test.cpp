// A repository that was cloned without Git LFS has pointers instead of its files.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/open.h"
#include "core/make_zip.h"

using namespace shw;
using namespace shw::test;

TEST_CASE(
    "a Git LFS pointer in the place of a file is reported as a file that was not downloaded") {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8"
      "f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
  for (const char* name : {"model.safetensors", "pytorch_model.bin", "model.pt", "weights.h5",
                           "model.keras", ".metadata"}) {
    CAPTURE(name);
    auto opened = open_checkpoint(memory_directory("ckpt", {{name, to_bytes(pointer)}}));
    REQUIRE_FALSE(opened.has_value());
    CAPTURE(opened.error().message);
    CHECK(opened.error().kind == ErrorKind::kDamaged);
    CHECK(opened.error().message.find("not downloaded") != std::string::npos);
    CHECK(opened.error().message.find("git lfs pull") != std::string::npos);
    CHECK(opened.error().place.file == name);
  }
}

TEST_CASE("one shard of several that is a Git LFS pointer is reported next to what is there") {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string whole = little(header.size(), 8) + header + "abcd";
  auto opened = open_checkpoint(memory_directory(
      "ckpt", {{"model-00001-of-00002.safetensors", to_bytes(whole)},
               {"model-00002-of-00002.safetensors",
                to_bytes("version https://git-lfs.github.com/spec/v1\nsize 12345\n")}}));
  REQUIRE(opened.has_value());
  const auto findings = (*opened)->opening_findings();
  const bool is_told = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError &&
           finding.cause.find("not downloaded") != std::string::npos;
  });
  CHECK(is_told);
}
