// BYTES entries whose pickle cannot be read, with and without checksums.
#include <doctest/doctest.h>

#include <set>

#include "core/make_zip.h"
#include "core/rules/check.h"
#include "core/rules/storage/one_entry.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("an entry without a checksum whose pickle cannot be read is damaged") {
  auto rules_of = [](const std::string& pickle, bool crc) {
    const std::string item = make_zip({{"archive/data.pkl", pickle, false, ~std::uint64_t{0}, crc},
                                       {"archive/version", "3\n", false, ~std::uint64_t{0}, crc}});
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(*with_object(item), options);
    REQUIRE(report.has_value());
    std::set<std::string> rules;
    for (const Finding& finding : report->findings)
      if (finding.severity > Severity::kInfo) rules.insert(finding.rule);
    rules.erase("empty-tensors");  // there are no other entries
    return rules;
  };
  const std::string good(
      "\x80\x02"
      "ccollections\nOrderedDict\n)R.");
  std::string bent = good, odd = good;
  bent[bent.find("Ordered") + 4] = 's';
  odd[odd.find("Ordered") + 4] = '\xF2';
  for (const std::string& pickle : {bent, odd, good.substr(0, good.size() - 1)}) {
    CAPTURE(pickle);
    CHECK(rules_of(pickle, false).count("bad-record") == 1);
  }
  CHECK(rules_of(good, false).empty());
  CHECK(rules_of(good, true).empty());
}
