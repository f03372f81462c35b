#pragma once

namespace dsec {

/// Standard input as a pipe, read by a thread of its own: a file cannot be waited for, and a
/// terminal must not be made non-blocking for everybody who shares it. Returns its reading end, or
/// -1.
int input_as_pipe();

} // namespace dsec
