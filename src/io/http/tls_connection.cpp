// A connection with TLS: OpenSSL directly on the socket, without buffers while no message is incomplete.
//
// Boost.Asio's TLS stream keeps four buffers of 17 kB for its lifetime; thousands of waiting ranks would need 75 kB
// each. OpenSSL writes with write(2): the process must ignore SIGPIPE.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>

#include "io/http/connection.h"

namespace perseus::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kRecordBytes = std::size_t{16} << 10U;  ///< most that TLS sends in one piece

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class TlsConnection final : public Connection {
 public:
  TlsConnection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket, std::string peer)
      : Connection(core, std::move(socket), std::move(peer), true), tls_(core->options.tls) {}

 private:
  std::shared_ptr<TlsConnection> self() { return std::static_pointer_cast<TlsConnection>(shared_from_this()); }

  /// After an unsuccessful OpenSSL call: repeats the call when the socket is ready, or reports the connection as
  /// lost.
  void again(int result, void (TlsConnection::*call)()) {
    const int problem_of_socket = errno;
    const int why = SSL_get_error(ssl_.get(), result);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
      // A process that is killed sends no close_notify: OpenSSL reports the end of its bytes as an error of TLS.
      const bool cut_off = why == SSL_ERROR_SYSCALL && problem_of_socket != 0 && problem_of_socket != ECONNRESET;
      return cut_off ? lost() : closed_by_client();
    }
    socket_.async_wait(why == SSL_ERROR_WANT_READ ? asio::socket_base::wait_read : asio::socket_base::wait_write,
                       [me = self(), call](error_code problem) { problem ? me->lost() : (me.get()->*call)(); });
  }

  /// A client that sends nothing costs no memory of OpenSSL.
  void start() override {
    socket_.async_wait(asio::socket_base::wait_read,
                       [me = self()](error_code closed) { closed ? me->lost() : me->start_tls(); });
  }

  void start_tls() {
    if (closed()) return;
    ssl_.reset(SSL_new(tls_->native_handle()));
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.native_handle()) != 1) return lost();
    SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    shake_hands();
  }

  void shake_hands() {
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    result == 1 ? ready() : again(result, &TlsConnection::shake_hands);
  }

  void read_some() override {
    if (SSL_pending(ssl_.get()) > 0) {  // of a record that has already been read
      return asio::post(socket_.get_executor(), [me = self()] {
        if (!me->closed()) me->read_now();
      });
    }
    socket_.async_wait(asio::socket_base::wait_read,
                       [me = self()](error_code problem) { problem ? me->lost() : me->read_now(); });
  }

  void read_now() {
    ERR_clear_error();
    auto& bytes = core().read_buffer;
    const int count = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    count > 0 ? received({bytes.data(), static_cast<std::size_t>(count)}) : again(count, &TlsConnection::read_now);
  }

  void write(const Buffers& buffers) override {
    to_write_ = buffers;
    write_now();
  }

  void write_now() {
    while (asio::buffer_size(to_write_) > 0) {
      // Head and body together: one record, one system call.
      std::array<char, kRecordBytes>
          record;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
      const std::size_t size = asio::buffer_copy(asio::buffer(record), to_write_);
      ERR_clear_error();
      const int count = SSL_write(ssl_.get(), record.data(), static_cast<int>(size));
      if (count <= 0) return again(count, &TlsConnection::write_now);
      drop(to_write_, static_cast<std::size_t>(count));
    }
    written();
  }

  void shut_down() override {
    ERR_clear_error();
    if (ssl_) (void)SSL_shutdown(ssl_.get());  // sends close_notify; the client may have disconnected
    Connection::shut_down();
  }

  TlsContext tls_;  ///< outlives the objects made from it
  std::unique_ptr<SSL, FreeSsl> ssl_;
  Buffers to_write_{};
};

}  // namespace

std::shared_ptr<Connection> make_tls_connection(std::shared_ptr<ServerCore> core, asio::ip::tcp::socket socket,
                                                std::string peer) {
  return std::make_shared<TlsConnection>(std::move(core), std::move(socket), std::move(peer));
}

}  // namespace perseus::http
