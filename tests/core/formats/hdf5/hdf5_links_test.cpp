// Soft links, and files that a writer left open.
#include <algorithm>

#include "core/formats/hdf5/hdf5_checksum.h"
#include "core/formats/hdf5/hdf5_files.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const Finding* finding_of(const Checkpoint& checkpoint, const std::string& subject) {
  const auto& findings = checkpoint.opening_findings();
  auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    const auto& all = finding.subjects;
    return std::find(all.begin(), all.end(), subject) != all.end();
  });
  return found == findings.end() ? nullptr : &*found;
}

bool says(const Finding* finding, std::string_view rule, std::string_view words) {
  REQUIRE(finding != nullptr);
  INFO(finding->cause);
  return finding->rule == rule && finding->cause.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a soft link is one more name of the dataset or group that it leads to") {
  for (const char* file : {"h5py/soft_links.h5", "h5py/soft_links_latest.h5"}) {
    CAPTURE(file);
    auto checkpoint = opened(file);
    for (const char* fqn :
         {"layers/dense/w", "tied", "layers/again", "chain", "group/dense/w", "group/again"})
      CHECK(numbers_of<float>(*checkpoint, fqn) == std::vector<float>{0, 1, 2, 3});
    // A link back to an enclosing group: its contents have been listed already.
    CHECK_FALSE(checkpoint->find("layers/up/tied").has_value());
  }
}

TEST_CASE("a soft link that leads to nothing is recognised by its name") {
  for (const char* file : {"h5py/soft_links.h5", "h5py/soft_links_latest.h5"}) {
    CAPTURE(file);
    auto checkpoint = opened(file);
    CHECK(says(finding_of(*checkpoint, "lost/gone"), "bad-record",
               "lost/gone is a soft link to /layers/lost, and there is no lost"));
    CHECK(says(finding_of(*checkpoint, "lost/through"), "bad-record",
               "the parent of x is not a group"));
    for (const char* round : {"lost/round", "lost/about"})
      CHECK(says(finding_of(*checkpoint, round), "bad-record", "more than 16 soft links"));
    CHECK(says(finding_of(*checkpoint, "lost/far"), "not-looked-at", "to other.h5"));
    CHECK(says(finding_of(*checkpoint, "outside"), "not-looked-at", "other.h5"));
    CHECK(checkpoint->unclaimed_records().size() == 5);
    // One finding for the links that lead nowhere, one for the link to another file, one for this.
    CHECK(checkpoint->opening_findings().size() == 3);
    CHECK(check(*checkpoint, {})->verdict == Verdict::kFindings);
  }
}

TEST_CASE("a file of version 3 that its writer did not close is reported") {
  for (std::size_t version : {2u, 3u}) {
    for (std::size_t flags = 0; flags < 8; ++flags) {
      CAPTURE(version);
      CAPTURE(flags);
      Bytes bytes = file_bytes("h5py/latest.h5");
      bytes[8] = std::byte(version);
      bytes[11] = std::byte(flags);
      const std::uint32_t sum = hdf5_checksum(BytesView(bytes).first(44));
      for (std::size_t i = 0; i < 4; ++i) bytes[44 + i] = std::byte(sum >> (8 * i) & 0xFF);
      auto checkpoint = open_bytes(std::move(bytes));
      REQUIRE(checkpoint.has_value());
      CHECK(numbers_of<double>(**checkpoint, "model/3") == std::vector<double>(8, 3.0));
      const Finding* finding = finding_of(**checkpoint, "m.h5");
      // HDF5 2.0 refuses the same files.
      CHECK((finding != nullptr) == (version == 3 && (flags & 5) != 0));
      if (finding != nullptr) CHECK(says(finding, "bad-record", "did not close "));
    }
  }
}

TEST_CASE("attributes of whole numbers say where a part is, of any width and order of bytes") {
  auto checkpoint = opened("h5py/attributes.h5");
  for (const char* fqn : {"int8", "uint16", "big"}) {
    CAPTURE(fqn);
    for (const std::string& half : {std::string(fqn), std::string(fqn) + "_right"}) {
      const TensorId tensor = *checkpoint->find(half);
      CHECK(to_text(checkpoint->shape(tensor)) == "[2, 4]");
      const auto offsets = checkpoint->offsets(checkpoint->chunks(tensor)[0]);
      CHECK(offsets[1] == (half == fqn ? 0 : 2));
    }
  }
}

TEST_CASE("attributes of those names that are something else leave a dataset as it is") {
  auto checkpoint = opened("h5py/attributes.h5");
  for (const char* fqn : {"float", "scalar", "long"}) {
    CAPTURE(fqn);
    CHECK(numbers_of<float>(*checkpoint, fqn) == std::vector<float>{0, 1, 2, 3});
    CHECK(to_text(checkpoint->shape(*checkpoint->find(fqn))) == "[2, 2]");
    CHECK(finding_of(*checkpoint, fqn) == nullptr);
  }
  CHECK(numbers_of<float>(*checkpoint, "text") == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("an enumeration of anything but whole numbers of one byte is not a bool") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  // Two members of one byte of an int8: class and version, bits, size, offset, precision.
  const std::vector<int> type{0x02, 0, 0, 1, 0, 0, 0, 0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
  Bytes words;
  for (int byte : type) words.push_back(std::byte(byte));
  auto at = std::search(whole.begin(), whole.end(), words.begin(), words.end());
  REQUIRE(at != whole.end());
  const auto beneath = static_cast<std::size_t>(at - whole.begin()) + 7;
  const std::pair<std::size_t, int> kWrong[] = {{0, 0x11}, {0, 0x13}, {0, 0x00}, {4, 2}, {10, 7}};
  for (const auto& [place, byte] : kWrong) {
    CAPTURE(place);
    CAPTURE(byte);
    Bytes bytes = whole;
    bytes[beneath + place] = std::byte(byte);
    auto checkpoint = open_bytes(std::move(bytes));
    REQUIRE(checkpoint.has_value());
    auto tensor = (*checkpoint)->find("bool");
    CHECK((!tensor || !read_tensor(**checkpoint, *tensor).has_value()));
  }
}
