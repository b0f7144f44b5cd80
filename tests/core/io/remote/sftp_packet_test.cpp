#include "core/io/remote/sftp_packet.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

BytesView view_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

TEST_CASE("SFTP packets: numbers and texts are read as they are written") {
  SftpWriter writer;
  writer.number32(7).text("a/b").number64(UINT64_MAX - 1).text("");
  SftpReader reader(view_of(writer.bytes()));
  CHECK(reader.number32() == 7);
  CHECK(reader.text() == "a/b");
  CHECK(reader.number64() == UINT64_MAX - 1);
  CHECK(reader.text().empty());
  CHECK(reader.is_good());
  CHECK(reader.number32() == 0);
  CHECK(!reader.is_good());
}

TEST_CASE("SFTP packets: a length beyond the packet reads nothing") {
  SftpWriter writer;
  writer.number32(UINT32_MAX).number32(1);
  SftpReader reader(view_of(writer.bytes()));
  CHECK(reader.block().empty());
  CHECK(!reader.is_good());
  CHECK(reader.number32() == 0);
}

TEST_CASE("SFTP packets: attributes say what the server sends and no more") {
  SftpWriter writer;
  writer.number32(1 | 2 | 4 | 8 | 0x80000000U).number64(4096).number32(1000).number32(1000);
  writer.number32(0100644).number32(5).number32(6).number32(1).text("x@y").text("z");
  SftpReader reader(view_of(writer.bytes()));
  SftpAttributes attributes = read_attributes(reader);
  CHECK(reader.is_good());
  CHECK(attributes.size == 4096);
  CHECK(attributes.modified == 6);
  CHECK(attributes.is_file());
  CHECK(!attributes.is_folder());
  // A packet of 8 bytes that announces four thousand million extensions is refused at once.
  SftpWriter endless;
  endless.number32(0x80000000U).number32(UINT32_MAX);
  SftpReader cut(view_of(endless.bytes()));
  read_attributes(cut);
  CHECK(!cut.is_good());
}
