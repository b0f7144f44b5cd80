// Files that Megatron reads next to .metadata, modified in every relevant way.
#include "core/formats/dcp/megatron_files.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/common/torch_archive.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_support.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kMarker =
    R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch"})";

// `more`: bytes of another storage next to the pickle.
Bytes common_state(std::size_t more = 0) {
  const Bytes pickle = bytes_of("\x80\x02}(U\x09iterationK\x05u.");
  const Bytes storage(more);
  MemorySink sink;
  TorchArchive archive{.top = "common", .pickle = payload_of(pickle)};
  if (more != 0) archive.storages.push_back(payload_of(storage));
  REQUIRE(write_torch_archive(sink, archive));
  return sink.bytes;
}

// The severity of each finding.
std::vector<Severity> noted(const std::optional<std::string>& marker,
                            const std::optional<Bytes>& common, bool has_object = false) {
  std::vector<std::pair<std::string, Bytes>> files;
  if (marker) files.emplace_back(kMegatronMarker, bytes_of(*marker));
  if (common) files.emplace_back(kCommonState, *common);
  auto directory = memory_directory("ckpt", files);
  CheckpointBuilder builder;
  builder.set_format(kMegatronFormat);
  report_megatron_files(*directory, has_object, builder);
  std::vector<Severity> out;
  for (const Finding& finding : builder.finish()->opening_findings()) {
    CHECK(finding.rule == "bad-record");
    CHECK_FALSE(finding.cause.empty());
    out.push_back(finding.severity);
  }
  return out;
}

using Severities = std::vector<Severity>;

}  // namespace

TEST_CASE("what Megatron reads first is whole or said to be damaged") {
  const Severities nothing, error{Severity::kError}, info{Severity::kInfo};
  const Bytes whole = common_state();
  CHECK(noted(kMarker, whole) == nothing);
  CHECK(noted(kMarker, std::nullopt, true) == nothing);
  CHECK(noted(kMarker, std::nullopt) == info);
  for (const char* text : {"", "{", "[]", "7", "\xEF\xBB\xBF{}", R"({"sharded_backend": 7})",
                           R"({"sharded_backend": "zarr"})"}) {
    CAPTURE(text);
    CHECK(noted(text, whole) == error);
  }
  CHECK(noted("{}", whole) == nothing);  // somebody else's
  CHECK(noted("{", std::nullopt) == info);
  CHECK(noted(kMarker, Bytes()) == error);
  CHECK(noted(kMarker, Bytes(500)) == error);
}

TEST_CASE("a folder of Megatron's without its marker is a warning, and nobody else's is") {
  auto noted_without = [](std::optional<Bytes> common, bool has_object) {
    std::vector<std::pair<std::string, Bytes>> files;
    if (common) files.emplace_back(kCommonState, *common);
    CheckpointBuilder builder;
    builder.set_format(kDcpFormat);
    report_missing_marker(*memory_directory("ckpt", files), has_object, builder);
    Severities out;
    for (const Finding& finding : builder.finish()->opening_findings()) {
      CHECK(finding.subjects == std::vector<std::string>{kMegatronMarker});
      out.push_back(finding.severity);
    }
    return out;
  };
  CHECK(noted_without(common_state(), false) == Severities{Severity::kWarning});
  CHECK(noted_without(std::nullopt, true) == Severities{Severity::kWarning});
  CHECK(noted_without(std::nullopt, false) == Severities{});
}

TEST_CASE("a common.pt that is too large to be read whole is not said to be whole") {
  CHECK(noted(kMarker, common_state(1 << 20)) == Severities{});
  CHECK(noted(kMarker, common_state(65 << 20)) == Severities{Severity::kInfo});
}

TEST_CASE("common.pt cut anywhere is reported, and so is any byte of its pickle") {
  const Bytes whole = common_state();
  for (std::size_t keep = 0; keep < whole.size(); keep += 7) {
    CAPTURE(keep);
    CHECK(noted(kMarker, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(keep))) ==
          Severities{Severity::kError});
  }
  const std::string name = "iteration";
  auto found = std::search(whole.begin(), whole.end(), name.begin(), name.end(),
                           [](std::byte a, char b) { return static_cast<char>(a) == b; });
  REQUIRE(found != whole.end());
  for (std::ptrdiff_t at = 0; at < 9; ++at) {
    Bytes bent = whole;
    bent[static_cast<std::size_t>(found - whole.begin() + at)] ^= std::byte{1};
    CHECK(noted(kMarker, bent) == Severities{Severity::kError});
  }
}
