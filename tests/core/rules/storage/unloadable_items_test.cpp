// Items that torch.save did not write, with matching checksums if any: if torch.load fails on one,
// a finding names the entry, the file and the reason. Each was tried with torch 2.6.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/make_zip.h"
#include "core/model/builder.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kFile = "__0_0.distcp";

Finding worst_of(const Checkpoint& checkpoint, Depth depth) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::erase_if(report->findings, [](const Finding& f) { return f.severity < Severity::kError; });
  CHECK(report->findings.size() <= 1);
  return report->findings.empty() ? Finding{} : report->findings.front();
}

CheckpointBuilder builder_of(const std::string& item) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{kFile, to_bytes("xx" + item)}}));
  return builder;
}

Finding of_object(const std::string& item, Depth depth) {
  CheckpointBuilder builder = builder_of(item);
  builder.add_object(
      {"rng", ItemPlace{builder.file(kFile), 2, static_cast<std::int64_t>(item.size())}}, {});
  return worst_of(*builder.finish(), depth);
}

Finding of_tensor(const std::string& item, Depth depth) {
  CheckpointBuilder builder = builder_of(item);
  builder.add_tensor("w", Dtype::kFloat32, Extents{2, 3});
  builder.add_chunk(Extents{0, 0}, Extents{2, 3},
                    {builder.file(kFile), 2, static_cast<std::int64_t>(item.size())});
  return worst_of(*builder.finish(), depth);
}

void check_told(const Finding& finding, const std::string& fqn, const std::string& why) {
  CAPTURE(finding.cause);
  CHECK(finding.rule == "bad-record");
  CHECK(std::find(finding.subjects.begin(), finding.subjects.end(), fqn) != finding.subjects.end());
  CHECK(finding.cause.find(why) != std::string::npos);
  bool names_file = finding.cause.find(kFile) != std::string::npos;
  for (const auto& [key, value] : finding.evidence)
    names_file = names_file || (key == "file" && value == EvidenceValue{kFile});
  CHECK(names_file);
}

const std::string kStep = "\x80\x02}(" + pickled_text("step") + "K\x05u.";
const ZipRecord kVersion{"archive/version", "3\n"};

std::string tensor_pickle() {
  return as_pickle(tensor_call({}));
}
std::vector<ZipRecord> tensor_records(const std::string& pickle) {
  return {{"archive/data.pkl", pickle}, {"archive/data/0", std::string(24, '\0')}, kVersion};
}

}  // namespace

TEST_CASE(
    "an entry that torch cannot load is reported with its file and why, whatever its checksums") {
  struct Case {
    std::string item, why;
  };
  const Case cases[] = {
      {make_zip({{"archive/other", "x"}, kVersion}), "no record data.pkl"},
      {make_zip({{"archive/data.pkl", kStep.substr(0, kStep.size() - 1)}, kVersion}), "end mark"},
      {make_zip({{"archive/data.pkl", kStep}}), "no record \"version\""},
      {make_zip({{"archive/data.pkl", kStep}, {"archive/version", "99\n"}}), "record version"},
      {make_zip({{"archive/data.pkl", tensor_pickle()}, kVersion}), "no record data/0"},
      {make_zip({{"archive/data.pkl", tensor_pickle()}, {"archive/data/0", "four"}, kVersion}),
       "holds 4 bytes"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.why);
    for (Depth depth : {Depth::kHeaders, Depth::kData})
      check_told(of_object(one.item, depth), "rng", one.why);
  }
  for (const std::string& item :
       {std::string(1000, '\0'), std::string("what rng says"), std::string("P")}) {
    check_told(of_object(item, Depth::kHeaders), "rng", "neither an archive");
    check_told(of_object(item, Depth::kData), "rng", "archive");
  }
  // A custom planner may write bare pickles.
  CHECK(of_object(kStep, Depth::kHeaders).rule.empty());
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    CHECK(of_object(make_zip({{"archive/data.pkl", kStep}, kVersion}), depth).rule.empty());
    CHECK(of_object(make_zip(tensor_records(tensor_pickle())), depth).rule.empty());
  }
}

TEST_CASE("an entry that asks for a class of a program hides no damage of its own") {
  const std::string pickle = "\x80\x02(cmy.program\nConfig\n)\x81" + tensor_call({}) + "t.";
  check_told(of_object(make_zip({{"archive/data.pkl", pickle}, kVersion}), Depth::kData), "rng",
             "no record data/0");
}

TEST_CASE("a tensor whose pickle torch's own reader refuses is damaged") {
  const std::string good = tensor_pickle();
  CHECK(of_tensor(make_zip(tensor_records(good)), Depth::kData).rule.empty());
  std::string framed = good, memoized = good, shortened = good, doubled = good;
  framed.insert(2, "\x95" + little(good.size() - 2, 8));
  memoized.insert(memoized.size() - 1, "\x94");
  doubled.insert(doubled.size() - 1, "20");  // DUP POP
  const std::string cpu = pickled_text("cpu");
  shortened.replace(shortened.find(cpu), cpu.size(),
                    "\x8c\x03"
                    "cpu");
  struct Case {
    std::string pickle, opcode;
  };
  for (const Case& one : {Case{framed, "FRAME"}, Case{memoized, "MEMOIZE"}, Case{doubled, "DUP"},
                          Case{shortened, "SHORT_BINUNICODE"}}) {
    CAPTURE(one.opcode);
    for (Depth depth : {Depth::kHeaders, Depth::kData})
      check_told(of_tensor(make_zip(tensor_records(one.pickle)), depth), "w",
                 "the opcode " + one.opcode);
    // Entries are loaded by Python's own unpickler.
    CHECK(of_object(make_zip(tensor_records(one.pickle)), Depth::kData).rule.empty());
  }
}

TEST_CASE("a tensor in an archive that torch.load does not open is damaged") {
  const std::string pickle = tensor_pickle();
  auto with = [&](const ZipRecord& more) {
    std::vector<ZipRecord> records = tensor_records(pickle);
    records.push_back(more);
    return make_zip(records);
  };
  auto versioned = [&](const std::string& version) {
    std::vector<ZipRecord> records = tensor_records(pickle);
    records.back().bytes = version;
    return make_zip(records);
  };
  struct Case {
    std::string item, why;
  };
  const Case cases[] = {
      {versioned("99\n"), "record version is not a version"},
      {versioned("abc"), "record version is not a version"},
      {with({"other/x", "x"}), "outside of the folder archive/"},
      {with({"x", "x"}), "outside of the folder archive/"},
      {make_zip({{"data.pkl", pickle}, {"data/0", std::string(24, '\0')}, {"version", "3\n"}}),
       "in no folder"},
      {with({"archive/constants.pkl", "x"}), "constants.pkl"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.why);
    for (Depth depth : {Depth::kHeaders, Depth::kData})
      check_told(of_tensor(one.item, depth), "w", one.why);
  }
  for (const char* version : {"10\n", " 3\n", "+3", "3abc"})
    CHECK(of_tensor(versioned(version), Depth::kData).rule.empty());
  CHECK(of_tensor(with({"archive/sub/constants.pkl", "x"}), Depth::kData).rule.empty());
}
