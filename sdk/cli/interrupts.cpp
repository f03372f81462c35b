#include "sdk/cli/interrupts.hpp"

#include <kj/async-unix.h>

#include <csignal>
#include <unistd.h>
#include <utility>

namespace dsec {

namespace {

constexpr int listened_to[] = {SIGINT, SIGTERM};

/// The signal does again what it does to any program.
void let_through(int number) {
  std::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

} // namespace

interrupts::interrupts(client& at) : at_{at}, listening_{nullptr} {
  for (int number : listened_to)
    kj::UnixEventPort::captureSignal(number);
  auto first = listen(listened_to[0]).eagerlyEvaluate([](kj::Exception&&) {});
  auto second = listen(listened_to[1]).eagerlyEvaluate([](kj::Exception&&) {});
  listening_ = first.attach(kj::mv(second));
}

interrupts::~interrupts() {
  listening_ = nullptr;
  for (int number : listened_to)
    let_through(number);
}

void interrupts::tell(std::function<void(int, unsigned)> hear) {
  hear_ = std::move(hear);
  for (unsigned i = 0; hear_ && i < heard_.size(); ++i)
    hear_(heard_[i], i + 1);
}

kj::Promise<void> interrupts::listen(int number) {
  return at_.io.unixEventPort.onSignal(number).then([this, number](siginfo_t) {
    heard_.push_back(number);
    if (hear_)
      hear_(number, static_cast<unsigned>(heard_.size()));
    return listen(number);
  });
}

void end_by_signal(int number) {
  let_through(number);
  ::raise(number);
  ::_exit(128 + number);
}

} // namespace dsec
