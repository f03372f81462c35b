#include "sdk/front/event_stream.hpp"

#include "sdk/front/convert.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace dsec {

namespace {

/// Events that the client has not taken; then the stream waits for it.
constexpr unsigned untaken_max = 256;

} // namespace

/// Between the thread that reads for the client and the loop.
struct event_stream::link {
  link(io_loop& at, wire::EventListener::Client to) : loop{at}, listener{kj::mv(to)} {}

  io_loop& loop;
  std::mutex mutex;
  std::condition_variable taken;
  unsigned untaken = 0;
  bool closed = false; ///< Written by the loop alone.

  // The loop's alone.
  kj::Maybe<wire::EventListener::Client> listener;
  kj::Own<kj::PromiseFulfiller<void>> gone;

  void close() {
    listener = nullptr;
    std::scoped_lock lock{mutex};
    closed = true;
    taken.notify_all();
  }

  void take() {
    std::scoped_lock lock{mutex};
    --untaken;
    taken.notify_all();
  }
};

event_stream::event_stream(io_loop& loop, wire::EventListener::Client listener)
  : link_{new link{loop, kj::mv(listener)}, [&loop](link* x) {
            loop.post([x] { delete x; });
          }} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  gone_ = kj::mv(pair.promise);
  link_->gone = kj::mv(pair.fulfiller);
}

event_stream::~event_stream() {
  // Else the subscription would wait for a call that waits for the client.
  link_->close();
}

void event_stream::begin(const job& from, std::uint64_t cursor) {
  auto tell = [link = link_](const job_event& x) {
    {
      std::unique_lock lock{link->mutex};
      link->taken.wait(lock, [&] { return link->closed || link->untaken < untaken_max; });
      if (link->closed)
        return;
      ++link->untaken;
    }
    link->loop.post([link, x] {
      KJ_IF_MAYBE (listener, link->listener) {
        auto request = listener->eventRequest();
        wire::write(x, request.initEvent());
        link->loop.spawn(request.send().then([link] { link->take(); },
                                             [link](kj::Exception&&) {
                                               link->close();
                                               link->gone->fulfill();
                                             }));
      }
    });
  };
  // What was told before is in the loop before.
  auto over = [link = link_] {
    link->loop.post([link] {
      // The client answers when it has taken all that was sent.
      KJ_IF_MAYBE (listener, link->listener) {
        auto end = [link] {
          link->gone->fulfill();
        };
        link->loop.spawn(listener->endRequest().send().then([end](auto&&) { end(); },
                                                            [end](kj::Exception&&) { end(); }));
      }
    });
  };
  subscription_ = from.follow(cursor, std::move(tell), std::move(over));
}

kj::Promise<void> event_stream::gone() {
  return kj::mv(gone_);
}

} // namespace dsec
