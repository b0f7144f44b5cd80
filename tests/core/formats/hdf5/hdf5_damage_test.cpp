// Damage in the bytes of an HDF5 file is reported with its place.
#include <algorithm>
#include <span>

#include "core/base/little_endian.h"
#include "core/formats/hdf5/hdf5_checksum.h"
#include "core/formats/hdf5/hdf5_files.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

// The finding of this rule about this subject; null if there is none.
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

std::size_t place_of(const Bytes& bytes, std::string_view signature) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t at = text.find(signature);
  REQUIRE(at != std::string_view::npos);
  return at;
}

template <class T>
void put_little(Bytes& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

// kinds.h5 with another stream for a tile of `shuffled`, which is (7, 5) of int32 in tiles of (4,
// 5). The stream is appended to the file and referenced by the tree, whose key is the size, a mask,
// and three offsets.
Bytes with_stream(Bytes bytes, std::uint32_t tile, const Bytes& stream) {
  auto checkpoint = open_bytes(bytes);
  auto item = (*checkpoint)->item((*checkpoint)->chunks(*(*checkpoint)->find("shuffled"))[tile]);
  REQUIRE(item.has_value());
  Bytes address(8);
  put_little(address, 0, static_cast<std::uint64_t>(item->offset));
  auto found = std::search(bytes.begin(), bytes.end(), address.begin(), address.end());
  REQUIRE(found != bytes.end());
  const auto at = static_cast<std::size_t>(found - bytes.begin());
  put_little(bytes, at - 32, static_cast<std::uint32_t>(stream.size()));
  put_little(bytes, at, static_cast<std::uint64_t>(bytes.size()));
  bytes.insert(bytes.end(), stream.begin(), stream.end());
  // The file size in the superblock.
  put_little(bytes, 40, static_cast<std::uint64_t>(bytes.size()));
  return bytes;
}

}  // namespace

TEST_CASE("a shuffled stream of another length than its tile is damage and not other numbers") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  constexpr std::size_t kRow = 20, kTile = 4 * kRow;
  for (std::uint32_t tile : {0u, 1u}) {
    // A stream of the right length is read, also in the tile past the end.
    auto right = open_bytes(with_stream(whole, tile, stored_stream(Bytes(kTile))));
    CHECK(finding_of(findings_at_data(**right), "bad-record", "shuffled") == nullptr);
    auto values = numbers_of<std::int32_t>(**right, "shuffled");
    CHECK(values[tile * 20] == 0);
    for (std::size_t wrong : {kTile + 1, kTile + 4, kTile + kRow - 4}) {
      CAPTURE(wrong);
      auto damaged = open_bytes(with_stream(whole, tile, stored_stream(Bytes(wrong))));
      const auto findings = findings_at_data(**damaged);
      const Finding* finding = finding_of(findings, "bad-record", "shuffled");
      REQUIRE(finding != nullptr);
      CHECK(finding->cause.find("m.h5 at byte") != std::string::npos);
      CHECK_FALSE(read_named(**damaged, "shuffled").has_value());
    }
  }
  // Whole rows too many or too few, also in the tile that ends beyond its dataset.
  for (std::uint32_t tile : {0u, 1u}) {
    for (std::size_t rows : {3u, 5u, 6u, 40u}) {
      auto other = open_bytes(with_stream(whole, tile, stored_stream(Bytes(rows * kRow))));
      CHECK(finding_of(findings_at_data(**other), "bad-record", "shuffled") != nullptr);
    }
  }
}

TEST_CASE(
    "a deflated tile that cannot be inflated is damage at depth data, whatever its elements") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  CHECK(finding_of(findings_at_data(**open_bytes(whole)), "bad-record", "gzip") == nullptr);
  for (const char* fqn : {"gzip", "shuffled"}) {
    auto checkpoint = open_bytes(whole);
    auto item = (*checkpoint)->item((*checkpoint)->chunks(*(*checkpoint)->find(fqn))[0]);
    REQUIRE(item.has_value());
    // The last byte belongs to the checksum of the deflated data.
    Bytes bytes = whole;
    bytes[static_cast<std::size_t>(item->offset + item->length - 1)] ^= std::byte{1};
    auto damaged = open_bytes(std::move(bytes));
    const auto findings = findings_at_data(**damaged);
    const Finding* finding = finding_of(findings, "bad-record", fqn);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    INFO(finding->cause);
    CHECK(finding->cause.find("m.h5 at byte") != std::string::npos);
    CHECK(finding->cause.find("compressed chunk") != std::string::npos);
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

TEST_CASE("the checksum of HDF5 metadata is lookup3, as its author prints it") {
  const std::string text = "Four score and seven years ago";
  CHECK(hdf5_checksum({}) == 0xdeadbeef);
  CHECK(hdf5_checksum(std::as_bytes(std::span(text))) == 0x17770551);
}

TEST_CASE("a byte of the newer metadata that is not what was written is damage, and said where") {
  const Bytes whole = file_bytes("h5py/latest.h5");
  for (const char* signature : {"\x89HDF", "OHDR"}) {
    const std::size_t at = place_of(whole, signature);
    // Starts after the bytes that identify the form, whose damage gives other messages.
    for (std::size_t i = at + 12; i < at + 40; ++i) {
      Bytes bytes = whole;
      bytes[i] ^= std::byte{8};
      auto checkpoint = open_bytes(std::move(bytes));
      INFO(signature << " byte " << i);
      REQUIRE_FALSE(checkpoint.has_value());
      CHECK(checkpoint.error().kind != ErrorKind::kIo);
      CHECK(checkpoint.error().place.offset.has_value());
    }
  }
  // A dataset's own header: all others read.
  auto checkpoint = open_bytes(whole);
  auto item = (*checkpoint)->item((*checkpoint)->chunks(*(*checkpoint)->find("model/3"))[0]);
  Bytes bytes = whole;
  std::size_t named = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); ++i) {
    if (load_little<std::int64_t>(bytes, i) != item->offset) continue;
    bytes[i] ^= std::byte{8};
    ++named;
  }
  REQUIRE(named != 0);
  auto damaged = open_bytes(std::move(bytes));
  REQUIRE(damaged.has_value());
  const Finding* finding = finding_of((*damaged)->opening_findings(), "bad-record", "model/3");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("checksum") != std::string::npos);
  CHECK(finding->evidence.front().first == "offset");
  CHECK(numbers_of<double>(**damaged, "model/2") == std::vector<double>(6, 2.0));
}

TEST_CASE("a byte of the older form at which HDF5 stops or misses a name is reported") {
  struct Flip {
    std::size_t at;
    unsigned bits;
  };
  // In kinds.h5: superblock, header of the root group at 0x60, its tree at 0x88, its heap at 0x2a8
  // with free space at 0x5bf0, its symbols at 0x430. h5py 3.16 with HDF5 1.14 refuses each of these
  // flips.
  constexpr Flip kFlips[] = {{9, 1},         {10, 1},         {12, 1},        {16, 4},
                             {17, 0x80},     {18, 0x10},      {19, 0x80},     {22, 1},
                             {48, 1},        {0x70, 1},       {0x70, 0x10},   {0x71, 1},
                             {0x74, 0x22},   {0x74, 0x20},    {0x88 + 16, 1}, {0x88 + 24, 0x80},
                             {0x2a8 + 4, 1}, {0x2a8 + 16, 1}, {0x430 + 4, 1}, {0x5bf0, 1},
                             {0x5bff, 0x80}, {0x350, 3},      {0x388, 8},     {0x29, 0x40},
                             {0x74, 0x40},   {0x68, 4}};
  const Bytes whole = file_bytes("h5py/kinds.h5");
  auto is_told = [](const Bytes& bytes) {
    auto checkpoint = open_bytes(bytes);
    if (!checkpoint) return true;
    const auto findings = findings_at_data(**checkpoint);
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.rule == "bad-record" && finding.severity == Severity::kError;
    });
  };
  CHECK_FALSE(is_told(whole));
  for (const Flip& flip : kFlips) {
    CAPTURE(flip.at);
    Bytes bytes = whole;
    bytes[flip.at] ^= static_cast<std::byte>(flip.bits);
    CHECK(is_told(bytes));
  }
  // A fill value stored elsewhere is not read.
  auto unread = [](const Bytes& from) {
    std::size_t count = 0;
    for (const Finding& finding : findings_at_data(**open_bytes(from)))
      if (finding.rule == "not-looked-at") count += finding.subjects.size();
    return count;
  };
  Bytes shared = whole;
  shared[0x384] ^= std::byte{2};
  CHECK(unread(shared) > unread(whole));
  // The byte between the versions is not interpreted.
  Bytes bytes = whole;
  bytes[11] ^= std::byte{1};
  CHECK_FALSE(is_told(bytes));
}

TEST_CASE("what libhdf5 refuses of messages that nothing is read of is damage too") {
  const Bytes whole = file_bytes("h5py/latest.h5");
  const std::size_t at = place_of(whole, "OHDR");
  auto number_at = [&](std::size_t place) { return std::to_integer<std::size_t>(whole[place]); };
  const std::size_t flags = number_at(at + 5);
  const std::size_t size_at = at + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
  REQUIRE((flags & 3) == 0);
  const std::size_t first = size_at + 1, end = first + number_at(size_at);
  auto opens_with = [&](std::size_t place, unsigned bits) {
    Bytes bytes = whole;
    bytes[place] ^= static_cast<std::byte>(bits);
    put_little(bytes, end, hdf5_checksum(BytesView(bytes).subspan(at, end - at)));
    return open_bytes(std::move(bytes)).has_value();
  };
  CHECK(opens_with(at + 5, 0));
  for (unsigned unknown : {0x40u, 0x80u}) CHECK_FALSE(opens_with(at + 5, unknown));
  const std::size_t head = flags & 4 ? 6 : 4;
  std::size_t looked_at = 0;
  for (std::size_t message = first; message + head <= end;) {
    const std::size_t type = number_at(message);
    CAPTURE(type);
    CHECK_FALSE(opens_with(message + 3, 2));  // shared
    if (type == kHdf5LinkInfo || type == kHdf5GroupInfo) {
      CHECK_FALSE(opens_with(message + head, 1));         // of another version
      CHECK_FALSE(opens_with(message + head + 1, 0x10));  // with unknown flags
      ++looked_at;
    }
    message += head + number_at(message + 1) + 256 * number_at(message + 2);
  }
  CHECK(looked_at == 2);
}

TEST_CASE("times, counts and infos of attributes are of their versions and lengths") {
  auto is = [](std::uint16_t type, const std::string& body, bool is_old = false) {
    return is_message(type, std::as_bytes(std::span(body)), is_old);
  };
  constexpr std::uint16_t kOldTime = 0x0E, kTime = 0x12, kUses = 0x16;
  CHECK(is(kTime, std::string("\1\0\0\0\1\2\3\4", 8)));
  CHECK_FALSE(is(kTime, std::string("\2\0\0\0\1\2\3\4", 8)));
  CHECK_FALSE(is(kTime, std::string("\1\0\0\0\1\2", 6)));
  CHECK(is(kOldTime, "20260102030405xx"));
  CHECK_FALSE(is(kOldTime, "2026010203040 xx"));
  CHECK_FALSE(is(kOldTime, "20260102030405"));
  CHECK(is(kUses, std::string("\0\2\0\0\0", 5)));
  CHECK_FALSE(is(kUses, std::string("\0\2\0\0\0", 5), /*is_old=*/true));
  CHECK_FALSE(is(kUses, std::string("\1\2\0\0\0", 5)));
  CHECK(is(kHdf5AttributeInfo, std::string(18, '\0')));
  CHECK_FALSE(is(kHdf5AttributeInfo, std::string(17, '\0')));
  CHECK_FALSE(is(kHdf5AttributeInfo, std::string("\1", 1) + std::string(17, '\0')));
  CHECK_FALSE(is(kHdf5AttributeInfo, std::string("\0\4", 2) + std::string(16, '\0')));
  CHECK_FALSE(is(kHdf5AttributeInfo, std::string("\0\3", 2) + std::string(16, '\0')));
  CHECK(is(kHdf5AttributeInfo, std::string("\0\3", 2) + std::string(26, '\0')));
}
