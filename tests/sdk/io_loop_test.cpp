#define BOOST_TEST_MODULE io_loop
#include "backends/container/io_loop.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

using dsec::io_loop;

BOOST_AUTO_TEST_CASE(work_of_many_threads_runs_in_one_thread_and_in_the_order_of_each) {
  io_loop loop;
  std::vector<std::vector<int>> seen(4);
  std::atomic<bool> elsewhere{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i)
        loop.post([&, t, i] {
          seen[t].push_back(i);
          if (!loop.in_loop())
            elsewhere = true;
        });
    });
  for (auto& thread : threads)
    thread.join();
  loop.run([] {});
  BOOST_TEST(!elsewhere);
  for (const auto& one : seen) {
    BOOST_TEST_REQUIRE(one.size() == 1000u);
    for (int i = 0; i < 1000; ++i)
      if (one[i] != i)
        BOOST_ERROR("out of order");
  }
}

BOOST_AUTO_TEST_CASE(a_ticket_is_resolved_from_any_thread_and_when_it_is_dropped) {
  io_loop loop;
  for (bool call : {true, false}) {
    std::promise<void> resolved;
    std::function<void()> resolve;
    loop.run([&] { loop.spawn(loop.ticket(resolve).then([&] { resolved.set_value(); })); });
    std::thread{[resolve = std::move(resolve), call]() mutable {
      if (call)
        resolve();
      resolve = nullptr;
    }}.join();
    resolved.get_future().wait();
  }
}

BOOST_AUTO_TEST_CASE(what_is_posted_before_the_end_still_runs_and_later_work_is_dropped) {
  bool ran = false;
  {
    io_loop loop;
    loop.post([&] { ran = true; });
  }
  BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE(the_handlers_of_the_host_stay) {
  auto mark = [](int) {
  };
  std::signal(SIGUSR1, mark);
  std::signal(SIGPIPE, SIG_DFL);
  {
    io_loop loop;
    loop.run([] {});
  }
  BOOST_TEST((std::signal(SIGUSR1, SIG_DFL) == static_cast<void (*)(int)>(mark)));
  BOOST_TEST((std::signal(SIGPIPE, SIG_DFL) == SIG_DFL));
}
