#pragma once

#include <string>
#include <vector>

namespace dsec {

/// The words of a command line as CLI11 is to have them: it takes a positional word in brackets for
/// a list, which would make two words of `echo [a,b]`. What follows `exec` or `run` is marked where
/// it could be mistaken; `as_typed` takes the mark off again.
std::vector<std::string> marked_words(int count, char** words);

/// A word of a command as it was typed, from what `marked_words` made of it.
std::string as_typed(std::string word);

} // namespace dsec
