#pragma once

#include "sdk/cli/client.hpp"
#include "state/file.hpp"

#include <string>

/// Trees between this process's files and a sandbox, over a connection. What is under way is shown
/// on standard error if that is a terminal. All block.

namespace dsec {

result<tree_report>
copy_in(client& at, wire::Sandbox::Client in, const std::string& from, const std::string& to);

result<tree_report>
copy_out(client& at, wire::Sandbox::Client in, const std::string& from, const std::string& to);

/// Standard input is the archive.
result<tree_report> unpack_from_input(client& at, wire::Sandbox::Client in, const std::string& to);

/// Standard output is.
result<tree_report> pack_to_output(client& at, wire::Sandbox::Client in, const std::string& from);

} // namespace dsec
