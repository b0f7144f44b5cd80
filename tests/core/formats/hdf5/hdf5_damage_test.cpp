// What is wrong with the bytes of an HDF5 file is said, and where.
#include <algorithm>
#include <span>

#include "core/formats/hdf5/hdf5_files.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

// Of that rule about that subject; null where there is none.
const Finding* finding_of(std::span<const Finding> findings, std::string_view rule,
                          const std::string& subject) {
  for (const Finding& finding : findings) {
    const auto& subjects = finding.subjects;
    if (finding.rule == rule &&
        std::find(subjects.begin(), subjects.end(), subject) != subjects.end())
      return &finding;
  }
  return nullptr;
}

std::vector<Finding> findings_at_data(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return report->findings;
}

}  // namespace

TEST_CASE(
    "a deflated tile that cannot be inflated is damage at depth data, whatever its elements") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  CHECK(finding_of(findings_at_data(**open_bytes(whole)), "bad-record", "gzip") == nullptr);
  for (const char* fqn : {"gzip", "shuffled"}) {
    auto checkpoint = open_bytes(whole);
    auto item = (*checkpoint)->item((*checkpoint)->chunks(*(*checkpoint)->find(fqn))[0]);
    REQUIRE(item.has_value());
    // Its last byte is of the checksum of what was deflated.
    Bytes bytes = whole;
    bytes[static_cast<std::size_t>(item->offset + item->length - 1)] ^= std::byte{1};
    auto damaged = open_bytes(std::move(bytes));
    const auto findings = findings_at_data(**damaged);
    const Finding* finding = finding_of(findings, "bad-record", fqn);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    INFO(finding->cause);
    CHECK(finding->cause.find("m.h5 at byte") != std::string::npos);
    CHECK(finding->cause.find("compressed tile") != std::string::npos);
  }
}

TEST_CASE("floats that cannot be decoded are damage too, not values without a finding") {
  Bytes bytes = file_bytes("h5py/filled.h5");
  auto checkpoint = open_bytes(bytes);
  auto item = (*checkpoint)->item((*checkpoint)->chunks(*(*checkpoint)->find("deflated"))[0]);
  REQUIRE(item.has_value());
  bytes[static_cast<std::size_t>(item->offset + item->length - 1)] ^= std::byte{1};
  auto damaged = open_bytes(std::move(bytes));
  CHECK(finding_of(findings_at_data(**damaged), "bad-record", "deflated") != nullptr);
}
