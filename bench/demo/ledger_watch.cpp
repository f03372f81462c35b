#include "bench/demo/ledger_watch.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

namespace dsec::demo {

ledger_watch::ledger_watch(std::filesystem::path file) : file_{std::move(file)}, changes_{file_} {
  read_on();
}

bool ledger_watch::wait(child& trainer, bench::deadline until) {
  for (;;) {
    bool last = trainer.ended() || std::chrono::steady_clock::now() >= until;
    if (read_on())
      return true;
    if (last)
      return false;
    changes_.wait(until, trainer.end_descriptor());
  }
}

bool ledger_watch::read_on() {
  std::ifstream in{file_, std::ios::binary};
  in.seekg(read_);
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  text.resize(text.rfind('\n') + 1);
  read_ += static_cast<std::streamoff>(text.size());
  for (const auto& event : parse_ledger(text)) {
    auto kind = event.value("event", "");
    preempted_ = preempted_ || kind == "preempted";
    if (kind != "acked")
      continue;
    bool added = acked_.insert(key_of(event)).second;
    acked_since_preempted_ += added && preempted_ ? 1 : 0;
  }
  return !text.empty();
}

} // namespace dsec::demo
