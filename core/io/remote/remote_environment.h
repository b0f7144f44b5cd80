// Reads settings of servers and keys from environment variables and small files in the home folder.
#pragma once

#include <map>
#include <string>

namespace shw {

std::string environment_text(const char* variable);  // empty if unset
std::string home_folder();
// Seconds without a received byte after which a server counts as silent:
// SHARDWRIGHT_REMOTE_TIMEOUT, or the usual ones.
int stall_seconds(int usual);
// The first line without surrounding spaces; empty if the file cannot be read.
std::string first_line_of(const std::string& path);
// One section of an INI file such as ~/.aws/credentials: lines "key = value" below "[section]".
std::map<std::string, std::string> ini_section(const std::string& path, const std::string& section);

}  // namespace shw
