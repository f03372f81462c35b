#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>

namespace dsec {

/// Adds `image build-base|import|ls|rm` to `parent`. They read `data_dir` when they run; its layers
/// are in `data_dir`/store. A digest goes to standard output and nothing else does (but the list of
/// `ls`); progress and errors go to standard error, and `exit_code` becomes 0, or 125 on failure.
void add_image_commands(CLI::App& parent, std::filesystem::path& data_dir, int& exit_code);

} // namespace dsec
