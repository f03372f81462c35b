#pragma once

#include "backends/init/command.hpp"
#include "backends/init/scroll_back.hpp"
#include "backends/init/terminal.hpp"
#include "schemas/init.capnp.h"

#include <capnp/message.h>
#include <kj/refcount.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace dsec::init {

/// What makes a command a process, copied out of its message.
struct process_terms {
  static process_terms read(wire::Init::SpawnParams::Reader from);

  std::string name;
  std::vector<std::string> argv; ///< For listings: at most 4 KiB of it.
  bool terminal = false;
  std::uint16_t rows = 0, columns = 0;
  std::string first_input;
  bool keep_input = false; ///< Input stays open after that.
};

/// A command that lives by itself: what it writes goes into a scroll-back for each stream, from
/// which any number of readers take what they can; its input is fed piece by piece; its tree is
/// killed when its main process ends. It is over when nothing of that tree is left.
class process : public kj::Refcounted {
public:
  process(command_surroundings around, std::uint64_t id, process_terms terms,
          command_request request);

  /// Answers when it runs, or with the error that stood in the way. Once.
  kj::Promise<result<void>> start(file_errands& files);

  std::uint64_t id() const {
    return id_;
  }

  const std::string& name() const {
    return terms_.name;
  }

  bool over() const {
    return over_;
  }

  /// It is over, and every reader has all.
  bool owes_nobody() const {
    return over_ && readers_ == 0;
  }

  /// Nothing of it writes any more, so that nobody has to read it.
  bool silent() const {
    return over_ && run_.get() == nullptr;
  }

  /// Its end, for any number of waiters.
  kj::Promise<void> end() {
    return end_.addBranch();
  }

  /// Once it is over.
  void fill(wire::ExecResult::Builder to) const;
  capnp::MessageSize answer_size() const;

  void describe(wire::ProcessInfo::Builder to) const;

  /// Answers when both streams have ended and the sinks have all. A slow sink skips.
  kj::Promise<void>
  attach(wire::AttachFrom from, wire::LossySink::Client out, wire::LossySink::Client err);

  /// Answers when its pipe or terminal has taken it; in the order of the calls.
  kj::Promise<result<void>> input(kj::Array<const kj::byte> bytes, bool end);

  result<void> resize(std::uint16_t rows, std::uint16_t columns);
  result<void> signal(int number, bool tree);
  void kill();

  void told(const reaper::event& event);
  void settle(wire::Outcome::Kind kind, const std::string& cause);

  void freeze_clock();
  void thaw_clock();

  /// Lets go of what it no longer needs, if that can be told by now.
  void tidy();

private:
  struct pending_input {
    kj::Array<const kj::byte> bytes;
    bool end = false;
    kj::Own<kj::PromiseFulfiller<result<void>>> done;
  };

  error impossible(const char* what, const char* why) const;
  kj::Promise<result<void>> begin(const identity& who);
  /// Takes the tree along when the main process has ended.
  void follow();
  void finish();
  kj::Promise<void> feed();
  result<void> may_write() const;
  bool input_is_read();
  void close_input();

  command_surroundings around_;
  std::uint64_t id_;
  process_terms terms_;
  std::string user_;
  std::int64_t started_ms_ = 0, ended_ms_ = 0;
  scroll_back out_, err_;
  kj::Own<terminal> terminal_;
  kj::Own<command> run_;               ///< Null once it is over and silent.
  capnp::MallocMessageBuilder result_; ///< Its outcome, once it is over; without output.

  std::deque<pending_input> inputs_;
  bool feeding_ = false;
  bool input_open_ = false;
  bool line_begun_ = false; ///< The last byte that was typed was not the end of a line.

  bool over_ = false;
  unsigned readers_ = 0; ///< Attachments that have not come to their end.
  kj::Own<kj::PromiseFulfiller<void>> tell_end_;
  kj::ForkedPromise<void> end_;
  kj::Promise<void> ending_, feeder_; ///< They go first: they use the rest.
};

} // namespace dsec::init
