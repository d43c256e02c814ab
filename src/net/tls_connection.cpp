// A connection with TLS: OpenSSL wants whole buffers of its own, so nothing is shared here.
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "net/connection.h"

namespace perseus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class TlsConnection final : public Connection {
 public:
  TlsConnection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket, std::string peer)
      : Connection(core, std::move(peer), true), tls_(core->options.tls), stream_(std::move(socket), *tls_) {}

  void begin() override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [me = self()](error_code problem) { return problem ? me->lost() : me->ready(); });
  }

 private:
  std::shared_ptr<TlsConnection> self() { return std::static_pointer_cast<TlsConnection>(shared_from_this()); }

  void read_some() override {
    stream_.async_read_some(asio::buffer(bytes_), [me = self()](error_code problem, std::size_t count) {
      if (problem) return me->lost();
      me->received({me->bytes_.data(), count});
    });
  }

  void write(const Buffers& buffers) override {
    asio::async_write(stream_, buffers,
                      [me = self()](error_code problem, std::size_t) { return problem ? me->lost() : me->written(); });
  }

  void shut_down() override {
    // Says goodbye; the client's own goodbye, or check_time(), closes.
    stream_.async_shutdown([me = self()](error_code) { me->close(); });
  }

  void close_socket() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

  TlsContext tls_;  ///< outlives the stream
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  std::array<char, 4096> bytes_{};
};

}  // namespace

std::shared_ptr<Connection> make_tls_connection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket,
                                                std::string peer) {
  return std::make_shared<TlsConnection>(std::move(core), std::move(socket), std::move(peer));
}

}  // namespace perseus
