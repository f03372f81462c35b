#define BOOST_TEST_MODULE future

#include "sdk/embed/future.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>
#include <vector>

using namespace dsec;

BOOST_AUTO_TEST_CASE(every_callback_is_called_once_in_the_order_in_which_it_was_given) {
  future<int> answer;
  std::vector<int> called;
  answer.then([&](const result<int>& x) { called.push_back(*x); });
  auto copy = answer;
  copy.then([&](const result<int>& x) { called.push_back(*x + 1); });
  BOOST_TEST(!answer.ready());
  answer.fulfill(10);
  answer.fulfill(20);
  answer.then([&](const result<int>& x) { called.push_back(*x + 2); });
  BOOST_TEST(called == (std::vector<int>{10, 11, 12}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_callback_may_give_another_one) {
  future<int> answer;
  int called = 0;
  answer.then([&](const result<int>&) { answer.then([&](const result<int>& x) { called = *x; }); });
  answer.fulfill(7);
  BOOST_TEST(called == 7);
}

BOOST_AUTO_TEST_CASE(all_who_wait_and_all_who_are_called_get_the_answer_of_another_thread) {
  future<int> answer;
  std::thread other{[answer] {
    answer.fulfill(error{errc::exhausted, "full"});
  }};
  std::vector<errc> seen;
  BOOST_TEST(!answer.get());
  other.join();
  for (int i = 0; i < 2; ++i)
    answer.then([&](const result<int>& x) { seen.push_back(x.error().code); });
  BOOST_TEST(seen.size() == 2u);
}
