// A connection without TLS: waits for bytes without a buffer, and reads and writes immediately if the kernel can.
#include <boost/asio/write.hpp>

#include "io/http/connection.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class PlainConnection final : public Connection {
 public:
  PlainConnection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket, std::string peer)
      : Connection(std::move(core), std::move(socket), std::move(peer), false) {}

 private:
  std::shared_ptr<PlainConnection> self() { return std::static_pointer_cast<PlainConnection>(shared_from_this()); }

  void read_some() override {
    socket_.async_wait(asio::socket_base::wait_read, [me = self()](error_code problem) {
      if (problem) return me->lost();
      const std::size_t count = me->socket_.read_some(asio::buffer(me->core().read_buffer), problem);
      if (problem == asio::error::would_block) return me->read_some();
      if (problem == asio::error::eof || problem == asio::error::connection_reset) return me->closed_by_client();
      if (problem) return me->lost();
      me->received({me->core().read_buffer.data(), count});
    });
  }

  void write(const Buffers& buffers) override {
    error_code problem;
    std::size_t count = socket_.write_some(buffers, problem);
    if (problem == asio::error::would_block) {
      count = 0;
    } else if (problem) {
      return lost();
    }
    if (count == asio::buffer_size(buffers)) return written();
    Buffers rest = buffers;
    drop(rest, count);
    asio::async_write(socket_, rest,
                      [me = self()](error_code failed, std::size_t) { return failed ? me->lost() : me->written(); });
  }
};

}  // namespace

std::shared_ptr<Connection> make_plain_connection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket,
                                                  std::string peer) {
  return std::make_shared<PlainConnection>(std::move(core), std::move(socket), std::move(peer));
}

}  // namespace perseus::http
