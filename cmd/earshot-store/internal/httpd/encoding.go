package httpd

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
)

// encoder is a content encoding of an answer.
type encoder interface {
	io.WriteCloser
	Flush() error
}

// acceptable is the first encoding of an Accept-Encoding header that we have.
func acceptable(header string) string {
	for name := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(name, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.TrimSpace(weight) == "q=0" {
			continue
		}
		switch name {
		case "gzip", "deflate", "br", "zstd":
			return name
		}
	}
	return ""
}

func newEncoder(name string, w io.Writer) (encoder, error) {
	switch name {
	case "gzip":
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case "deflate": // in HTTP that means the zlib format
		return zlib.NewWriterLevel(w, zlib.BestSpeed)
	case "br":
		return brotli.NewWriterLevel(w, 3), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	}
	return nil, engine.NotImplemented.New("Unknown content encoding %q.", name)
}

// decode undoes the Content-Encoding of a body, and then the block compression
// that the parameter decompress announces. The result is closed by the caller.
func decode(body io.Reader, contentEncoding string, blocks bool) (io.ReadCloser, error) {
	in := bufio.NewReader(body)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) { // nothing is nothing in every encoding
		return io.NopCloser(in), nil
	}
	var out io.ReadCloser
	var err error
	switch strings.ToLower(contentEncoding) {
	case "", "identity":
		out = io.NopCloser(in)
	case "gzip", "x-gzip":
		out, err = gzip.NewReader(in)
	case "deflate":
		out, err = zlib.NewReader(in)
	case "br":
		out = io.NopCloser(brotli.NewReader(in))
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20)); err == nil {
			out = z.IOReadCloser()
		}
	default:
		return nil, engine.NotImplemented.New("Unknown Content-Encoding %q: the store takes gzip, deflate, br and zstd.", contentEncoding)
	}
	if err != nil {
		return nil, engine.CannotDecompress.New("The body is not %s: %v", contentEncoding, err)
	}
	out = wholeReader{out, in}
	if blocks {
		out = struct {
			io.Reader
			io.Closer
		}{blockReader{compress.NewReader(bufio.NewReader(out))}, out}
	}
	return out, nil
}

// wholeReader wants the end of the encoding to be the end of the body: zlib's
// reader, for one, stops at its own end and ignores the bytes behind it.
type wholeReader struct {
	io.ReadCloser
	body *bufio.Reader
}

func (w wholeReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if _, more := w.body.Peek(1); more == nil {
			err = errors.New("there is more behind the end of the encoding")
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	return n, err
}

// blockReader returns a plain io.EOF at the end of the blocks.
type blockReader struct{ r *compress.Reader }

func (b blockReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && errors.Is(err, io.EOF) {
		err = io.EOF
	}
	return n, err
}

// frame is how much a block of the answer's block compression holds at most.
const frame = 1 << 20

// blockWriter compresses its input into ClickHouse's blocks.
type blockWriter struct {
	dst io.Writer
	c   *compress.Writer
}

func newBlockWriter(dst io.Writer, method string) *blockWriter {
	m := compress.LZ4
	switch method {
	case "ZSTD":
		m = compress.ZSTD
	case "NONE":
		m = compress.None
	case "LZ4HC":
		m = compress.LZ4HC
	}
	return &blockWriter{dst: dst, c: compress.NewWriter(compress.LevelZero, m)}
}

func (b *blockWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		part := p[done:min(done+frame, len(p))]
		if err := b.c.Compress(part); err != nil {
			return done, err
		}
		if _, err := b.dst.Write(b.c.Data); err != nil {
			return done, err
		}
		done += len(part)
	}
	return len(p), nil
}
