#pragma once

#include <string>
#include <string_view>

namespace shw {

// Decodes the entities of XML in a text or attribute; unknown ones are left out.
std::string without_xml_entities(std::string_view text);

}  // namespace shw
