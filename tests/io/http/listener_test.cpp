// The listener accepts connections while the io_context is idle.
#include "io/http/listener.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::eventually;
using testing::run_until;

class ListenerTest : public ::testing::Test {
 protected:
  void start(std::size_t most_waiting) {
    tcp::acceptor acceptor(io_, {asio::ip::make_address("127.0.0.1"), 0});
    endpoint_ = acceptor.local_endpoint();
    listener_ = std::make_unique<Listener>(
        io_, acceptor.release(), [this] { ++arrivals_; }, most_waiting);
  }
  void connect() { clients_.emplace_back(io_).connect(endpoint_); }
  void until_waiting(std::size_t count) const {
    ASSERT_TRUE(eventually([&] { return listener_->waiting() >= count; }));
  }

  asio::io_context io_{1};
  tcp::endpoint endpoint_;
  int arrivals_ = 0;
  std::vector<tcp::socket> clients_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ListenerTest, AcceptsInOrderWhileTheServerIsBusy) {
  start(100);
  for (std::size_t i = 1; i <= 20; ++i) {
    connect();
    until_waiting(i);
  }
  EXPECT_EQ(arrivals_, 0) << "the io_context has not run";
  ASSERT_TRUE(run_until(io_, [&] { return arrivals_ > 0; }));
  if (io_.stopped()) io_.restart();
  io_.poll();
  EXPECT_EQ(arrivals_, 1) << "one notification for all that wait";
  for (const tcp::socket& client : clients_) EXPECT_EQ(listener_->dequeue()->peer, client.local_endpoint());
  EXPECT_FALSE(listener_->dequeue());
  connect();
  until_waiting(1);
  ASSERT_TRUE(run_until(io_, [&] { return arrivals_ >= 2; }));
  EXPECT_EQ(listener_->dequeue()->peer, clients_.back().local_endpoint());
}

TEST_F(ListenerTest, HoldsAtMostTheLimit) {
  start(2);
  for (int i = 0; i < 6; ++i) connect();
  for (const tcp::socket& client : clients_) {
    until_waiting(1);
    EXPECT_LE(listener_->waiting(), 2);
    EXPECT_EQ(listener_->dequeue()->peer, client.local_endpoint());
  }
}

TEST_F(ListenerTest, ClosesPendingConnectionsAndRefusesLaterOnes) {
  start(1);
  for (int i = 0; i < 3; ++i) connect();  // one being accepted, one waiting for a free slot, one in the kernel's queue
  until_waiting(1);
  listener_.reset();
  for (tcp::socket& client : clients_) {
    boost::system::error_code problem;
    char byte = 0;
    EXPECT_EQ(client.read_some(asio::buffer(&byte, 1), problem), 0);
    EXPECT_TRUE(problem);
  }
  boost::system::error_code refused;
  tcp::socket(io_).connect(endpoint_, refused);
  EXPECT_EQ(refused, asio::error::connection_refused);
}

}  // namespace
}  // namespace perseus::http
