#include "core/verbs/names/named_nodes.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/temporary_folder.h"
#include "core/verbs/verbs.h"

using namespace shw;

TEST_CASE("named nodes: the node whose files are missing is named where its ranks are given") {
  TemporaryFolder folder;
  const std::string path = folder / "step";
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt", path);
  std::filesystem::remove(path + "/__2_0.distcp");
  std::filesystem::remove(path + "/__3_0.distcp");
  auto cause = [&](std::uint32_t ranks_per_node) {
    VerbOptions options;
    options.checkpoint = path;
    options.ranks_per_node = ranks_per_node;
    auto opened = verbs::open(options);
    REQUIRE(opened.has_value());
    auto report = verbs::check(*opened, std::nullopt);
    REQUIRE(report.has_value());
    REQUIRE_FALSE(report->findings.empty());
    REQUIRE(report->findings.front().rule == "missing-file");
    return report->findings.front().cause;
  };
  const std::string ranks = " They are files of ranks 2 and 3 of 4.";
  CHECK(cause(0).ends_with(ranks));
  CHECK(cause(2).ends_with(ranks + " They are all files of node 1."));
  CHECK(cause(4).ends_with(ranks));  // half of a node
}
