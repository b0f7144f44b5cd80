#include "core/formats/pickle/plain_pickle.h"

#include "core/formats/dcp/dcp_support.h"
#include "core/make_zip.h"

using namespace shw;
using namespace shw::test;

namespace {

std::optional<std::string> plain(std::string_view opcodes, std::size_t budget = 1 << 20) {
  Bytes bytes = bytes_of("\x80\x02" + std::string(opcodes) + ".");
  auto tree = decode_pickle(bytes, "p");
  if (!tree) FAIL(tree.error().message);
  return plain_pickle(*tree, tree->root(), budget);
}

}  // namespace

TEST_CASE("plain values are written back, and read and written again they are the same") {
  const std::string cases[] = {"N",
                               "\x88",
                               std::string("K\x00", 2),
                               "J\xFE\xFF\xFF\xFF",
                               "](K\x01K\x02"
                               "e",
                               ")",
                               "}",
                               std::string("G\x3F\xF0\x00\x00\x00\x00\x00\x00", 9),
                               std::string("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", 11),
                               std::string("X\x02\x00\x00\x00\xC3\xA9", 7),
                               std::string("C\x02\x00\xFF", 4),
                               "ctorch\nSize\n(K\x01K\x02t\x85R",
                               "ctorch\nbfloat16\n",
                               std::string("}(X\x01\x00\x00\x00"
                                           "a}(K\x01(K\x02NtuX\x01\x00\x00\x00"
                                           "b](\x89"
                                           "eu",
                                           27)};
  for (const std::string& opcodes : cases) {
    CAPTURE(opcodes);
    auto once = plain(opcodes);
    REQUIRE(once.has_value());
    auto twice = plain(*once);
    REQUIRE(twice.has_value());
    CHECK(*twice == *once);
  }
}

TEST_CASE("bytes are written as protocol 2 has them and read in either form") {
  auto encoded = [](std::string_view utf8, std::string_view how) {
    return "c_codecs\nencode\n(" + pickled_text(utf8) + pickled_text(how) + "tR";
  };
  auto coded = plain(std::string("C\x02") + "A\xFF");
  CHECK(coded == encoded("A\xC3\xBF", "latin1"));
  CHECK(plain(*coded) == coded);
  CHECK(plain("c__builtin__\nbytes\n)R") == encoded("", "latin1"));
  CHECK_FALSE(plain(encoded("\xC4\x80", "latin1")).has_value());
  CHECK_FALSE(plain(encoded("a", "utf8")).has_value());
}

TEST_CASE("what is not data, or is not small, is not written back") {
  for (const char* opcodes : {"cmegatron.core.x\nThing\n)\x81", "cposix\nsystem\n",
                              "cposix\nsystem\n(S'id'\ntR", "ctorch\nSize\n(S'x'\nt\x85R",
                              "ctorch\nSize\n)R", "ctorch\nload\n", "ccollections\nOrderedDict\n)R",
                              "](cbuiltins\nset\n](e\x85R"
                              "e"}) {
    CAPTURE(opcodes);
    CHECK_FALSE(plain(opcodes).has_value());
  }
  // Text that Python would refuse.
  CHECK_FALSE(plain("U\x02\xC3(").has_value());
  CHECK_FALSE(plain("U\x03\xED\xA0\x80").has_value());
  CHECK_FALSE(plain("U\x01\xFF").has_value());
  // A list that contains itself, a too deep list, and a list that doubles thirty times.
  CHECK_FALSE(plain(std::string("]q\x00h\x00"
                                "a",
                                6))
                  .has_value());
  std::string deep(150, ']');
  deep.append(149, 'a');
  CHECK_FALSE(plain(deep).has_value());
  std::string laughs("]q\x00", 3);
  for (char i = 0; i < 30; ++i) {
    laughs += "](";
    for (int k = 0; k < 2; ++k) laughs += std::string("h") + i;
    laughs += std::string("eq") + static_cast<char>(i + 1);
  }
  CHECK_FALSE(plain(laughs).has_value());
}

TEST_CASE("attributes that are plain data are read, written and read again as they are") {
  DcpMetadata metadata;
  metadata.tensors.push_back(
      {"w", Dtype::kFloat32, false, {2}, {{{0}, {2}, {"__0_0.distcp", 0, 8, {}}}}, {}});
  metadata.plain_attributes = {{"mcore_data", *plain("}(K\x01](K\x02"
                                                     "eu")},
                               {"note", *plain("N")}};
  MemorySink sink;
  REQUIRE(write_dcp_metadata(metadata, sink));
  for (bool shortcuts : {true, false}) {
    auto opened = open_bytes(sink.bytes, shortcuts);
    REQUIRE(opened);
    const Provenance& seen = (*opened)->provenance();
    CHECK(seen.plain_attributes == metadata.plain_attributes);
    CHECK(seen.extra_attributes == std::vector<std::string>{"mcore_data", "note"});
    CHECK((*opened)->opening_findings().empty());
  }
}
