// Several files of torch.save that form one model by an index.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/torch_file/torch_file_support.h"
#include "core/model/evidence.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

std::string part(const std::string& fqn, char fill) {
  return state_dict_file(pickled_dict({{fqn, tensor_call({})}}),
                         {{"m/data/0", std::string(24, fill)}});
}

std::string index_text(const std::string& entries, int total = 48) {
  return R"({"metadata":{"total_size":)" + std::to_string(total) + R"(},"weight_map":{)" + entries +
         "}}";
}

const std::string kFirst = "pytorch_model-00001-of-00002.bin";
const std::string kSecond = "pytorch_model-00002-of-00002.bin";
const std::string kIndex = "pytorch_model.bin.index.json";

Files two_files(const std::string& index) {
  return {{kFirst, to_bytes(part("a", '\1'))},
          {kSecond, to_bytes(part("b", '\2'))},
          {"training_args.bin", to_bytes(part("none of it", '\3'))},
          {kIndex, to_bytes(index)}};
}
std::string right_index() {
  return index_text("\"a\":\"" + kFirst + "\",\"b\":\"" + kSecond + "\"");
}

std::shared_ptr<const Checkpoint> opened(const Files& files) {
  auto checkpoint = open_checkpoint(memory_directory("hf", files));
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

std::vector<Finding> findings_of(const Checkpoint& checkpoint) {
  auto report = check(checkpoint, {});
  REQUIRE(report.has_value());
  return report->findings;
}

bool says(const std::vector<Finding>& findings, Severity severity, const std::string& words) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == severity && finding.cause.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("the files that an index names are one checkpoint, and what is next to is none of it") {
  auto checkpoint = opened(two_files(right_index()));
  CHECK(checkpoint->format().name == "torch");
  CHECK(names_of(*checkpoint) == "a b |");
  auto values = values_by_name(*checkpoint);
  CHECK(values["a"] == Bytes(24, std::byte{1}));
  CHECK(values["b"] == Bytes(24, std::byte{2}));
  CHECK(findings_of(*checkpoint).empty());
}

TEST_CASE("what an index of torch.save files promises and is not there is reported") {
  Files gone = two_files(right_index());
  gone.erase(gone.begin() + 1);
  auto one = opened(gone);
  CHECK(names_of(*one) == "a |");
  auto found = findings_of(*one);
  CHECK(std::any_of(found.begin(), found.end(),
                    [](const Finding& finding) { return finding.severity == Severity::kError; }));
  const std::string a = "\"a\":\"" + kFirst + "\",", b = "\"b\":\"" + kSecond + "\"";
  auto with = [&](const std::string& entries, int total = 48) {
    return findings_of(*opened(two_files(index_text(entries, total))));
  };
  CHECK(says(with(a + b + ",\"c\":\"" + kSecond + "\""), Severity::kError,
             "The index places 1 tensor in files that do not contain them"));
  CHECK(says(with(a + "\"b\":\"" + kFirst + "\""), Severity::kError,
             "The index says that b is in " + kFirst + ", but it is in " + kSecond));
  const auto unlisted = with("\"b\":\"" + kSecond + "\"");
  CHECK(says(unlisted, Severity::kWarning, "The index does not list"));
  // A conversion writes all of them under an index of its own.
  CHECK(std::any_of(unlisted.begin(), unlisted.end(), [](const Finding& finding) {
    return find_evidence<std::string>(finding, "convert_to") != nullptr;
  }));
  CHECK(says(with(a + b, 50), Severity::kInfo, "metadata.total_size is 50"));
}

TEST_CASE("a file of several that cannot be read is a finding, and the others are there") {
  Files files = two_files(right_index());
  files[1].second = to_bytes("PK and nothing");
  auto checkpoint = opened(files);
  CHECK(names_of(*checkpoint) == "a |");
  CHECK(says(findings_of(*checkpoint), Severity::kError, kSecond));
  files[0].second = files[1].second;
  CHECK_FALSE(open_checkpoint(memory_directory("hf", files)).has_value());
}

TEST_CASE("a tensor that is in two of the files is reported") {
  Files files = two_files(right_index());
  files[1].second =
      to_bytes(state_dict_file(pickled_dict({{"b", tensor_call({})}, {"a", tensor_call({})}}),
                               {{"m/data/0", std::string(24, '\2')}}));
  auto checkpoint = opened(files);
  CHECK(names_of(*checkpoint) == "a b |");
  CHECK(says(findings_of(*checkpoint), Severity::kError, "in an earlier file too"));
}

TEST_CASE("parts without an index are one model where their numbers are complete") {
  Files files = two_files("");
  files.pop_back();
  auto checkpoint = opened(files);
  CHECK(names_of(*checkpoint) == "a b |");
  CHECK(values_by_name(*checkpoint)["b"] == Bytes(24, std::byte{2}));
  CHECK(says(findings_of(*checkpoint), Severity::kWarning, "The index " + kIndex + " is missing"));
  // An unreadable file is damage of the whole.
  Files damaged = files;
  damaged[1].second = to_bytes("PK and nothing");
  CHECK(says(findings_of(*opened(damaged)), Severity::kError, kSecond));
  // A tensor in two files is reported.
  Files twice = files;
  twice[1].second = twice[0].second;
  CHECK(says(findings_of(*opened(twice)), Severity::kError, "in an earlier file too"));
}

TEST_CASE("of parts without an index those that are gone are named") {
  for (std::size_t gone : {0, 1}) {
    Files files = two_files("");
    files.pop_back();
    const std::string name = files[gone].first;
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(gone));
    auto refused = open_checkpoint(memory_directory("hf", files));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().place.file == name);
    CHECK(refused.error().message.find("of the 2 parts") != std::string::npos);
    CHECK(refused.error().advice.find("Download the missing parts") != std::string::npos);
  }
}

TEST_CASE("an index that names keys of an optimizer means all that is below them") {
  const std::string state = pickled_dict({{"exp_avg", tensor_call({})}, {"lr", "K\1"}});
  auto with = [&](const std::string& key) {
    return opened({{"pytorch_optim-00001.bin",
                    to_bytes(state_dict_file("}(" + std::string("K\0", 2) + state + "u",
                                             {{"m/data/0", std::string(24, '\1')}}))},
                   {"pytorch_optim.bin.index.json",
                    to_bytes(index_text("\"" + key + "\":\"pytorch_optim-00001.bin\"", 24))}});
  };
  auto named = with("0");
  CHECK(names_of(*named) == "0.exp_avg | 0.lr");
  CHECK(findings_of(*named).empty());
  CHECK(says(findings_of(*with("1")), Severity::kError, "places 1 tensor in files that do not"));
}

TEST_CASE("an index that cannot be used is reported, and the parts next to it are read") {
  for (const char* broken : {"", "{\"weight_map\":", "[]", "{\"weight_map\":{}}"}) {
    CAPTURE(broken);
    auto checkpoint = opened(two_files(broken));
    CHECK(names_of(*checkpoint) == "a b |");
    CHECK(says(findings_of(*checkpoint), Severity::kError, "The index is not a JSON object"));
  }
  Files gone = two_files("");
  gone.erase(gone.begin());
  auto rest = opened(gone);
  CHECK(names_of(*rest) == "b |");
  auto found = findings_of(*rest);
  CHECK(says(found, Severity::kError, "The index is not a JSON object"));
  CHECK(std::any_of(found.begin(), found.end(), [](const Finding& finding) {
    return finding.rule == "missing-file" && finding.subjects[0] == kFirst;
  }));
}

TEST_CASE("the file of groups that an optimizer's index names is missed where it is gone") {
  const std::string index = R"({"metadata":{"param_groups":"pytorch_optim_group.bin",)"
                            R"("total_size":48},"weight_map":{"a":")" +
                            kFirst + R"(","b":")" + kSecond + "\"}}";
  Files files = two_files(index);
  CHECK(says(findings_of(*opened(files)), Severity::kError,
             "pytorch_optim_group.bin is missing: " + kIndex));
  files.emplace_back("pytorch_optim_group.bin", to_bytes(part("0", '\1')));
  CHECK(findings_of(*opened(files)).empty());
}

TEST_CASE("a number that is missing from a row of files without an index is told") {
  const auto row = [](const std::vector<std::string>& names) {
    Files files;
    for (const std::string& name : names)
      files.emplace_back(
          name, to_bytes(part(std::string(1, static_cast<char>('a' + files.size())), '\1')));
    return findings_of(*opened(files));
  };
  const auto told = [](const std::vector<Finding>& findings) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.rule == "missing-file"; });
  };
  const auto gone = row({"hf_model_0001_0.pt", "hf_model_0002_0.pt", "hf_model_0004_0.pt"});
  CHECK(says(gone, Severity::kWarning, "hf_model_0003_0.pt is missing"));
  CHECK_FALSE(told(row({"hf_model_0001_0.pt", "hf_model_0002_0.pt"})));
  CHECK_FALSE(told(row({"part_00.pt", "part_01.pt", "part_02.pt"})));
  // Not padded, of several words, in two numbers, or with more gone than there: no row of parts.
  CHECK_FALSE(told(row({"layer_1.pt", "layer_2.pt", "layer_4.pt"})));
  CHECK_FALSE(told(row({"encoder_01.pt", "decoder_03.pt"})));
  CHECK_FALSE(told(row({"a_01_02.pt", "a_03_04.pt"})));
  CHECK_FALSE(told(row({"s_0001.pt", "s_0100.pt"})));
}
