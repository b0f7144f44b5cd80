// A model that OpenVINO 2026.4 saved (tests/data/openvino), and XML with wrong parts.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/weight_list/xml_tags.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kOpenvinoData = std::string(SHW_TEST_DATA) + "/openvino/";

OpenedCheckpoint open_openvino_parts(const std::string& xml, const std::string& elements) {
  return open_checkpoint(
      memory_directory("m", {{"model.xml", to_bytes(xml)}, {"model.bin", to_bytes(elements)}}));
}

std::string one_constant(const std::string& data) {
  return R"(<?xml version="1.0"?><net name="n" version="11"><layers>)"
         R"(<layer id="0" name="w" type="Const" version="opset1">)" +
         data + "</layer></layers></net>";
}

const std::string kSoundData = R"(<data element_type="f32" shape="1, 2" offset="4" size="8"/>)";

// The names of the tags up to the end, or the error.
std::string tags_of(const std::string& xml) {
  XmlTags tags(xml, "a.xml");
  std::string names;
  for (;;) {
    auto tag = tags.next();
    if (!tag) return tag.error().message;
    if (!*tag) return names;
    names += std::string((*tag)->begins ? "" : "/") + std::string((*tag)->name) + " ";
  }
}

}  // namespace

TEST_CASE("openvino: constants are read by the names of their layers") {
  auto opened = open_checkpoint(kOpenvinoData + "ckpt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->format().name == "openvino");
  auto truth = read_truth(kOpenvinoData + "truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK((*opened)->tensor_count() == truth->size());
  check_elements(**opened, *truth);
  CHECK(findings_above_info(**opened).empty());
  // Of 4 bits, two to a byte.
  REQUIRE((*opened)->opening_findings().size() == 1);
  const Finding& unread = (*opened)->opening_findings()[0];
  CHECK(unread.subjects == std::vector<std::string>{"openvino_model.bin"});
  CHECK(unread.cause.starts_with("four in openvino_model.bin is not read"));
  auto by_name = open_checkpoint(kOpenvinoData + "ckpt/openvino_model.xml");
  REQUIRE(by_name.has_value());
  CHECK((*by_name)->tensor_count() == truth->size());
}

TEST_CASE("openvino: a model opens by the name of its layers, whatever is next to it") {
  const std::string folder = (std::filesystem::temp_directory_path() / "shw_openvino").string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string inner = R"(<data element_type="f32" shape="1, 2" offset="0" size="8"/>)";
  for (const std::string stem : {"resnet50", "openvino_encoder_model", "openvino_tokenizer"}) {
    std::string xml = one_constant(inner);
    xml.replace(xml.find("name=\"w\""), 8, "name=\"" + stem + "\"");
    std::ofstream(folder + "/" + stem + ".xml") << xml;
    std::ofstream(folder + "/" + stem + ".bin") << std::string(8, '\1');
  }
  for (const std::string stem : {"resnet50", "openvino_encoder_model", "openvino_tokenizer"}) {
    CAPTURE(stem);
    auto opened = open_checkpoint(folder + "/" + stem + ".xml");
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->find(stem).has_value());
    CHECK(findings_above_info(**opened).empty());
  }
  auto several = open_checkpoint(folder);
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().message.find("several OpenVINO models") != std::string::npos);
  std::filesystem::remove(folder + "/resnet50.bin");
  auto without = open_checkpoint(folder + "/resnet50.xml");
  REQUIRE(without.has_value());
  CHECK_FALSE(findings_above_info(**without).empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("openvino: a constant in a loop has the loop's name in front") {
  std::string xml = one_constant(kSoundData);
  const std::string before = R"(<layer id="9" name="loop" type="Loop"><body><layers>)";
  xml.insert(xml.find("<layer id"), before);
  xml.insert(xml.find("</layers></net>"), "</layers></body></layer>");
  auto opened = open_openvino_parts(xml, std::string(12, '\1'));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->find("loop/w").has_value());
}

TEST_CASE("openvino: a constant that its place cannot hold is reported") {
  for (const auto& [data, elements] : std::vector<std::pair<std::string, std::size_t>>{
           {kSoundData, 11},
           {R"(<data element_type="f32" shape="1, 2" offset="4" size="9"/>)", 16},
           {R"(<data element_type="f32" shape="4611686018427387904, 4" offset="0" size="0"/>)", 16},
           {R"(<data element_type="f32" shape="2" offset="4611686018427387904" size="8"/>)", 16}}) {
    CAPTURE(data);
    auto opened = open_openvino_parts(one_constant(data), std::string(elements, '\1'));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK_FALSE(findings_above_info(**opened).empty());
  }
  auto gone =
      open_checkpoint(memory_directory("m", {{"model.xml", to_bytes(one_constant(kSoundData))}}));
  REQUIRE(gone.has_value());
  CHECK_FALSE(findings_above_info(**gone).empty());
}

TEST_CASE("openvino: a constant without a shape or place is an error") {
  for (const std::string data :
       {R"(<data element_type="f32" shape="1,,2" offset="4" size="8"/>)",
        R"(<data element_type="f32" shape="-1" offset="4" size="8"/>)",
        R"(<data element_type="f32" shape="1 2" offset="4" size="8"/>)",
        R"(<data element_type="f32" shape="2" offset="-4" size="8"/>)",
        R"(<data element_type="f32" shape="2" offset="99999999999999999999" size="8"/>)",
        R"(<data element_type="f32" shape="2" offset="4"/>)"}) {
    CAPTURE(data);
    auto opened = open_openvino_parts(one_constant(data), std::string(16, '\1'));
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kDamaged);
  }
  std::string older = one_constant(kSoundData);
  older.replace(older.find("\"11\""), 4, "\"7\"");
  auto opened = open_openvino_parts(older, std::string(16, '\1'));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("version 7") != std::string::npos);
}

TEST_CASE("openvino: XML cut at any byte is an error, and a changed byte does no harm") {
  const std::string xml = one_constant(kSoundData);
  for (std::size_t at = 64; at < xml.size(); ++at) {
    CAPTURE(at);
    CHECK_FALSE(open_openvino_parts(xml.substr(0, at), std::string(12, '\1')).has_value());
    std::string changed = xml;
    changed[at] = static_cast<char>(changed[at] ^ 5);
    auto opened = open_openvino_parts(changed, std::string(12, '\1'));
    if (!opened) continue;
    for (TensorId tensor : (*opened)->tensors()) (void)read_tensor(**opened, tensor);
  }
}

TEST_CASE("xml tags: the grammar is strict, and depth has a limit") {
  CHECK(tags_of("<?xml?><!-- <x> --><a b='1' c=\"2\">text<d/><![CDATA[<e>]]></a>") == "a d /a ");
  for (const std::string xml :
       {"<a>", "</a>", "<a></b>", "<a b>", "<a b=1/>", "<a b='1/>", "< a/>", "<a b='1' b='2'/>",
        "<a b='<'/>", "<!DOCTYPE x><a/>", "<a/", "<!-- <a/>"}) {
    CAPTURE(xml);
    CHECK(tags_of(xml).find("is not XML") == 0);
  }
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "<a>";
  CHECK(tags_of(deep).find("nested too deep") != std::string::npos);
  const std::string escaped = "<a b='&lt;&amp;&#65;'/>";
  XmlTags tags(escaped, "a.xml");
  CHECK(*tags.next().value()->attribute("b") == "<&A");
}
