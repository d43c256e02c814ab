#include "io/http/content_coding.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace perseus::http {
namespace {

bool accepts(const std::string& header) {
  HttpRequest request;
  if (!header.empty()) request.headers.emplace_back("accept-encoding", header);
  return accepts_gzip(request);
}

TEST(ContentCoding, FollowsTheAcceptEncodingOfTheClient) {
  for (const char* yes : {"gzip", "deflate, GZIP;q=0.5 , br", "gzip;q=1", "*", "br;q=0, *;q=0.1"}) {
    EXPECT_TRUE(accepts(yes)) << yes;
  }
  for (const char* no : {"", "br", "gzip;q=0", "gzip; q=0.000, *", "x-gzip", "identity;q=1, *;q=0"}) {
    EXPECT_FALSE(accepts(no)) << no;
  }
}

TEST(ContentCoding, GzipComesBackAsItWas) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += std::to_string(i * i);
  for (const std::string& original : {std::string(), std::string("a"), text}) {
    const std::string compressed = gzipped(original);
    std::string back(original.size() + 1, '\0');
    z_stream stream{};
    ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
    stream.avail_in = static_cast<uInt>(compressed.size());
    stream.next_out = reinterpret_cast<Bytef*>(back.data());
    stream.avail_out = static_cast<uInt>(back.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    back.resize(stream.total_out);
    inflateEnd(&stream);
    EXPECT_EQ(back, original);
    EXPECT_EQ(compressed, gzipped(original)) << "the same bytes, so that the entity tag holds";
  }
}

}  // namespace
}  // namespace perseus::http
