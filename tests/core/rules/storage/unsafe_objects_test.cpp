// BYTES entries whose pickles ask for more than a checkpoint needs: made by hand, opcode by opcode.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/object_pickle.h"
#include "core/make_zip.h"
#include "core/model/builder.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kBefore = 64;  // bytes of the file before the item

std::shared_ptr<const Checkpoint> with_object(const std::string& item) {
  CheckpointBuilder builder;
  std::string file = std::string(kBefore, 'x') + item;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", to_bytes(file)}}));
  FileId id = builder.file("__0_0.distcp");
  builder.add_object({"rng", ItemPlace{id, kBefore, static_cast<std::int64_t>(item.size())}}, {});
  auto checkpoint = builder.finish();
  return checkpoint;
}

std::vector<Finding> found(const std::string& item, Depth depth = Depth::kHeaders) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(*with_object(item), options);
  REQUIRE(report.has_value());
  std::erase_if(report->findings, [](const Finding& f) { return f.rule != "unsafe-pickle"; });
  return report->findings;
}

std::string saved(const std::string& pickle) {
  return make_zip({{"archive/data.pkl", pickle}, {"archive/version", "3\n"}});
}

// os.system('id'), as pickle writes it.
const std::string kSystem(
    "\x80\x02"
    "cposix\nsystem\nX\x02\x00\x00\x00id\x85R.",
    26);

}  // namespace

TEST_CASE("a call that no checkpoint needs is an error in an object too, with file and byte") {
  for (const std::string& item : {kSystem, saved(kSystem)}) {
    CHECK(found(item, Depth::kMetadata).empty());
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      auto findings = found(item, depth);
      REQUIRE(findings.size() == 1);
      CHECK(findings[0].severity == Severity::kError);
      CHECK(findings[0].subjects == std::vector<std::string>{"rng"});
      CHECK(findings[0].cause.find("posix.system") != std::string::npos);
      // The byte of REDUCE, in the file.
      CHECK(number(findings[0], "offset") ==
            static_cast<std::int64_t>(kBefore + item.find("\x85R.") + 1));
    }
  }
}

TEST_CASE("what is asked for decides how bad it is") {
  struct Case {
    const char* pickle;
    std::optional<Severity> severity;
  };
  const Case cases[] = {
      {"c__builtin__\neval\n(S'1'\ntR.", Severity::kError},
      {"csubprocess\nPopen\n(tR.", Severity::kError},
      {"cos\nsystem\n.", Severity::kError},          // imported, not yet called
      {"(S'id'\nios\nsystem\n.", Severity::kError},  // INST
      {"c__builtin__\ngetattr\n(cos\n_wrap_close\nS'x'\ntR.", Severity::kError},
      {"cmy.program\nmake\n(tR.", Severity::kWarning},
      {"cmy.program\nmake\n.", Severity::kInfo},
      {"cmy.program\nConfig\n)\x81.", Severity::kInfo},
      {"c__main__\n_State\n(tR.", Severity::kInfo},
      {"cfunctools\npartial\n(ctorch\nfloat32\ntR.", Severity::kInfo},
      {"ccollections\nOrderedDict\n)R.", std::nullopt},
      {"cargparse\nNamespace\n)\x81}(S'a'\nK\x01ub.", std::nullopt},
      {"cdatetime\ntimedelta\n(K\x01tR.", std::nullopt},
      {"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(tS'b'\ntR.", std::nullopt},
      {"c_io\nBytesIO\n(S'a'\ntR.", std::nullopt},
      {"ctorch._utils\n_rebuild_tensor_v2\n(tR.", std::nullopt},
      {"cmegatron.core.enums\nModelType\n(K\x01tR.", std::nullopt},
      // Members of enumerations, as Python 3.11.0 to 3.11.3 pickle them; what is found is then
      // called or changed.
      {"cbuiltins\ngetattr\n(cmegatron.core.enums\nModelType\nS'retro'\ntR.", std::nullopt},
      {"cbuiltins\ngetattr\n(c__main__\nColour\nS'RED'\ntR.", Severity::kInfo},
      {"cbuiltins\ngetattr\n(c__main__\nColour\nS'RED'\ntR(tR.", Severity::kError},
      {"cbuiltins\ngetattr\n(ctorch\nTensor\nS'add'\ntR}S'a'\nK\x01sb.", Severity::kError},
      {"cbuiltins\ngetattr\n(ctorch\nTensor\nS'add'\ntRS'a'\nK\x01s.", Severity::kError},
      // Of Python's own library what is only made, or only kept.
      {"coperator\nattrgetter\n(S'a'\ntR.", Severity::kInfo},
      {"coperator\nattrgetter\n(S'a'\ntR(cmy.program\nConfig\ntR.", Severity::kError},
      {"coperator\nmethodcaller\n(S'a'\ntR.", Severity::kError},
      {"czoneinfo\nZoneInfo._unpickle\n(S'UTC'\nK\x01tR.", Severity::kInfo},
      {"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'_unpickle'\ntR(S'UTC'\nK\x01tR.",
       Severity::kInfo},
      {"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'__init__'\ntR(S'UTC'\ntR.", Severity::kError},
      {"cbuiltins\ngetattr\n(cmy.program\nConfig\nS'_unpickle'\ntR(tR.", Severity::kError},
      {"cbuiltins\nlen\n.", Severity::kInfo},
      {"cbuiltins\nmap\n(cbuiltins\nlen\n]tR.", Severity::kError},
      {"cbuiltins\nValueError\n(tR.", Severity::kInfo},
      {"cbuiltins\nexec\n.", Severity::kError},
      // torch calls what it is handed there.
      {"ctorch._tensor\n_rebuild_from_type_v2\n(cmy.program\nmake\nctorch\nTensor\n(t}tR.",
       Severity::kWarning},
      {"ctorch._tensor\n_rebuild_from_type_v2\n(coperator\nattrgetter\n(S'a'\ntRctorch\nTensor\n"
       "(t}tR.",
       Severity::kError},
      {"}.", std::nullopt},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pickle);
    auto findings = found(saved(std::string("\x80\x02") + one.pickle));
    if (!one.severity) {
      CHECK(findings.empty());
      continue;
    }
    REQUIRE(!findings.empty());
    Severity worst = Severity::kInfo;
    for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
    CHECK(worst == *one.severity);
  }
}

TEST_CASE("plain values of Python's own library raise nothing, as protocol 2 spells them") {
  for (const char* pickle : {
           "c__builtin__\nxrange\n(K\x01K\x03K\x01tR.",
           "c__builtin__\nEllipsis\n.",
           "c__builtin__\nNotImplemented\n.",
           "carray\narray\n(S'i'\n(K\x01ltR.",
           "carray\n_array_reconstructor\n(carray\narray\nS'i'\nK\x08S'a'\ntR.",
           "ccollections\nChainMap\n)\x81}S'maps'\n(}lsb.",
           "cre\n_compile\n(S'a'\nK tR.",
           "ctime\nstruct_time\n((K\x01t}tR.",
           "ctorch\nper_tensor_affine\n.",
       }) {
    CAPTURE(pickle);
    std::string bytes = std::string("\x80\x02") + pickle;
    CHECK(found(saved(bytes)).empty());
  }
}

TEST_CASE("the pairs of numbers in DeepSpeed's own files raise nothing") {
  const std::string call =
      "\x80\x02"
      "cdeepspeed.utils.tensor_fragment\nfragment_";
  CHECK(found(saved(call + "address\nK\x07K\x03\x86R.")).empty());
  CHECK(found(saved(call + "other\nK\x07K\x03\x86R.")).size() == 1);
}

TEST_CASE("pickles in a row, as torch saved before zip, are looked at one by one") {
  std::string plain("\x80\x02K\x01.", 5), hostile = kSystem;
  CHECK(found(plain + plain + plain + plain + plain + "raw bytes").empty());
  auto findings = found(plain + plain + plain + hostile + plain);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kError);
  CHECK(number(findings[0], "offset") > static_cast<std::int64_t>(kBefore + 3 * plain.size()));
}

TEST_CASE("what is no pickle asks for nothing, and nested lists do not break the reader") {
  CHECK(found("hello world, this is a text").empty());
  CHECK(found("").empty());
  CHECK(found("PK").empty());
  CHECK(found(make_zip({{"archive/other", "x"}})).empty());
  std::string deep = "\x80\x02" + std::string(100'000, ']');
  for (int i = 0; i < 99'999; ++i) deep += 'a';
  for (const Finding& finding : found(saved(deep + ".")))
    CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE("a hostile item cut off or bent anywhere is read without harm") {
  std::string whole = saved(kSystem);
  for (std::size_t length = 0; length < whole.size(); ++length) found(whole.substr(0, length));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      std::string bent = whole;
      bent[at] = static_cast<char>(bent[at] ^ 1 << bit);
      auto checkpoint = with_object(bent);
      auto scanned = scan_object(*checkpoint, 0);
      if (scanned) CHECK(scanned->names.size() <= 256);
    }
  }
}

TEST_CASE("an entry without a checksum whose pickle cannot be read is damaged") {
  auto rules_of = [](const std::string& pickle, bool crc) {
    const std::string item = make_zip({{"archive/data.pkl", pickle, false, ~std::uint64_t{0}, crc},
                                       {"archive/version", "3\n", false, ~std::uint64_t{0}, crc}});
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(*with_object(item), options);
    REQUIRE(report.has_value());
    std::string rules;
    for (const Finding& finding : report->findings)
      if (finding.severity > Severity::kInfo) rules += finding.rule + " ";
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
    CHECK(rules_of(pickle, false) == "bad-record ");
  }
  CHECK(rules_of(good, false) == "");
  CHECK(rules_of(good, true) == "");
}
