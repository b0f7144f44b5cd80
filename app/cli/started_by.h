// What a program that starts this one says in the environment. Both variables are removed, so that
// programs that this one starts do not see them.
//
//   SHARDWRIGHT_PARENT=PID   stop when the process PID ends, if it has started this one
//   SHARDWRIGHT_URLS=...     one URL per line, with the password or query that arguments leave out;
//                            every user of the machine can read arguments
#pragma once

namespace shw::cli {

void terminate_with_parent_process();
void remember_secrets_of_urls();

}  // namespace shw::cli
